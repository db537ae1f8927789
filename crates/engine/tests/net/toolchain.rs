//! cargo in a box, with this build's own toolchain lent to it, through the profile `packages`, where the registry can be
//! reached from this machine.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use egress::policy::EgressProfile;
use sandbox::spec::ProgramMount;
use testkit::part::missing;

use crate::outing::{Outing, PROXY};
use crate::support::{Rig, on_every_backend};

on_every_backend! {
    cargo_fetches_a_small_package,
}

const HOSTS: [&str; 2] = ["index.crates.io", "static.crates.io"];

const FETCH: &str = "cd /tmp && cargo init -q --vcs none x && cd x && cargo add -q itoa@1 && cargo fetch -q && \
     ls /tmp/cargo/registry/cache/*/itoa-1*.crate";

async fn cargo_fetches_a_small_package(rig: &Rig) {
    let Some(addresses) = HOSTS.iter().map(|host| reachable(host)).collect::<Option<Vec<_>>>()
    else {
        return missing("registry", "the crate registry cannot be reached");
    };
    let cargo = host::env::var("CARGO").unwrap_or_default();
    let Some(toolchain) = Path::new(&cargo).parent().and_then(Path::parent) else {
        return missing("registry", "CARGO does not name a toolchain");
    };
    let lent = ProgramMount { host: toolchain.to_path_buf(), inside: "/opt/rust".to_owned() };
    let variables = [
        ("PATH", "/opt/rust/bin:/usr/bin:/bin"),
        ("HOME", "/tmp"),
        ("CARGO_HOME", "/tmp/cargo"),
        ("CARGO_HTTP_CAINFO", "/harness-state/run/ca.pem"),
    ];
    let outing = Outing::argv(rig, &["sh", "-c", FETCH])
        .profile(EgressProfile::Packages)
        .permit_these(addresses.into_iter().flatten())
        .with(|spec| {
            spec.programs.push(lent);
            spec.env.extend(egress::proxy_env(PROXY));
            spec.env.extend(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
            lend_certificates(&spec.guest_dir());
        });
    let back = outing.run_ok().await;
    let hosts: Vec<_> = back.summary().per_host.iter().map(|it| it.host.as_str()).collect();
    // The index says where the packages themselves are.
    assert!(hosts.contains(&HOSTS[0]), "{hosts:?}");
}

/// The authorities that this machine trusts, which need not be those of an image.
fn lend_certificates(guest: &Path) {
    std::fs::create_dir_all(guest).expect("a folder");
    let bundle = "/etc/ssl/certs/ca-certificates.crt";
    std::fs::copy(bundle, guest.join("ca.pem")).expect("certificates");
}

/// The addresses behind a name, if something answers there.
fn reachable(host: &str) -> Option<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> = (host, 443).to_socket_addrs().ok()?.collect();
    let answers = |it: &SocketAddr| TcpStream::connect_timeout(it, Duration::from_secs(3)).is_ok();
    addresses.iter().any(answers).then_some(addresses)
}
