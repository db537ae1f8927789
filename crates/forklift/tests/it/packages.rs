//! Package managers in a box, through the profile `packages`, where a registry can be reached from this machine.

use std::net::{SocketAddr, ToSocketAddrs};

use testkit::part::missing;

use crate::support::{MERGE, Person};

/// The addresses behind a registry's name, if this machine knows the name and something answers there.
fn reachable(host: &str, port: u16) -> Option<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs().ok()?.collect();
    let limit = std::time::Duration::from_secs(3);
    let answers =
        addresses.iter().any(|it| std::net::TcpStream::connect_timeout(it, limit).is_ok());
    answers.then_some(addresses)
}

/// Runs `fetch` in a box that may reach package registries; `program` must be in the box. A registry that this machine
/// knows under an address that is not public is one that its operator chose, so the operator permits it.
fn fetches(program: &str, host: &str, port: u16, fetch: &str) {
    let Some(addresses) = reachable(host, port) else {
        missing("registry", &format!("{host} cannot be reached"));
        return;
    };
    let Some(person) = Person::new() else { return };
    let script = format!(
        "[[step]]\nrun = '''command -v {program} || exit 40'''\n[[step]]\nrun = '''{fetch}'''\n{MERGE}"
    );
    let mut flags = vec!["--egress".to_owned(), "packages".to_owned()];
    for address in &addresses {
        flags.extend(["--permit-private".to_owned(), address.to_string()]);
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let output = person.run(&script, &flags);
    if output.stdout.contains("status 40") {
        missing("registry", &format!("{program} is not below this machine's /usr"));
        return;
    }
    assert_eq!(output.status, Some(0), "{}", output.snapshot());
    assert!(output.stderr.contains(&format!("reached: {host}")), "{}", output.stderr);
    let refused = output.stderr.lines().any(|line| line.contains("blocked: example.org"));
    assert!(refused, "what is on no list must be refused: {}", output.stderr);
}

/// Something that is on no list, tried in every test.
const STRAY: &str = "(perl -e 'use Socket; socket(S,PF_INET,SOCK_STREAM,0); \
    connect(S,sockaddr_in(3128,inet_aton(\"127.0.0.1\"))); syswrite(S,\"CONNECT example.org:443 HTTP/1.1\\r\\nHost: example.org:443\\r\\n\\r\\n\"); \
    sysread(S,$a,12); exit($a =~ /403/ ? 0 : 1)')";

#[test]
fn npm_fetches_a_small_package() {
    let fetch =
        format!("{STRAY} && cd /tmp && npm pack is-number@7.0.0 && test -s is-number-7.0.0.tgz");
    fetches("npm", "registry.npmjs.org", 443, &fetch);
}

#[test]
fn pip_fetches_a_small_package() {
    let fetch =
        format!("{STRAY} && cd /tmp && pip3 download --no-deps six==1.16.0 && ls six-1.16.0*");
    fetches("pip3", "pypi.org", 443, &fetch);
}

#[test]
fn cargo_fetches_a_small_package() {
    let fetch = format!(
        "{STRAY} && cd /tmp && cargo init -q --vcs none x && cd x && cargo add -q itoa@1 && cargo fetch -q"
    );
    fetches("cargo", "index.crates.io", 443, &fetch);
}

#[test]
fn apt_fetches_its_lists() {
    let fetch = format!(
        "{STRAY} && mkdir -p /tmp/apt/lists/partial /tmp/apt/cache/archives/partial && touch /tmp/apt/status && \
         echo 'deb [trusted=yes] http://deb.debian.org/debian bookworm main' > /tmp/apt/sources && \
         apt-get -o Dir::Etc::sourcelist=/tmp/apt/sources -o Dir::Etc::sourceparts=- -o Dir::State=/tmp/apt \
         -o Dir::State::status=/tmp/apt/status -o Dir::Cache=/tmp/apt/cache -o APT::Sandbox::User= \
         -o Acquire::Languages=none update; ls /tmp/apt/lists | grep -q binary"
    );
    fetches("apt-get", "deb.debian.org", 80, &fetch);
}
