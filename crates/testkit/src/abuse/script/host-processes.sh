need CANARY_PID
need CANARY_COMMAND
# By its command line, because an inner process may have the same number.
for file in /proc/[0-9]*/cmdline; do
    if tr '\0' ' ' 2>/dev/null <"$file" | grep -qF "$CANARY_COMMAND"; then reached "$file is a process of the host"; fi
done
set -- /proc/[0-9]*
if [ $# -gt 20 ]; then reached "$# processes can be seen"; fi
blocked "$# processes, none of the host"
