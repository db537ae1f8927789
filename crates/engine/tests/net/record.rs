//! What is written down about a way out, however the box ends: a whole log, a summary that agrees with it, and no box
//! at all where that cannot be.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use egress::model_route::{Caps, ModelRouteSpec};
use egress::record::EgressVerdict;
use engine::box_dir::BoxDir;
use engine::launch::{LaunchError, freeze, stop};
use host::process::{Signal, send_signal};
use model::verdict::Ended;
use testkit::model_server::{ModelScript, ModelServer, Turn};

use crate::model_route::{asking, route};
use crate::outing::Outing;
use crate::server::{Server, chunk, stream_head, wait_until};
use crate::support::{Rig, eventually, on_backend, on_every_backend};

on_every_backend! {
    a_box_that_is_stopped_in_mid_answer,
    a_box_that_is_frozen_in_mid_answer,
    the_next_box_of_a_run_goes_on_with_the_log,
    a_log_that_was_tampered_with_stops_the_box,
    a_route_that_cannot_work_stops_the_box,
    the_record_says_nothing_of_pages,
}

on_backend!(bwrap_alone, Bwrap, the_log_outlives_the_shim);

async fn a_box_that_is_stopped_in_mid_answer(rig: &Rig) {
    ended_in_mid_answer(rig, stop, Ended::Stopped).await;
}

async fn a_box_that_is_frozen_in_mid_answer(rig: &Rig) {
    ended_in_mid_answer(rig, freeze, Ended::Frozen).await;
}

/// The answer has its line, and what it cost until then is counted.
async fn ended_in_mid_answer(
    rig: &Rig,
    end: fn(&BoxDir) -> Result<bool, LaunchError>,
    expected: Ended,
) {
    let server = Server::start(|_, stream| {
        stream.write_all(stream_head())?;
        let start = r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":7,"output_tokens":1}}}"#;
        stream.write_all(&chunk(&format!("data: {start}\n\n")))?;
        wait_until(|| matches!(stream.take_error(), Ok(Some(_))));
        Ok(())
    });
    let script = r#"
        my $socket = dial();
        put($socket, request("POST", "/-/model/v1/messages", $ARGV[0], "x-api-key: dummy-of-this-box"));
        head($socket);
        chunk($socket);
        make("seen");
        chunk($socket);
    "#;
    let spec = route(&format!("http://127.0.0.1:{}", server.port()));
    let out = asking(rig, spec, script, "key-of-the-host").start();
    let seen = rig.workspace().join("seen");
    eventually("the first piece", || seen.exists()).await;
    assert!(end(&out.box_dir).expect("a signal"));
    let back = out.end().await;
    assert_eq!(back.record.ended, expected, "{back:#?}");
    let [entry] = &back.log[..] else { panic!("{back:#?}") };
    assert_eq!((entry.verdict, entry.status), (EgressVerdict::Allowed, Some(200)));
    let spend = entry.spend.expect("what it cost");
    assert!(spend.estimated && spend.tokens.input == 7 && spend.tokens.output > 0, "{spend:?}");
    assert_eq!((back.usage().input, back.usage().estimated), (7, 1));
}

/// A run has one account, however many boxes it takes: what the first one used counts in the second.
async fn the_next_box_of_a_run_goes_on_with_the_log(rig: &Rig) {
    let server = ModelServer::start([("run", ModelScript::new([Turn::text("hello")]))]);
    let caps = Caps { max_requests: Some(3), ..Caps::default() };
    let spec = ModelRouteSpec { caps, ..route(&server.base_url("run")) };
    let log = rig.dir().join("egress-of-the-run.jsonl");
    let ask = || {
        let script = r#"show(model("dummy-of-this-box", $chat)) for 1, 2; show(get("http://unlisted.example/"))"#;
        asking(rig, spec.clone(), script, "key-of-the-host").log(log.clone())
    };
    let first = ask().run_ok().await;
    assert_eq!((first.log.len(), first.usage().requests), (3, 2));
    let second = ask().run_ok().await;
    let statuses: Vec<u16> = second.answers().iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 403, 403], "{second:#?}");
    assert_eq!(second.reasons(), ["", "", "not_allowed", "", "model_cap", "not_allowed"]);
    assert_eq!((second.usage().requests, second.usage().tokens()), (3, 360));
    assert_eq!(second.denied("unlisted.example", "not_allowed"), 2);
    assert_eq!(server.requests().len(), 3);
}

/// A box whose script would leave a file.
fn leaving_a_mark(rig: &Rig) -> Outing<'_> {
    Outing::argv(rig, &["sh", "-c", ": >ran"])
}

/// Expects that nothing of the box has run, for a reason with these words.
async fn check_never_ran(rig: &Rig, outing: Outing<'_>, words: &str) {
    let record = outing.start().record().await;
    let Ended::Infra { reason } = &record.ended else { panic!("{record:#?}") };
    assert!(reason.contains(words), "{reason}");
    assert!(record.egress.is_none() && record.report.is_none(), "{record:#?}");
    assert!(!rig.workspace().join("ran").exists());
}

async fn a_log_that_was_tampered_with_stops_the_box(rig: &Rig) {
    let log: PathBuf = rig.dir().join("egress-of-the-run.jsonl");
    let script = r#"show(get("http://unlisted-$_.example/")) for 1 .. 3"#;
    Outing::perl(rig, script).log(log.clone()).run_ok().await;
    let text = fs::read_to_string(&log).expect("a log");
    for (old, new) in [("unlisted-2.example", "harmless-2.example"), ("denied", "allowed")] {
        let forged = text.replacen(old, new, 1);
        fs::write(&log, &forged).expect("our own file");
        let outing = leaving_a_mark(rig).log(log.clone());
        check_never_ran(rig, outing, "does not follow the line before it").await;
        assert_eq!(fs::read_to_string(&log).expect("a log"), forged, "it is evidence");
    }
}

async fn a_route_that_cannot_work_stops_the_box(rig: &Rig) {
    let server = Server::saying("hello");
    let caps = Caps { max_usd: Some(1.0), ..Caps::default() };
    let base = format!("http://127.0.0.1:{}", server.port());
    let spec = ModelRouteSpec { caps, ..route(&base) };
    let outing = leaving_a_mark(rig).model(spec, None);
    check_never_ran(rig, outing, "a cap in dollars needs prices").await;
}

/// Hosts and counts are recorded; paths, queries, headers and bodies are not.
async fn the_record_says_nothing_of_pages(rig: &Rig) {
    let server = Server::saying("c4n4ry-answer");
    let script = r#"
        my $base = "http://localhost:$ARGV[0]";
        show(post("$base/c4n4ry-path?c4n4ry-query=1", "c4n4ry-body", "x-header: c4n4ry-header"));
        show(get("http://unlisted.example/c4n4ry-path?c4n4ry-query=1"));
        show(get("/-/c4n4ry-page"));
        make("asked");
    "#;
    let port = server.port().to_string();
    let outing = Outing::perl_with(rig, script, &[&port]).reach(server.port());
    let out = outing.start();
    let files =
        [out.box_dir.egress_log(), out.box_dir.path().join("exit.json"), out.box_dir.shim_log()];
    let back = out.end().await.ok();
    assert!(back.stdout.contains("c4n4ry-answer"), "{back:#?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("a file of the box");
        assert!(!text.contains("c4n4ry"), "{}: {text}", file.display());
    }
}

/// Nobody is left to write a record, but every line that was written can be read and checked.
async fn the_log_outlives_the_shim(rig: &Rig) {
    let script = r#"get("http://unlisted.example/") for 1 .. 20; make("asked"); sleep 40"#;
    let out = Outing::perl(rig, script).start();
    let asked = rig.workspace().join("asked");
    eventually("the requests", || asked.exists()).await;
    eventually("their lines", || out.replay().lines.len() == 20).await;
    let shim = out.box_dir.load_shim().expect("a record").expect("a shim").process;
    assert!(send_signal(&shim, Signal::KILL).expect("a signal"));
    let record = out.record().await;
    assert!(matches!(record.ended, Ended::Infra { .. }) && record.egress.is_none(), "{record:#?}");
    let replay = out.replay();
    assert_eq!(replay.lines.len(), 20);
    assert!(replay.lines.iter().all(|entry| entry.verdict == EgressVerdict::Denied));
}
