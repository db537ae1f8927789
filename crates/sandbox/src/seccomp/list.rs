//! Which system calls exist inside a box. One list: the bubblewrap filter and the engine profile are both made
//! from it.
//!
//! It is an allow-list. What is missing from it does not exist in the box (`ENOSYS`), so that libraries fall back
//! as they would on an older kernel. Missing on purpose: everything that makes or enters namespaces, mounts,
//! traces, loads code into the kernel, or has a history of kernel bugs (`ptrace`, `io_uring`, `bpf`,
//! `userfaultfd`, `keyctl`, `perf_event_open`), `clone3` (its flags cannot be inspected) and
//! `sched_setaffinity` (the processor limit of an engine-less box rests on affinity).

/// Allowed on every architecture.
pub(super) const ALLOWED: &[&str] = &[
    "accept", "accept4", "bind", "brk", "capget", "capset", "chdir", "clock_getres", "clock_gettime",
    "clock_nanosleep", "clone", "close", "close_range", "connect", "copy_file_range", "dup", "dup3",
    "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "eventfd2", "execve", "execveat", "exit",
    "exit_group", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat",
    "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock", "fremovexattr",
    "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futex", "futex_waitv", "get_robust_list",
    "getcpu", "getcwd", "getdents64", "getegid", "geteuid", "getgid", "getgroups", "getitimer",
    "getpeername", "getpgid", "getpid", "getppid", "getpriority", "getrandom", "getresgid", "getresuid",
    "getrlimit", "getrusage", "getsid", "getsockname", "getsockopt", "gettid", "gettimeofday", "getuid",
    "getxattr", "inotify_add_watch", "inotify_init1", "inotify_rm_watch", "io_cancel", "io_destroy",
    "io_getevents", "io_setup", "io_submit", "ioctl", "ioprio_get", "ioprio_set", "kill", "landlock_add_rule",
    "landlock_create_ruleset", "landlock_restrict_self", "lgetxattr", "linkat", "listen", "listxattr",
    "llistxattr", "lremovexattr", "lseek", "lsetxattr", "madvise", "membarrier", "memfd_create", "mincore",
    "mkdirat", "mknodat", "mlock", "mlock2", "mlockall", "mmap", "mprotect", "mq_getsetattr", "mq_notify", "mq_open",
    "mq_timedreceive", "mq_timedsend", "mq_unlink", "mremap", "msgctl", "msgget", "msgrcv", "msgsnd",
    "msync", "munlock", "munlockall", "munmap", "name_to_handle_at", "nanosleep", "newfstatat", "openat",
    "openat2", "personality", "pidfd_open", "pidfd_send_signal", "pipe2", "pkey_alloc", "pkey_free",
    "pkey_mprotect", "ppoll", "prctl", "pread64", "preadv", "preadv2", "prlimit64", "process_mrelease",
    "pselect6", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlinkat", "readv", "recvfrom",
    "recvmmsg", "recvmsg", "removexattr", "renameat", "renameat2", "restart_syscall", "rseq",
    "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend",
    "rt_sigtimedwait", "rt_tgsigqueueinfo", "sched_get_priority_max", "sched_get_priority_min",
    "sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval",
    "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "seccomp", "semctl", "semget",
    "semop", "semtimedop", "sendfile", "sendmmsg", "sendmsg", "sendto", "set_robust_list",
    "set_tid_address", "setfsgid", "setfsuid", "setgid", "setgroups", "setitimer", "setpgid",
    "setpriority", "setregid", "setresgid", "setresuid", "setreuid", "setrlimit", "setsid", "setsockopt",
    "setuid", "setxattr", "shmat", "shmctl", "shmdt", "shmget", "shutdown", "sigaltstack", "signalfd4",
    "socket", "socketpair", "splice", "statfs", "statx", "symlinkat", "sync", "sync_file_range", "syncfs",
    "sysinfo", "tee", "tgkill", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
    "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime", "times", "tkill", "truncate",
    "umask", "uname", "unlinkat", "utimensat", "vmsplice", "wait4", "waitid", "write", "writev",
];

/// Older names that only x86-64 has.
#[cfg(target_arch = "x86_64")]
pub(super) const ALLOWED_HERE: &[&str] = &[
    "access", "alarm", "arch_prctl", "chmod", "chown", "creat", "dup2", "epoll_create", "epoll_ctl_old",
    "epoll_wait", "epoll_wait_old", "eventfd", "fork", "futimesat", "getdents", "getpgrp", "inotify_init",
    "lchown", "link", "lstat", "mkdir", "mknod", "open", "pause", "pipe", "poll", "readlink", "rename", "rmdir",
    "select", "signalfd", "stat", "symlink", "time", "unlink", "utime", "utimes", "vfork",
];

/// Nothing but the modern names.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const ALLOWED_HERE: &[&str] = &[];

/// The only socket families: Unix, IPv4, IPv6 and netlink. `AF_VSOCK` reaches the hypervisor past every network
/// namespace, and the rest (packet, Bluetooth, ...) have no use here.
pub(super) const SOCKET_FAMILIES: &[u64] = &[1, 2, 10, 16];

/// Every flag by which `clone` makes a namespace (time, mount, cgroup, uts, ipc, user, pid, net).
pub(super) const NAMESPACE_FLAGS: u64 = 0x80
    | 0x0002_0000
    | 0x0200_0000
    | 0x0400_0000
    | 0x0800_0000
    | 0x1000_0000
    | 0x2000_0000
    | 0x4000_0000;

/// Calls whose absence is spelled out for engines, some of which answer unlisted calls with "not permitted": a
/// library that is told "does not exist" falls back, one that is told "not permitted" may give up.
pub(super) const ABSENT: &[&str] = &[
    "acct", "add_key", "bpf", "chroot", "clock_adjtime", "clock_settime", "clone3", "delete_module",
    "fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "io_pgetevents",
    "io_uring_enter", "io_uring_register", "io_uring_setup", "kcmp", "kexec_file_load", "kexec_load", "keyctl",
    "lookup_dcookie", "mbind", "migrate_pages", "mount", "mount_setattr", "move_mount", "move_pages",
    "nfsservctl", "open_by_handle_at", "open_tree", "perf_event_open", "pidfd_getfd", "pivot_root",
    "process_madvise", "process_vm_readv", "process_vm_writev", "ptrace", "quotactl", "quotactl_fd", "reboot",
    "request_key", "sched_setaffinity", "set_mempolicy", "setdomainname", "sethostname", "setns",
    "settimeofday", "swapoff", "swapon", "syslog", "umount2", "unshare", "userfaultfd", "vhangup",
];
