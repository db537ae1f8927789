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
    insta::assert_snapshot!(shown, @"");
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
    insta::assert_snapshot!(shown, @"");
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
    insta::assert_snapshot!(shown, @"");
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
    insta::assert_snapshot!(shown, @"");
}
