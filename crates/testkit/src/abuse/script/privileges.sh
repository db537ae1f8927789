status=$(cat /proc/self/status) || skipped 'no status'
# field NAME VALUE: what the kernel says of every process here.
field() {
    value=$(echo "$status" | sed -n "s/^$1:[[:space:]]*//p")
    if [ "$value" != "$2" ]; then reached "$1 is ${value:-absent}, not $2"; fi
}
for set in CapInh CapPrm CapEff CapBnd CapAmb; do field "$set" 0000000000000000; done
field NoNewPrivs 1
field Seccomp 2
[ "$(id -u)" -ne 0 ] || reached 'this is root'
blocked 'no capability, no new privileges, filtered'
