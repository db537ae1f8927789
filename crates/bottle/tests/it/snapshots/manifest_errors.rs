//! Manifests with a mistake: `check` names the file, the line or the key, and the rule.

use crate::support::Person;

/// Standard error of `check` for a manifest with this text.
fn check(person: &Person, kind: &str, text: &str) -> String {
    person.manifest(&format!("{kind}s"), "odd", text);
    let output = person.run(&[kind, "check", "odd"]);
    assert_eq!(output.status, Some(2), "{}", output.snapshot());
    format!("{text}\n  {}\n", person.hermetic.redact(&output.stderr).trim_end())
}

/// The same for several texts, with an empty line between them.
fn check_all(kind: &str, texts: &[&str]) -> Option<String> {
    let person = Person::new()?;
    Some(texts.iter().map(|text| check(&person, kind, text)).collect::<Vec<_>>().join("\n"))
}

#[test]
fn agents_that_cannot_be_read() {
    let texts = [
        "",
        "provider",
        "provider = \"claude\"\nmodle = \"x\"",
        "provider = 3",
        "provider = \"claude\"\nprovider = \"pi\"",
        "provider = \"pi\"\n[limits]\ntimeout = 3",
        "provider = \"pi\"\n[limits]\nmemory_mb = -1",
        "provider = \"pi\"\n[egress]\npermit_private = [\"localhost\"]",
        "provider = \"pi\"\n[spend]\nmax_usd = \"3\"",
    ];
    let Some(shown) = check_all("agent", &texts) else { return };
    insta::assert_snapshot!(shown, @r#"

      error: [ROOT]/home/.bot-bottle/agents/odd.toml: line 1: missing field `provider`

    provider
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: line 1: key with no value, expected `=`

    provider = "claude"
    modle = "x"
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: line 2: unknown field `modle`, expected one of `provider`, `agent`, `model`, `variant`, `persona`, `prompt`, `bottle`, `command`, `script`, `protect`, `allow_paths`, `check`, `check_timeout_secs`, `check_rounds`, `plan`, `sign_commits`, `pull_labels`, `server`, `egress`, `limits`, `spend`

    provider = 3
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: line 1: invalid type: integer `3`, expected a string

    provider = "claude"
    provider = "pi"
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: line 2: duplicate key

    provider = "pi"
    [limits]
    timeout = 3
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: line 3: unknown field `timeout`, expected one of `timeout_secs`, `silence_secs`, `memory_mb`, `disk_mb`, `processes`, `cpu_percent`

    provider = "pi"
    [limits]
    memory_mb = -1
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: line 3: invalid value: integer `-1`, expected u64

    provider = "pi"
    [egress]
    permit_private = ["localhost"]
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: line 3: invalid socket address syntax

    provider = "pi"
    [spend]
    max_usd = "3"
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: line 3: invalid type: string "3", expected f64
    "#);
}

#[test]
fn agents_with_a_value_that_cannot_be() {
    let texts = [
        "provider = \"clod\"",
        "provider = \"scripted\"",
        "provider = \"command\"",
        "provider = \"command\"\ncommand = []",
        "provider = \"pi\"\nbottle = \"../x\"",
        "provider = \"pi\"\nprotect = [\"a[\"]",
        "provider = \"pi\"\n[server]\nkey_env = \"A\"\nkey_command = \"b\"",
        "provider = \"pi\"\n[limits]\ntimeout_secs = 0",
        "provider = \"pi\"\n[limits]\ntimeout_secs = 86401",
    ];
    let Some(shown) = check_all("agent", &texts) else { return };
    insta::assert_snapshot!(shown, @r#"
    provider = "clod"
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: provider: there is no agent "clod"; choose one of: opencode, codex, claude, pi, command, scripted

    provider = "scripted"
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: script: the provider 'scripted' needs a script

    provider = "command"
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: command: the provider 'command' needs a command

    provider = "command"
    command = []
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: command: the provider 'command' needs a command

    provider = "pi"
    bottle = "../x"
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: bottle: "../x" is not a valid bottle name: 1 to 64 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit

    provider = "pi"
    protect = ["a["]
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: protect: 'a[' is not a path pattern: unclosed character class; missing ']'

    provider = "pi"
    [server]
    key_env = "A"
    key_command = "b"
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: server: give one of key_env, key_file and key_command

    provider = "pi"
    [limits]
    timeout_secs = 0
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: limits.timeout_secs: give 1 to 86400 seconds

    provider = "pi"
    [limits]
    timeout_secs = 86401
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: limits.timeout_secs: give 1 to 86400 seconds
    "#);
}

#[test]
fn agents_that_may_reach_or_spend_what_cannot_be() {
    let texts = [
        "provider = \"pi\"\n[egress]\nprofile = \"all\"",
        "provider = \"pi\"\n[egress]\nallow = [\"*\"]",
        "provider = \"pi\"\n[egress]\nallow = [\"https://x.example/\"]",
        "provider = \"pi\"\n[spend]\nmax_usd = 3.0",
        "provider = \"pi\"\n[spend]\ninput_price = -1.0",
        "provider = \"pi\"\n[spend]\nmax_usd = nan\ninput_price = 1.0\noutput_price = 1.0",
    ];
    let Some(shown) = check_all("agent", &texts) else { return };
    insta::assert_snapshot!(shown, @r#"
    provider = "pi"
    [egress]
    profile = "all"
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: egress.profile: no egress profile is called "all"; choose none, model-only, packages or open

    provider = "pi"
    [egress]
    allow = ["*"]
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: egress.allow: "*" would allow every host; choose the profile open if that is meant

    provider = "pi"
    [egress]
    allow = ["https://x.example/"]
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: egress.allow: "https://x.example/" has no valid port after the colon

    provider = "pi"
    [spend]
    max_usd = 3.0
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: spend.max_usd: dollars are counted with input_price and output_price

    provider = "pi"
    [spend]
    input_price = -1.0
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: spend: give amounts from 0

    provider = "pi"
    [spend]
    max_usd = nan
    input_price = 1.0
    output_price = 1.0
      error: [ROOT]/home/.bot-bottle/agents/odd.toml: spend: give amounts from 0
    "#);
}

#[test]
fn bottles_with_a_mistake() {
    let texts = [
        "imgae = \"x\"",
        "image = \"x\"\nroot = \"/r\"",
        "root = \"r\"",
        "packages = [\"a;b\"]",
        "packages = [\"\"]",
        "packages = [\"-rf\"]",
        "setup_timeout_secs = \"long\"",
        "[[mount]]\nhost = \"/srv\"",
        "[[mount]]\nhost = \"srv\"\ninside = \"/opt/x\"",
        "[[mount]]\nhost = \"/srv\"\ninside = \"/etc/x\"",
        "[[mount]]\nhost = \"/srv\"\ninside = \"/opt/../etc\"",
        "[[mount]]\nhost = \"/srv\"\ninside = \"/opt/forklift/x\"",
    ];
    let Some(shown) = check_all("bottle", &texts) else { return };
    insta::assert_snapshot!(shown, @r#"
    imgae = "x"
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: line 1: unknown field `imgae`, expected one of `image`, `root`, `packages`, `setup`, `setup_timeout_secs`, `mount`

    image = "x"
    root = "/r"
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: image: give an image or a root, not both

    root = "r"
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: root: give an absolute path

    packages = ["a;b"]
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: packages: 'a;b' is not the name of a program

    packages = [""]
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: packages: '' is not the name of a program

    packages = ["-rf"]
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: packages: '-rf' is not the name of a program

    setup_timeout_secs = "long"
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: line 1: invalid type: string "long", expected u64

    [[mount]]
    host = "/srv"
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: line 1: missing field `inside`

    [[mount]]
    host = "srv"
    inside = "/opt/x"
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: mount.host: srv is not an absolute path

    [[mount]]
    host = "/srv"
    inside = "/etc/x"
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: mount.inside: '/etc/x' cannot be; choose a path below /opt

    [[mount]]
    host = "/srv"
    inside = "/opt/../etc"
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: mount.inside: '/opt/../etc' cannot be; choose a path below /opt

    [[mount]]
    host = "/srv"
    inside = "/opt/forklift/x"
      error: [ROOT]/home/.bot-bottle/bottles/odd.toml: mount.inside: '/opt/forklift/x' cannot be; choose a path below /opt
    "#);
}
