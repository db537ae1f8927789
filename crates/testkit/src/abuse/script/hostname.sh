need CANARY_HOSTNAME
for file in /proc/sys/kernel/hostname /etc/hostname /etc/hosts /etc/mailname; do
    if [ -r "$file" ] && grep -qiwF -- "$CANARY_HOSTNAME" "$file"; then reached "$file tells the name of the host"; fi
done
blocked "this is $(cat /proc/sys/kernel/hostname)"
