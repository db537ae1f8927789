try_open /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sysrq-trigger /proc/sys/kernel/sysrq \
    /proc/sys/vm/overcommit_memory /proc/sys/vm/drop_caches /proc/sys/fs/binfmt_misc/register \
    /proc/sys/kernel/yama/ptrace_scope /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/hostname \
    /sys/kernel/uevent_helper /sys/power/state /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/release_agent
