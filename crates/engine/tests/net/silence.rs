//! The silence watchdog: a box of which nothing is heard, neither by its output nor by its traffic, is ended.

use std::io::Write;
use std::thread;
use std::time::Duration;

use engine::record::ExitRecord;
use model::verdict::Ended;

use crate::outing::{Back, Outing};
use crate::server::{Server, chunk, stream_head};
use crate::support::{Rig, on_every_backend};

on_every_backend! {
    a_box_that_falls_silent_is_ended,
    a_box_without_a_way_out_is_ended_too,
    output_alone_keeps_a_box_alive,
    a_word_on_standard_error_is_output_too,
    traffic_alone_keeps_a_box_alive,
    an_answer_that_drips_is_traffic,
    an_open_connection_is_no_traffic,
    without_a_limit_silence_is_golden,
}

/// Short enough to wait for, and on some machines shorter than a container takes to start.
const LIMIT_SECS: u64 = 2;

/// How often the lively ones show that they live, twice a second.
const LIVELY: &str = "10";

async fn run(outing: Outing<'_>) -> Back {
    outing.with(|spec| spec.silence_secs = Some(LIMIT_SECS)).run().await
}

/// It was given its time, which begins when the box is there, and was ended before it ended by itself.
fn check_silenced(record: &ExitRecord) {
    assert_eq!((&record.ended, record.fell_silent), (&Ended::OutOfTime, true), "{record:#?}");
    let limit = LIMIT_SECS * 1000;
    let lived = record.wall_ms - record.ready_ms.expect("a box that got ready");
    assert!(lived >= limit, "{lived}: {record:#?}");
}

/// It lived for longer than anybody may be silent.
fn check_lived(record: &ExitRecord) {
    assert_eq!(record.ended, Ended::Exited { code: 0 }, "{record:#?}");
    assert!(!record.fell_silent, "{record:#?}");
    let lived = record.wall_ms - record.ready_ms.expect("a box that got ready");
    assert!(lived > LIMIT_SECS * 2000, "{lived}");
}

/// What it said and asked before is no excuse.
async fn a_box_that_falls_silent_is_ended(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"show(get("http://localhost:$ARGV[0]/")); sleep 900; print "200 still here\n""#;
    let port = server.port().to_string();
    let back = run(Outing::perl_with(rig, script, &[&port]).reach(server.port())).await;
    check_silenced(&back.record);
    assert_eq!(back.answer(), (200, "hello"));
    assert_eq!(back.summary().totals.allowed, 1, "the record is whole all the same");
}

async fn a_box_without_a_way_out_is_ended_too(rig: &Rig) {
    let sh = rig.sh("sleep 900").with(|spec| spec.silence_secs = Some(LIMIT_SECS));
    let ran = sh.run().await;
    check_silenced(&ran.record);
    assert!(ran.record.egress.is_none());
}

async fn output_alone_keeps_a_box_alive(rig: &Rig) {
    let script = "for (1 .. $ARGV[0]) { print '.'; select(undef, undef, undef, 0.5) }";
    let back = run(Outing::perl_with(rig, script, &[LIVELY])).await;
    check_lived(&back.record);
    assert_eq!(back.summary().totals.requests, 0);
}

async fn a_word_on_standard_error_is_output_too(rig: &Rig) {
    let script = "for (1 .. $ARGV[0]) { warn 'still here'; select(undef, undef, undef, 0.5) }";
    check_lived(&run(Outing::perl_with(rig, script, &[LIVELY])).await.record);
}

async fn traffic_alone_keeps_a_box_alive(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        for (1 .. $ARGV[0]) { get("http://localhost:$ARGV[1]/"); select(undef, undef, undef, 0.5) }
    "#;
    let port = server.port().to_string();
    let back = run(Outing::perl_with(rig, script, &[LIVELY, &port]).reach(server.port())).await;
    check_lived(&back.record);
    assert_eq!(back.stdout, "");
    assert_eq!(server.seen().len(), 10);
}

/// One request, one answer, and a byte of it now and then: an agent that waits for its model looks like this.
async fn an_answer_that_drips_is_traffic(rig: &Rig) {
    let server = Server::start(|_, stream| {
        stream.write_all(stream_head())?;
        for _ in 0..10 {
            stream.write_all(&chunk(": still thinking\n\n"))?;
            thread::sleep(Duration::from_millis(500));
        }
        stream.write_all(&chunk(""))
    });
    let page = format!("http://localhost:{}/", server.port());
    let back = run(Outing::perl_with(rig, "get($ARGV[0])", &[&page]).reach(server.port())).await;
    check_lived(&back.record);
    assert_eq!((back.stdout.as_str(), back.log.len()), ("", 1));
}

async fn an_open_connection_is_no_traffic(rig: &Rig) {
    let server = Server::start(|_, stream| {
        super::server::wait_until(|| matches!(stream.take_error(), Ok(Some(_))));
        Ok(())
    });
    let page = format!("http://localhost:{}/", server.port());
    let back = run(Outing::perl_with(rig, "get($ARGV[0])", &[&page]).reach(server.port())).await;
    check_silenced(&back.record);
    // The request was under way when the box was ended, and has its line.
    assert_eq!(back.log.len(), 1, "{back:#?}");
}

async fn without_a_limit_silence_is_golden(rig: &Rig) {
    let back = Outing::perl(rig, "sleep 5").run_ok().await;
    check_lived(&back.record);
}
