//! Machines on which a run does not work: the reason and the remedy are said.

use testkit::hermetic::Hermetic;
use testkit::repo::Fork;

use crate::support::{COMMIT, Person};

const REFUSED: &str = "bwrap: setting up uid map: Permission denied";

#[test]
fn the_verdict_has_the_words_of_a_bubblewrap_that_is_refused_and_the_remedy() {
    let hermetic = Hermetic::new().with_refused_bwrap(REFUSED);
    let fork = Fork::new(&hermetic);
    let person = Person { hermetic, fork };
    person.agent("worker", "");
    let output = person.start(COMMIT, &[]);
    assert_eq!(output.status, Some(125), "{}", output.snapshot());
    let verdict = output.stdout.lines().find(|line| line.starts_with("verdict"));
    let verdict = verdict.unwrap_or_else(|| panic!("{}", output.snapshot()));
    assert!(verdict.contains(&format!("the box never got ready: {REFUSED}; ")), "{verdict}");
    assert!(verdict.contains("user namespaces"), "{verdict}");
}

#[test]
fn doctor_fails_for_an_agent_that_cannot_be_started() {
    let Some(person) = Person::new() else { return };
    person.script(COMMIT);
    assert_eq!(person.run(&["doctor"]).status, Some(0));
    person.manifest(
        "agents",
        "broken",
        "provider = \"command\"\ncommand = [\"no-such-program\"]\n",
    );
    let output = person.run(&["doctor"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stdout.contains("BAD  broken: cannot be started: "), "{}", output.snapshot());
    assert!(output.stderr.contains("no-such-program"), "{}", output.snapshot());
}

#[test]
fn doctor_and_config_check_refuse_what_serve_refuses() {
    let Some(person) = Person::new() else { return };
    person.script(COMMIT);
    let path = person.home().join("serve.toml");
    std::fs::write(&path, "listen = \"0.0.0.0:8473\"\n").expect("written");
    let path = path.to_str().expect("UTF-8");
    for args in [&["doctor"][..], &["doctor", "--config", path], &["config", "check", path]] {
        let output = person.run(args);
        assert_eq!(output.status, Some(2), "{}", output.snapshot());
        assert!(output.stderr.contains("would be open to everyone"), "{}", output.snapshot());
    }
    std::fs::write(path, "listen = [1,\n").expect("written");
    let output = person.run(&["config", "check", path]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("line "), "{}", output.snapshot());
    assert!(!output.stderr.contains("\\n"), "{}", output.snapshot());
    std::fs::write(path, "max_bottles = 2\n").expect("written");
    let output = person.run(&["doctor"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stderr.contains("no repository is served"), "{}", output.snapshot());
}

/// A server that doctor calls good starts, and its schedules dispatch.
#[test]
fn doctor_looks_at_the_repositories_and_schedules_of_the_server() {
    let Some(person) = Person::new() else { return };
    person.script(COMMIT);
    let forge = person.hermetic.root().join("forge");
    let repo = forge.join("me/greeter.git");
    std::fs::create_dir_all(forge.join("me/greeter.git.forge/threads")).expect("made");
    testkit::repo::Repo::init_bare(&repo);
    let serve = person.home().join("serve.toml");
    let doctor = |repository: &str, agent: &str| {
        let text = format!(
            "listen = \"127.0.0.1:0\"\n[[forge]]\nkind = \"folder\"\nurl = \"file://{}\"\nrepos = [\"me/{repository}\"]\n\
             [[schedule]]\nname = \"nightly\"\nrepo = \"me/{repository}\"\nagent = \"{agent}\"\nprompt = \"Do\"\nevery = \"1d\"\n",
            forge.display()
        );
        std::fs::write(&serve, text).expect("written");
        person.run(&["doctor"])
    };
    let output = doctor("greeter", "worker");
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    let output = doctor("greeter", "nobody");
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(
        output.stdout.contains("BAD  nightly: ") && output.stdout.contains("nobody"),
        "{}",
        output.stdout
    );
    let output = doctor("gone", "worker");
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    assert!(output.stdout.contains("BAD  me/gone: "), "{}", output.stdout);
}

#[test]
fn doctor_reaches_model_servers_as_runs_do() {
    let Some(person) = Person::new() else { return };
    let manifest = "provider = \"command\"\ncommand = [\"sh\"]\nmodel = \"m\"\n\
                    [server]\nurl = \"https://model.invalid\"\nkey_command = \"echo k\"\n";
    person.manifest("agents", "far", manifest);
    let row = |server| {
        let proxy = testkit::connect_proxy::ConnectProxy::start(server);
        let output =
            person.hermetic.run(person.command(&["doctor"]).env("HTTPS_PROXY", proxy.url()));
        let lines = output.stdout.lines().filter(|line| line.starts_with("egress "));
        let row = lines.filter(|line| line.contains("far:")).collect::<String>();
        (row, proxy.heads().concat())
    };
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let (through, heads) = row(listener.local_addr().ok());
    assert!(through.contains("model.invalid:443, through the proxy, answers"), "{through}");
    assert!(heads.starts_with("CONNECT model.invalid:443 "), "{heads}");
    let (refused, _) = row(None);
    assert!(refused.contains("odd") && refused.contains("the proxy refuses it"), "{refused}");
}

/// The printed commands can be typed as they stand.
#[test]
fn the_commands_that_are_printed_work_in_a_home_with_blanks() {
    let Some(person) = Person::new() else { return };
    let home = person.hermetic.root().join("a home");
    let agents = home.join(".bot-bottle/agents");
    std::fs::create_dir_all(&agents).expect("a folder");
    let manifest = "provider = \"scripted\"\nscript = \"worker-script.txt\"\n";
    std::fs::write(agents.join("worker.toml"), manifest).expect("written");
    std::fs::write(agents.join("worker-script.txt"), COMMIT).expect("written");
    let args = ["start", "worker", "--headless", "--prompt", "Do it.", "--backend", "bwrap"];
    let mut command = person.command(&args);
    let output = person.hermetic.run(command.env("HOME", &home));
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    for line in ["bot-bottle diff worker", "bot-bottle apply worker"] {
        assert!(output.stdout.contains(line), "{}", output.stdout);
        let args: Vec<&str> = line.split(' ').skip(1).collect();
        let output = person.hermetic.run(person.command(&args).env("HOME", &home));
        assert_eq!(output.status, Some(0), "{}", output.snapshot());
    }
    assert_eq!(person.fork.checkout.git(&["status", "--porcelain"]), "?? work.txt");
}
