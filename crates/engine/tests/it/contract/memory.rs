//! Memory that counts although no process has it mapped.

use model::verdict::Ended;
use sandbox::spec::MIB;

use crate::support::{Rig, on_backend, on_every_backend};

on_every_backend! {
    memory_files_that_nobody_maps_count,
    detached_segments_count,
    messages_in_queues_count,
    bytes_in_sockets_count,
    files_in_shared_memory_count,
    shared_memory_that_a_mapping_gave_up_counts,
    a_process_whose_first_thread_has_ended_counts,
    honest_use_of_shared_memory_is_left_alone,
    a_process_cannot_hide_what_it_holds,
}

const LIMIT: u64 = 128 * MIB;

/// What a hog may hold at its end: the limit and a tenth of it.
const MOST: u64 = LIMIT + LIMIT / 10;

/// Each hog takes a little at a time, and says how much it has by now.
const HELD: &str = r#"
use strict; use warnings; $| = 1;
my $held = 0;
my $step = 1 << 20;
sub held { my $more = shift; $held += $more; print "$held\n"; select(undef, undef, undef, 0.02 * $more / $step) }
"#;

/// Numbers of system calls that Perl has no function for.
#[cfg(target_arch = "x86_64")]
const CALLS: &str = "my ($memfd, $fallocate, $mmap, $read, $madvise, $exit, $prctl) = (319, 285, 9, 0, 28, 60, 157);";
#[cfg(not(target_arch = "x86_64"))]
const CALLS: &str = "my ($memfd, $fallocate, $mmap, $read, $madvise, $exit, $prctl) = (279, 47, 222, 63, 233, 93, 167);";

async fn check_hog(rig: &Rig, hog: &str) {
    let program = format!("{HELD}{CALLS}\n{hog}\nsleep 900");
    let ran = rig.argv(&["perl", "-e", &program]).limits(|limits| limits.memory_bytes = LIMIT);
    let ran = ran.run().await;
    assert_eq!(ran.record.ended, Ended::OutOfMemory, "{ran:#?}");
    let held: u64 = ran.stdout.lines().last().expect("a number").parse().expect("a number");
    assert!((LIMIT / 4..=MOST).contains(&held), "{held} held, {LIMIT} allowed: {ran:#?}");
}

async fn memory_files_that_nobody_maps_count(rig: &Rig) {
    let hog = r#"
        for my $n (1 .. 8) {
            my $name = "x";
            my $fd = syscall($memfd, $name, 0);
            die "memfd: $!" if $fd < 0;
            for my $part (0 .. 63) {
                syscall($fallocate, $fd, 0, $part * $step, $step) == 0 or die "fallocate: $!";
                held($step);
            }
        }"#;
    check_hog(rig, hog).await;
}

async fn detached_segments_count(rig: &Rig) {
    let hog = r#"
        my $page = "x" x $step;
        while (1) {
            my $id = shmget(0, $step, 0600);
            die "shmget: $!" if !defined $id;
            shmwrite($id, $page, 0, $step) or die "shmwrite: $!";
            held($step);
        }"#;
    check_hog(rig, hog).await;
}

async fn messages_in_queues_count(rig: &Rig) {
    let hog = r#"
        my $message = pack("l! a*", 1, "x" x 8000);
        while (1) {
            my $sent = 0;
            while ($sent < $step) {
                my $id = msgget(0, 0600);
                die "msgget: $!" if !defined $id;
                $sent += 8000 while msgsnd($id, $message, 04000);
            }
            held($sent);
        }"#;
    check_hog(rig, hog).await;
}

async fn bytes_in_sockets_count(rig: &Rig) {
    let hog = r#"
        use Socket; use IO::Handle;
        my @kept; my $page = "x" x 4096;
        while (1) {
            my $sent = 0;
            while ($sent < $step) {
                socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die "socketpair: $!";
                push @kept, $a, $b;
                $a->blocking(0);
                while (my $count = syswrite($a, $page)) { $sent += $count }
            }
            held($sent);
        }"#;
    check_hog(rig, hog).await;
}

async fn files_in_shared_memory_count(rig: &Rig) {
    let hog = r#"
        my $page = "x" x $step;
        open(my $file, ">", "/dev/shm/x") or die; unlink("/dev/shm/x");
        while (syswrite($file, $page)) { held($step) }"#;
    check_hog(rig, hog).await;
}

/// The pages stay in the kernel, and are in no process's resident set.
async fn shared_memory_that_a_mapping_gave_up_counts(rig: &Rig) {
    let hog = r#"
        open(my $zero, "<", "/dev/zero") or die;
        while (1) {
            my $at = syscall($mmap, 0, $step, 3, 0x21, -1, 0);
            die "mmap: $!" if $at == -1;
            syscall($read, fileno($zero), $at, $step) == $step or die "read: $!";
            syscall($madvise, $at, $step, 4) == 0 or die "madvise: $!";
            held($step);
        }"#;
    check_hog(rig, hog).await;
}

async fn a_process_whose_first_thread_has_ended_counts(rig: &Rig) {
    let hog = r#"
        use threads;
        threads->create(sub {
            select(undef, undef, undef, 0.2);
            my @kept;
            while (1) { push @kept, "x" x $step; held($step) }
        })->detach;
        syscall($exit, 0);"#;
    check_hog(rig, hog).await;
}

/// What test suites and browsers do: a little of everything, for longer than any two looks.
async fn honest_use_of_shared_memory_is_left_alone(rig: &Rig) {
    let honest = r#"
        my $page = "x" x (16 * $step);
        my $id = shmget(0, length $page, 0600); die if !defined $id;
        shmwrite($id, $page, 0, length $page) or die;
        my $name = "x"; my $fd = syscall($memfd, $name, 0);
        syscall($fallocate, $fd, 0, 0, 16 * $step) == 0 or die;
        open(my $file, ">", "/dev/shm/x") or die; syswrite($file, $page) or die;
        fork() for 1 .. 3;
        select(undef, undef, undef, 1.5);
        1 while wait() > 0;
        shmctl($id, 0, 0);"#;
    let program = format!("{HELD}{CALLS}\n{honest}");
    let ran = rig.argv(&["perl", "-e", &program]).limits(|limits| limits.memory_bytes = LIMIT);
    ran.run_ok().await;
}

/// The request succeeds, because agents of keys make it, and has no effect.
async fn a_process_cannot_hide_what_it_holds(rig: &Rig) {
    let hide = "print syscall($prctl, 4, 0, 0, 0, 0), syscall($prctl, 3, 0, 0, 0, 0)";
    let ran = rig.argv(&["perl", "-e", &format!("{CALLS}\n{hide}")]).run_ok().await;
    assert_eq!(ran.stdout, "01");
}

mod without_a_control_group {
    use super::*;

    on_backend! {
        bwrap,
        Bwrap,
        the_hosts_user_keeps_most_inotify_instances,
        a_thread_has_no_descriptors_of_its_own,
        bytes_on_their_way_over_loopback_count,
    }

    /// They would be in no list that the host can see.
    async fn a_thread_has_no_descriptors_of_its_own(rig: &Rig) {
        let close = "print syscall(436, 100, 100, 0), ' ', syscall(436, 100, 100, 2)";
        assert_eq!(rig.argv(&["perl", "-e", close]).run_ok().await.stdout, "0 -1");
    }

    /// The kernel counts them for the host's user too.
    async fn the_hosts_user_keeps_most_inotify_instances(rig: &Rig) {
        let call = if cfg!(target_arch = "x86_64") { 294 } else { 26 };
        let take = format!("my $n = 0; $n++ while syscall({call}, 0) >= 0; print $n");
        let ran = rig.argv(&["perl", "-e", &take]).run_ok().await;
        let taken: u64 = ran.stdout.parse().expect("a number");
        let all = std::fs::read_to_string("/proc/sys/user/max_inotify_instances");
        let all: u64 = all.expect("a limit").trim().parse().expect("a number");
        assert!((1..=all / 4).contains(&taken), "{taken} of {all}");
    }

    async fn bytes_on_their_way_over_loopback_count(rig: &Rig) {
        let hog = r#"
            use Socket; use IO::Handle;
            socket(my $server, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
            bind($server, sockaddr_in(0, INADDR_LOOPBACK)) && listen($server, 100) or die "listen: $!";
            my $address = getsockname($server);
            my @kept; my $page = "x" x 65536;
            while (1) {
                my $sent = 0;
                while ($sent < $step) {
                    socket(my $client, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
                    connect($client, $address) or die "connect: $!";
                    accept(my $accepted, $server) or die "accept: $!";
                    push @kept, $client, $accepted;
                    $client->blocking(0);
                    while (my $count = syswrite($client, $page)) { $sent += $count }
                }
                held($sent);
            }"#;
        check_hog(rig, hog).await;
    }
}
