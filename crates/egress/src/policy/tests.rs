//! The policy as a table of names, ports and addresses.

use super::*;

fn policy(profile: EgressProfile) -> EgressPolicy {
    let rule = |text: &str| AllowRule::parse(text).unwrap();
    EgressPolicy {
        allow: vec![rule("docs.example.org"), rule("*.example.net"), rule("tls.example.com:443")],
        deny: vec![rule("bad.example.net"), rule("*.evil.example.net")],
        extra_package_hosts: vec![rule("npm.corp.example")],
        permit_private: vec!["10.1.2.3:4873".parse().unwrap()],
        ..EgressPolicy::new(profile)
    }
}

fn check(profile: EgressProfile, target: &str, expected: &str) {
    let (host, port) = target.rsplit_once(':').unwrap();
    let judged = policy(profile)
        .judge_name(&HostName::parse(host).unwrap(), port.parse().unwrap())
        .map_or_else(|refusal| refusal.code(), |()| "allowed");
    assert_eq!(judged, expected, "{profile} {target}");
}

#[test]
fn profile_none_lets_nothing_out_whatever_the_rules_say() {
    check(EgressProfile::None, "docs.example.org:443", "profile_none");
    check(EgressProfile::None, "registry.npmjs.org:443", "profile_none");
}

#[test]
fn model_only_knows_the_rules_but_no_registry() {
    check(EgressProfile::ModelOnly, "docs.example.org:443", "allowed");
    check(EgressProfile::ModelOnly, "registry.npmjs.org:443", "not_allowed");
    check(EgressProfile::ModelOnly, "npm.corp.example:443", "not_allowed");
}

#[test]
fn packages_knows_registries_the_hosts_own_and_the_rules() {
    for host in ["registry.npmjs.org", "files.pythonhosted.org", "index.crates.io"] {
        check(EgressProfile::Packages, &format!("{host}:443"), "allowed");
    }
    check(EgressProfile::Packages, "npm.corp.example:443", "allowed");
    check(EgressProfile::Packages, "a.b.example.net:80", "allowed");
    check(EgressProfile::Packages, "example.net:80", "not_allowed");
    check(EgressProfile::Packages, "notexample.net:443", "not_allowed");
    check(EgressProfile::Packages, "example.org:443", "not_allowed");
    check(EgressProfile::Packages, "tls.example.com:80", "not_allowed");
    check(EgressProfile::Packages, "REGISTRY.npmjs.org.:443", "allowed");
}

#[test]
fn a_deny_rule_outranks_every_permission() {
    check(EgressProfile::Packages, "bad.example.net:443", "deny_rule");
    check(EgressProfile::Open, "bad.example.net:443", "deny_rule");
    check(EgressProfile::Open, "x.evil.example.net:443", "deny_rule");
}

#[test]
fn open_means_any_name_but_not_any_port() {
    check(EgressProfile::Open, "anything.example:80", "allowed");
    check(EgressProfile::Open, "anything.example:22", "port");
    check(EgressProfile::Packages, "registry.npmjs.org:8443", "port");
}

#[test]
fn a_permitted_address_opens_its_port_and_only_at_that_address() {
    check(EgressProfile::Open, "mirror.example:4873", "allowed");
    let judged = |address: &str| {
        let addresses = [address.parse().unwrap()];
        policy(EgressProfile::Open).judge_addresses(4873, &addresses).map_err(|r| r.code())
    };
    assert_eq!(judged("10.1.2.3:4873"), Ok(()));
    assert_eq!(judged("10.1.2.4:4873"), Err("not_public"));
    assert_eq!(judged("93.184.216.34:4873"), Err("port"));
}

#[test]
fn one_private_answer_spoils_all_the_others() {
    let judged = |all: &[&str]| {
        let addresses: Vec<_> = all.iter().map(|text| text.parse().unwrap()).collect();
        policy(EgressProfile::Open).judge_addresses(443, &addresses).map_err(|r| r.code())
    };
    assert_eq!(judged(&["93.184.216.34:443", "[2606:4700::1]:443"]), Ok(()));
    assert_eq!(judged(&["93.184.216.34:443", "192.168.0.1:443"]), Err("not_public"));
    assert_eq!(judged(&["10.1.2.3:443"]), Err("not_public"));
    assert_eq!(judged(&[]), Err("no_address"));
}

#[test]
fn a_policy_is_read_from_text_with_defaults_for_the_rest() {
    let text = r#"{"profile":"packages","allow":["*.Example.org"],"limits":{"bytes_up":5}}"#;
    let policy: EgressPolicy = serde_json::from_str(text).unwrap();
    assert_eq!(policy.allow[0].to_string(), "*.example.org");
    assert_eq!((policy.limits.bytes_up, policy.limits.connections), (5, 256));
    let again: EgressPolicy =
        serde_json::from_str(&serde_json::to_string(&policy).unwrap()).unwrap();
    assert_eq!(again, policy);
    let error = serde_json::from_str::<EgressPolicy>(r#"{"profile":"open","allow":["*"]}"#);
    assert!(error.unwrap_err().to_string().contains("profile open"));
}
