//! The real key: in the shim and on the wire to the model, and nowhere else.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use egress::model_route::{KeySource, ModelRouteSpec};
use egress::record::EgressVerdict;
use testkit::model_server::{ModelScript, ModelServer, Turn};
use testkit::tree::holding;

use crate::model_route::{asking, route};
use crate::outing::Outing;
use crate::server::{Server, whole};
use crate::support::{Rig, environs_with, eventually, on_every_backend, token, words_with};

on_every_backend! {
    nothing_in_the_box_knows_the_key,
    the_key_is_the_shims_alone,
    a_key_in_a_file_is_read_by_the_shim,
    a_key_from_a_command_is_fetched_by_the_shim,
    a_key_that_is_missing_is_told,
    a_key_that_the_server_repeats_never_reaches_the_box,
}

/// A key that no other test has.
fn key() -> String {
    format!("r34l-k3y-{}", token())
}

fn server() -> ModelServer {
    ModelServer::start([("run", ModelScript::new([Turn::text("hello")]))])
}

/// Expects that the model was asked with this key and no other.
fn check_asked_with(server: &ModelServer, key: &str) {
    let asked = server.requests();
    assert!(!asked.is_empty());
    let bearer = format!("Bearer {key}");
    assert!(asked.iter().all(|request| request.auth.as_deref() == Some(&bearer)), "{asked:?}");
}

/// Looks through every process and every file of the box, after the key was used. The key is told in two pieces that
/// are none, and put together where nobody else looks.
const SEARCH: &str = r#"
    use File::Find;
    show(model("dummy-of-this-box", $chat));
    my $key = join "", @ARGV[1, 2];
    my @processes = glob("/proc/[0-9]*");
    my ($read, $shims, @found) = (0, 0);
    sub look {
        my ($path) = @_;
        open(my $file, "<", $path) or return;
        local $/;
        my $text = <$file> // "";
        $read++;
        push @found, $path if index($text, $key) >= 0;
        $shims++ if $path =~ /comm$/ && $text =~ /^bottle-shim/;
    }
    for my $process (@processes) { look("$process/$_") for "environ", "cmdline", "comm" }
    my @folders = grep { -d } map { "/$_" } qw(harness-state workspace tmp dev/shm run etc var home root opt);
    find({ no_chdir => 1, wanted => sub { look($_) if -f && -s _ < 10_000_000 } }, @folders);
    print "200 found: @found\n";
    print "200 ", ($read > 10 ? "looked" : "looked at $read only"), "\n";
    print "200 shims: $shims\n";
    show(model("dummy-of-this-box", $chat));
"#;

async fn nothing_in_the_box_knows_the_key(rig: &Rig) {
    let (key, server) = (key(), server());
    let outing = asking(rig, route(&server.base_url("run")), SEARCH, &key);
    let (head, tail) = key.split_at(5);
    let pieces = [head.to_owned(), tail.to_owned()];
    let back = outing.with(|spec| spec.argv.extend(pieces)).run_ok().await;
    let answers = back.answers();
    assert_eq!(answers[1..4], [(200, "found: "), (200, "looked"), (200, "shims: 0")], "{back:#?}");
    assert_eq!((answers[0].0, answers[4].0), (200, 200), "{back:#?}");
    check_asked_with(&server, &key);
    assert_eq!(holding(rig.dir(), &key), [""; 0].map(std::path::PathBuf::from));
}

/// While a call is under way, the host has the key in one process's environment and on no command line; no file has it
/// then or afterwards.
async fn the_key_is_the_shims_alone(rig: &Rig) {
    let (key, server) = (key(), server());
    let script = r#"show(model("dummy-of-this-box", $chat)); make("asked"); until_there("go")"#;
    let out = asking(rig, route(&server.base_url("run")), script, &key).start();
    let asked = rig.workspace().join("asked");
    eventually("a call", || asked.exists()).await;
    let shim = out.box_dir.load_shim().expect("a record").expect("a shim").process.pid;
    assert_eq!(environs_with(&key), [shim]);
    assert_eq!(words_with(&key), [""; 0]);
    assert!(holding(rig.dir(), &key).is_empty(), "{:?}", holding(rig.dir(), &key));
    fs::write(rig.workspace().join("go"), "").expect("a file");
    let back = out.end().await.ok();
    assert_eq!(back.answer().0, 200);
    check_asked_with(&server, &key);
    assert!(holding(rig.dir(), &key).is_empty(), "{:?}", holding(rig.dir(), &key));
}

/// A box that asks with a key from this source, which the shim is not given as a variable.
fn asking_from<'a>(rig: &'a Rig, server: &ModelServer, key: KeySource) -> Outing<'a> {
    let spec = ModelRouteSpec { key, ..route(&server.base_url("run")) };
    asking(rig, spec, r#"show(model("dummy-of-this-box", $chat))"#, "unused")
}

async fn a_key_in_a_file_is_read_by_the_shim(rig: &Rig) {
    let (key, server) = (key(), server());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("key");
    fs::write(&file, format!("{key}\n")).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("our own file");
    let back = asking_from(rig, &server, KeySource::File(file)).run_ok().await;
    assert_eq!(back.answer().0, 200);
    check_asked_with(&server, &key);
    assert!(holding(rig.dir(), &key).is_empty());
}

async fn a_key_from_a_command_is_fetched_by_the_shim(rig: &Rig) {
    let (key, server) = (key(), server());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("vault");
    fs::write(&file, &key).expect("a file");
    let command = vec!["cat".to_owned(), file.display().to_string()];
    let back = asking_from(rig, &server, KeySource::Command(command)).run_ok().await;
    assert_eq!(back.answer().0, 200);
    check_asked_with(&server, &key);
    assert!(holding(rig.dir(), &key).is_empty());
}

async fn a_key_that_is_missing_is_told(rig: &Rig) {
    let server = server();
    let source = KeySource::Env("NET_TEST_NO_SUCH_KEY".to_owned());
    let back = asking_from(rig, &server, source).run_ok().await;
    let (status, text) = back.answer();
    assert_eq!(status, 502);
    assert!(text.contains("its key could not be read on the host"), "{text}");
    assert_eq!((back.log[0].verdict, back.reasons()[0]), (EgressVerdict::Failed, "no_key"));
    assert!(server.requests().is_empty());
}

/// Servers repeat a key that they do not know, and boxes keep what they are told.
async fn a_key_that_the_server_repeats_never_reaches_the_box(rig: &Rig) {
    let key = key();
    let server = Server::start(|seen, stream| {
        let repeated = seen.header("authorization").unwrap_or_default().to_owned();
        let header = format!("x-seen: {repeated}");
        stream.write_all(&whole("400 Bad Request", &[&header], &format!("unknown: {repeated}")))
    });
    let spec = route(&format!("http://127.0.0.1:{}", server.port()));
    let script = r#"
        my @heard = model("dummy-of-this-box", $chat);
        show(@heard);
        warn $heard[1];
        print "200 ", (index("@heard", join "", @ARGV[1, 2]) < 0 ? "unseen" : "seen"), "\n";
        open(my $log, ">", "/harness-state/logs/agent.log") or die;
        print $log "@heard";
    "#;
    let outing = asking(rig, spec, script, &key);
    let (head, tail) = key.split_at(5);
    let pieces = [head.to_owned(), tail.to_owned()];
    let back = outing.with(|spec| spec.argv.extend(pieces)).run_ok().await;
    let expected = format!("unknown: Bearer {}", "*".repeat(key.len()));
    assert_eq!(back.answers(), [(400, expected.as_str()), (200, "unseen")], "{back:#?}");
    let log = fs::read_to_string(rig.harness_state().join("logs/agent.log")).expect("a log");
    assert!(log.contains("x-seen: Bearer ****"), "{log}");
    assert!(holding(rig.dir(), &key).is_empty(), "{:?}", holding(rig.dir(), &key));
}
