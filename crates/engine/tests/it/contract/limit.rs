//! What a box may use of memory, processors, processes and output.

use std::fs;

use model::verdict::Ended;
use sandbox::spec::{BoxOutput, MIB};

use crate::support::{Rig, on_every_backend};

on_every_backend! {
    a_flood_is_cut_and_counted_and_the_box_goes_on,
    a_flood_of_errors_is_cut_too,
    exact_output_beyond_its_cap_ends_the_box,
    a_box_that_takes_too_much_memory_is_out_of_memory,
    many_small_processes_count_together,
    processes_have_a_limit,
    each_box_has_its_full_count_of_processes,
    processors_are_shared_out,
    open_files_have_a_limit,
    no_core_file_is_left,
}

async fn a_flood_is_cut_and_counted_and_the_box_goes_on(rig: &Rig) {
    let script = "yes | head -c 20000000; echo last words; echo end >&2; : >went-on";
    let ran = rig.sh(script).output(BoxOutput::Log { cap: 100_000 }).run_ok().await;
    assert_eq!(ran.record.dropped_bytes, 20_000_011 - 100_000);
    assert_eq!(ran.record.output_bytes, 20_000_015);
    assert!(ran.stdout.starts_with("y\ny\n"));
    assert!(ran.stdout.contains("bytes are left out here: this log is limited to 100000 bytes]\n"));
    assert!(ran.stdout.ends_with("y\nlast words\n"));
    assert!(ran.bytes.len() < 100_200, "{}", ran.bytes.len());
    assert_eq!(ran.stderr, "end\n");
    assert!(rig.workspace().join("went-on").exists());
}

async fn a_flood_of_errors_is_cut_too(rig: &Rig) {
    let ran = rig.sh("yes | head -c 20000000 >&2; echo end").run_ok().await;
    assert_eq!(ran.record.dropped_bytes, 20_000_000 - 8 * MIB);
    assert_eq!(ran.stdout, "end\n");
}

async fn exact_output_beyond_its_cap_ends_the_box(rig: &Rig) {
    let ran = rig.sh("yes; : >went-on").output(BoxOutput::Exact { cap: 100_000 }).run().await;
    assert_eq!(ran.record.ended, Ended::OutOfSpace, "{ran:#?}");
    assert_eq!(ran.bytes, b"y\n".repeat(50_000));
    assert!(ran.record.dropped_bytes > 0);
    assert!(!rig.workspace().join("went-on").exists());
}

async fn a_box_that_takes_too_much_memory_is_out_of_memory(rig: &Rig) {
    let hog =
        "my @held; while (1) { push @held, 'x' x (8 << 20); select(undef, undef, undef, 0.01) }";
    let ran = rig.argv(&["perl", "-e", hog]).limits(|limits| limits.memory_bytes = 128 * MIB);
    let ran = ran.run().await;
    assert_eq!(ran.record.ended, Ended::OutOfMemory, "{ran:#?}");
}

async fn many_small_processes_count_together(rig: &Rig) {
    let small = "perl -e 'my $held = \"x\" x (24 << 20); sleep 4'";
    let script = format!("for n in 1 2 3 4 5 6 7 8 9 10; do {small} & done; wait");
    let ran = rig.sh(&script).limits(|limits| limits.memory_bytes = 128 * MIB).run().await;
    assert_eq!(ran.record.ended, Ended::OutOfMemory, "{ran:#?}");
}

/// Prints how many processes it could have at once, and keeps them until it is told to go on.
const CROWD: &str = r#"
my ($wanted, $name) = @ARGV;
my @children;
for (1 .. $wanted) {
    my $child = fork();
    last if !defined $child;
    if (!$child) { sleep 60; exit 0 }
    push @children, $child;
}
print scalar(@children), "\n";
if ($name) { open(my $file, ">", "$name-full"); while (!-e "go") { select(undef, undef, undef, 0.02) } }
kill "KILL", @children; waitpid($_, 0) for @children;
"#;

async fn processes_have_a_limit(rig: &Rig) {
    let ran = rig.argv(&["perl", "-e", CROWD, "200"]).limits(|limits| limits.pids = 64);
    let ran = ran.run_ok().await;
    let count: u64 = ran.stdout.trim().parse().expect("a number");
    // The guest and Perl itself count too.
    assert!((48..64).contains(&count), "{count}");
}

async fn each_box_has_its_full_count_of_processes(rig: &Rig) {
    let crowd = |name| {
        let sh = rig.argv(&["perl", "-e", CROWD, "50", name]);
        sh.limits(|limits| limits.pids = 64).launch()
    };
    let (one, two) = (crowd("one"), crowd("two"));
    tokio::join!(one.made("one-full"), two.made("two-full"));
    fs::write(rig.workspace().join("go"), "").expect("a file");
    let (one, two) = tokio::join!(one.end(), two.end());
    assert_eq!((one.stdout.as_str(), two.stdout.as_str()), ("50\n", "50\n"));
}

/// Two loops want two processors. By the clock of the box they get no more than one.
async fn processors_are_shared_out(rig: &Rig) {
    let burn = r#"
        sub now { open(my $file, "<", "/proc/uptime"); (split / /, <$file>)[0] }
        my $start = now();
        for (1 .. 2) { next if fork(); while (now() - $start < 1.5) {} exit 0 }
        1 while wait() > 0;
        my (undef, undef, $user, $system) = times;
        printf "%.2f %.2f\n", $user + $system, now() - $start;"#;
    let ran = rig.argv(&["perl", "-e", burn]).limits(|limits| limits.cpu_percent = 100);
    let ran = ran.run_ok().await;
    let (used, wall) = ran.stdout.trim().split_once(' ').expect("two numbers");
    let (used, wall): (f64, f64) = (used.parse().expect("secs"), wall.parse().expect("secs"));
    assert!(used <= 1.3 * wall, "{used} s of processor in {wall} s");
}

async fn open_files_have_a_limit(rig: &Rig) {
    let open = "my @held; while (open(my $file, '<', '/dev/null')) { push @held, $file } print scalar(@held)";
    let ran = rig.argv(&["perl", "-e", open]).limits(|limits| limits.open_files = 100);
    let count: u64 = ran.run_ok().await.stdout.parse().expect("a number");
    assert!((90..100).contains(&count), "{count}");
}

async fn no_core_file_is_left(rig: &Rig) {
    let ran = rig.sh("sh -c 'kill -SEGV $$'; ulimit -c; ls").run_ok().await;
    assert_eq!(ran.stdout, "0\n");
}
