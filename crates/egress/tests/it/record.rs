//! The log and the summary of a run.

use std::time::Instant;

use egress::policy::{EgressPolicy, EgressProfile};
use egress::record::EgressVerdict;
use egress::render_summary;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::Echo;
use crate::world::{RUN, World, client_hello, open_policy};

#[tokio::test]
async fn the_summary_counts_what_the_log_says() {
    let echo = Echo::start().await;
    let mut policy = EgressPolicy::new(EgressProfile::Packages);
    policy.permit_private = vec![echo.address];
    let world = World::start(policy).await;
    world.names.set("pypi.org", &[&echo.address.to_string()]);
    let hello = client_hello("pypi.org", true);
    for _ in 0..2 {
        world.through("pypi.org:443", &hello).await.unwrap();
    }
    for _ in 0..3 {
        world.connect("example.org:443").await.unwrap_err();
    }
    let (report, entries) = world.finish().await;
    assert!(entries.iter().all(|entry| entry.run == RUN));
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let summary = report.summary;
    assert!(summary.complete && summary.first_at <= summary.last_at);
    assert_eq!((summary.totals.allowed, summary.totals.denied), (2, 3));
    assert_eq!(summary.totals.bytes_up, 2 * hello.len() as u64);
    let lines = render_summary(&summary);
    assert_eq!(lines[0], "blocked: example.org, 3 times; allow with --allow example.org");
    assert!(lines[1].starts_with("reached: pypi.org, 2 times, "), "{lines:?}");
}

#[tokio::test]
async fn what_is_open_when_the_run_ends_gets_its_line_too() {
    let echo = Echo::start().await;
    let world = World::start(open_policy(&[echo.address])).await;
    world.names.set("a.example", &[&echo.address.to_string()]);
    let before = Instant::now();
    let mut stream = world.connect("a.example:443").await.unwrap();
    let hello = client_hello("a.example", true);
    stream.write_all(&hello).await.unwrap();
    let mut back = vec![0; hello.len()];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(world.state.bytes_up(), hello.len() as u64);
    assert!(world.state.last_activity() + std::time::Duration::from_millis(5) >= before);
    let (report, entries) = world.finish().await;
    assert_eq!(
        (entries[0].verdict, entries[0].bytes_up),
        (EgressVerdict::Allowed, hello.len() as u64)
    );
    assert!(report.summary.complete);
    assert_eq!(stream.read(&mut back).await.unwrap_or(0), 0);
}
