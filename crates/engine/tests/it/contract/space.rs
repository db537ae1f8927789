//! What a box may use of the disk.

use std::fs;

use model::verdict::Ended;
use sandbox::spec::MIB;

use crate::support::{Rig, on_every_backend};

on_every_backend! {
    one_file_has_a_limit,
    tmp_and_shared_memory_have_a_limit,
    a_workspace_that_grows_too_much_ends_the_box,
    the_harness_state_counts_too,
    what_was_there_before_does_not_count,
    many_empty_files_end_the_box,
    unrest_does_not_hide_growth,
    files_without_a_name_count_too,
    the_host_keeps_some_space_free,
    too_little_space_is_said_before_the_box_starts,
}

async fn one_file_has_a_limit(rig: &Rig) {
    let script = "head -c 9000000 /dev/zero >big; echo $?; stat -c %s big; truncate -s 9000000 sparse; echo $?";
    let ran = rig.sh(script).limits(|limits| limits.file_bytes = 4 * MIB).run_ok().await;
    // 128 and the signal of a file that is too large.
    assert_eq!(ran.stdout, format!("153\n{}\n153\n", 4 * MIB), "{ran:#?}");
}

async fn tmp_and_shared_memory_have_a_limit(rig: &Rig) {
    let script = "for box_dir in /tmp /dev/shm; do head -c 99000000 /dev/zero >$box_dir/big 2>/dev/null; \
        echo $?; stat -c %s $box_dir/big; done";
    let ran = rig.sh(script).limits(|limits| limits.tmp_bytes = 4 * MIB).run_ok().await;
    assert_eq!(ran.stdout, format!("1\n{0}\n1\n{0}\n", 4 * MIB), "{ran:#?}");
}

async fn a_workspace_that_grows_too_much_ends_the_box(rig: &Rig) {
    check_fill(rig, "/workspace").await;
}

async fn the_harness_state_counts_too(rig: &Rig) {
    check_fill(rig, "/harness-state/home").await;
}

async fn check_fill(rig: &Rig, folder: &str) {
    let script = format!("head -c 40000000 /dev/zero >{folder}/big; : >filled; sleep 900");
    let ran = rig.sh(&script).limits(|limits| limits.workspace_bytes = 16 * MIB).run().await;
    assert_eq!(ran.record.ended, Ended::OutOfSpace, "{ran:#?}");
}

async fn what_was_there_before_does_not_count(rig: &Rig) {
    fs::write(rig.workspace().join("big"), vec![1; 40_000_000]).expect("a file");
    let ran = rig.sh("head -c 4000000 /dev/zero >more; sleep 2.5");
    ran.limits(|limits| limits.workspace_bytes = 16 * MIB).run_ok().await;
}

async fn many_empty_files_end_the_box(rig: &Rig) {
    let make = "for (1 .. 3000) { open(my $file, '>', \"empty-$_\") or die } sleep 900";
    let ran = rig.argv(&["perl", "-e", make]).limits(|limits| limits.workspace_entries = 1000);
    let ran = ran.run().await;
    assert_eq!(ran.record.ended, Ended::OutOfSpace, "{ran:#?}");
}

/// Folders that come and go make walks over the tree fail.
async fn unrest_does_not_hide_growth(rig: &Rig) {
    let unrest = "mkdir 'unrest'; for my $n (1 .. 20) { mkdir \"unrest/$n\" } \
        while (1) { for my $n (1 .. 20) { rename \"unrest/$n\", \"moved-$n\"; rename \"moved-$n\", \"unrest/$n\" } }";
    let script = format!("perl -e '{unrest}' & head -c 40000000 /dev/zero >big; sleep 900");
    let ran = rig.sh(&script).limits(|limits| limits.workspace_bytes = 16 * MIB).run().await;
    assert_eq!(ran.record.ended, Ended::OutOfSpace, "{ran:#?}");
}

/// The last line says how much it holds: at most a tenth more than it may.
async fn files_without_a_name_count_too(rig: &Rig) {
    let hog = r#"
        $| = 1; my ($held, $page, @kept) = (0, "x" x (1 << 20));
        while (1) {
            open(my $file, ">", "x") or die; unlink("x"); push @kept, $file;
            for (1 .. 16) { syswrite($file, $page); print ++$held, "\n"; select(undef, undef, undef, 0.06) }
        }"#;
    let ran = rig.argv(&["perl", "-e", hog]).limits(|limits| limits.workspace_bytes = 128 * MIB);
    let ran = ran.run().await;
    assert_eq!(ran.record.ended, Ended::OutOfSpace, "{ran:#?}");
    let held: u64 = ran.stdout.lines().last().expect("a number").parse().expect("a number");
    assert!((100..=140).contains(&held), "{held} MiB held, 128 allowed: {ran:#?}");
}

async fn the_host_keeps_some_space_free(rig: &Rig) {
    let free = host::file::free_space(&rig.workspace()).expect("known");
    let script = "n=0; while :; do n=$((n + 1)); head -c 16000000 /dev/zero >big-$n; done";
    let ran = rig.sh(script).limits(|limits| limits.free_floor_bytes = free - 512 * MIB);
    let ran = ran.run().await;
    assert_eq!(ran.record.ended, Ended::OutOfSpace, "{ran:#?}");
}

async fn too_little_space_is_said_before_the_box_starts(rig: &Rig) {
    let ran = rig.sh(": >started").limits(|limits| limits.free_floor_bytes = 1 << 60).run().await;
    let Ended::Infra { reason } = &ran.record.ended else { panic!("{ran:#?}") };
    let folder = format!("{} has ", rig.workspace().display());
    assert!(reason.contains("too little free disk space") && reason.contains(&folder), "{reason}");
    assert!(!rig.workspace().join("started").exists(), "{ran:#?}");
}
