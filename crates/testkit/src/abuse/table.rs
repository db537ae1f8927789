//! All attempts, in the order of the checklist.

use super::Expect::{Blocked, Daemons, EndsAtDeadline, EndsBox, HostSide};
use super::{Attempt, Expect};

const X86_64: Option<&str> = Some("x86_64");

/// An attempt from its script file, after the files that it builds on.
macro_rules! attempt {
    ($number:literal, $name:literal, $expect:expr $(, after $before:literal)? $(, on $arch:expr)?) => {
        Attempt {
            number: $number,
            name: $name,
            script: concat!(
                include_str!("script/prelude.sh"),
                $(include_str!(concat!("script/", $before, ".sh")),)?
                include_str!(concat!("script/", $name, ".sh")),
            ),
            expect: $expect,
            arch: attempt!(@arch $($arch)?),
        }
    };
    (@arch) => { None };
    (@arch $arch:expr) => { $arch };
}

/// An attempt that is one system call: its number on x86-64 and its arguments.
macro_rules! call {
    ($number:literal, $name:literal, $arguments:literal) => {
        Attempt {
            number: $number,
            name: $name,
            script: concat!(
                include_str!("script/prelude.sh"),
                "try_call ",
                $name,
                " ",
                $arguments,
                "\n",
            ),
            expect: Expect::Blocked,
            arch: X86_64,
        }
    };
}

/// Every attempt of the checklist that is made inside a box, and some that it does not have.
pub const ATTEMPTS: &[Attempt] = &[
    attempt!(1, "host-files", Blocked),
    attempt!(2, "shadow", Blocked),
    attempt!(3, "host-processes", Blocked),
    attempt!(3, "host-kill", Blocked),
    attempt!(4, "init-environ", Blocked),
    attempt!(5, "secrets-in-sight", Blocked),
    call!(6, "ptrace-init", "101 0x4206 \"${TARGET_PID:-1}\" 0 0"),
    call!(6, "read-init-memory", "310 \"${TARGET_PID:-1}\" 0 0 0 0 0"),
    attempt!(6, "init-files", Blocked),
    attempt!(6, "stop-init", Blocked),
    attempt!(6, "kill-init", Blocked),
    attempt!(7, "engine-sockets", Blocked),
    attempt!(8, "metadata", Blocked),
    attempt!(9, "private-ranges", Blocked),
    attempt!(9, "public-addresses", Blocked),
    attempt!(10, "host-addresses", Blocked),
    attempt!(10, "interfaces", Blocked),
    attempt!(11, "host-loopback", Blocked),
    attempt!(12, "abstract-socket", Blocked),
    attempt!(13, "vsock", Blocked),
    attempt!(14, "raw-sockets", Blocked),
    attempt!(14, "odd-families", Blocked),
    attempt!(15, "dns", Blocked),
    attempt!(23, "fork-bomb", Blocked),
    attempt!(24, "memory-hog", EndsBox("oom")),
    attempt!(25, "fill-tmp", Blocked, after "fill-folder"),
    attempt!(25, "fill-shm", Blocked, after "fill-folder"),
    attempt!(26, "large-file", Blocked),
    attempt!(26, "space-fill", EndsBox("space")),
    attempt!(26, "inode-fill", EndsBox("space")),
    attempt!(27, "ignore-sigterm", EndsAtDeadline),
    attempt!(28, "daemons", Daemons),
    attempt!(29, "clock", Blocked, on X86_64),
    call!(30, "unshare-user", "272 0x10000000"),
    call!(30, "unshare-mount", "272 0x00020000"),
    call!(30, "unshare-net", "272 0x40000000"),
    call!(30, "clone-user", "56 0x10000011 0 0 0 0"),
    // struct clone_args: the flag of a user namespace, and SIGCHLD as the fifth number.
    call!(
        30,
        "clone3-user",
        "435 hex:0000001000000000000000000000000000000000000000000000000000000000\
         1100000000000000000000000000000000000000000000000000000000000000 64"
    ),
    call!(30, "setns", "308 -1 0"),
    attempt!(30, "nested-mount", Blocked, on X86_64),
    call!(30, "fsopen", "430 text:tmpfs 0"),
    call!(30, "open-tree", "428 -100 text:/ 1"),
    call!(30, "move-mount", "429 -1 text: -1 text: 4"),
    call!(30, "mount-setattr", "442 -100 text:/ 0 zero:32 32"),
    call!(30, "pivot-root", "155 text:/tmp text:/tmp"),
    attempt!(31, "sysctl", Blocked),
    call!(32, "bpf", "321 0 hex:02000000040000000400000001000000 16"),
    // struct perf_event_attr: a software clock of our own process, nothing of the kernel's.
    call!(
        32,
        "perf-event-open",
        "298 hex:01000000700000000000000000000000000000000000000000000000000000000000000000000000\
         61000000000000000000000000000000000000000000000000000000000000000000000000000000\
         0000000000000000000000000000000000000000000000000000000000000000 0 -1 -1 0"
    ),
    // With flags that do not exist, so that nothing is loaded where it is allowed.
    call!(32, "kexec-load", "246 0 0 0 0x7fff"),
    call!(32, "keyctl", "250 0 -2 1"),
    call!(32, "add-key", "248 text:user text:bottle text:x 1 -2"),
    call!(32, "request-key", "249 text:user text:bottle 0 0"),
    call!(32, "userfaultfd", "323 1"),
    call!(32, "io-uring-setup", "425 1 zero:120"),
    call!(32, "init-module", "175 0 0 text:"),
    call!(32, "finit-module", "313 -1 text: 0"),
    call!(32, "open-by-handle", "304 -100 zero:16 0"),
    call!(32, "pidfd-getfd", "438 -1 0 0"),
    call!(32, "kcmp", "312 $$ $$ 0 0 0"),
    call!(32, "iopl", "172 3"),
    call!(32, "acct", "163 text:/nonexistent"),
    call!(32, "swapon", "167 text:/nonexistent 0"),
    // With a wrong magic number.
    call!(32, "reboot", "169 0 0 0 0"),
    call!(32, "kernel-log", "103 3 zero:4096 4096"),
    attempt!(33, "own-suid", HostSide),
    attempt!(33, "root-suid", Blocked),
    attempt!(34, "terminal", Blocked),
    attempt!(35, "stuck-link", HostSide),
    attempt!(36, "stuck-fifo", HostSide),
    attempt!(36, "stuck-folder", HostSide),
    attempt!(37, "stuck-sparse", HostSide),
    attempt!(38, "traversal-names", HostSide),
    attempt!(39, "log-flood", HostSide),
    attempt!(40, "escape-sequences", HostSide),
    attempt!(41, "invalid-output", HostSide),
    attempt!(42, "hostile-git", HostSide),
    attempt!(43, "forge-moved-ref", HostSide, after "forge-begin"),
    attempt!(43, "forge-replace", HostSide, after "forge-begin"),
    attempt!(43, "forge-graft", HostSide, after "forge-begin"),
    attempt!(44, "forged-identity", HostSide),
    attempt!(45, "odd-branches", HostSide),
    attempt!(49, "poisoned-state", HostSide),
    attempt!(0, "read-only-root", Blocked),
    attempt!(0, "guest-folder", Blocked),
    attempt!(0, "remount", Blocked, on X86_64),
    attempt!(0, "device-nodes", Blocked, on X86_64),
    call!(0, "chroot", "161 text:/tmp"),
    attempt!(0, "kernel-memory", Blocked),
    attempt!(0, "kernel-addresses", Blocked),
    call!(0, "wider-affinity", "203 0 8 hex:ffffffffffffffff"),
    attempt!(0, "privileges", Blocked),
    attempt!(0, "hostname", Blocked),
];
