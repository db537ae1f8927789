for file in /proc/kallsyms /proc/modules /proc/timer_list /proc/sched_debug /sys/kernel/notes.text; do
    if [ -r "$file" ] && head -n 500 "$file" 2>/dev/null | grep -qE '(^|[ x])ffff[0-9a-f]{12}([^0-9a-f]|$)'; then
        reached "$file tells addresses of the kernel"
    fi
done
blocked 'no address of the kernel'
