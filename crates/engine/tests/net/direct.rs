//! Past the proxy: a box with a way out has no other one. The attempts are those of the abuse kit, and nothing of them
//! is in the log, because nothing of them came by.

use testkit::abuse::{Attempt, Canaries};

use crate::outing::Outing;
use crate::server::Server;
use crate::support::{Rig, on_every_backend};

/// Makes a test of each attempt, by its name with underscores.
macro_rules! attempts {
    ($($name:ident),+ $(,)?) => {
        on_every_backend!($($name),+, the_permitted_address_without_the_proxy, every_other_port_of_the_box);

        $(async fn $name(rig: &Rig) {
            check(rig, stringify!($name)).await;
        })+
    };
}

attempts! {
    metadata,
    private_ranges,
    public_addresses,
    host_addresses,
    interfaces,
    host_loopback,
    abstract_socket,
    vsock,
    raw_sockets,
    odd_families,
    dns,
}

async fn check(rig: &Rig, name: &str) {
    let attempt = Attempt::named(&name.replace('_', "-"));
    let host = tempfile::tempdir().expect("a folder of the host");
    let canaries = Canaries::start(host.path());
    let server = Server::saying("hello");
    let outing = Outing::argv(rig, &["sh", "-c", attempt.script]).reach(server.port());
    let back = outing.with(|spec| spec.env.extend(canaries.env())).run_ok().await;
    assert_eq!(attempt.judge(&back.stdout), Ok(()), "{back:#?}");
    assert_eq!(back.summary().totals.requests, 0, "{back:#?}");
    assert_eq!(server.connections(), 0);
}

/// Names by name servers over TCP as well as the permitted server itself: the box has a loopback of its own.
async fn the_permitted_address_without_the_proxy(rig: &Rig) {
    let server = Server::saying("hello");
    let script = r#"
        for (@ARGV) {
            my ($host, $port) = split / /;
            my $six = $host =~ /:/;
            my $address = inet_pton($six ? AF_INET6 : AF_INET, $host);
            socket(my $socket, $six ? AF_INET6 : AF_INET, SOCK_STREAM, 0) or next;
            alarm 5;
            my $there = connect($socket, $six ? pack_sockaddr_in6($port, $address) : pack_sockaddr_in($port, $address));
            print "reached $host $port\n" if $there;
            print "$host $port: $!\n" unless $!{ECONNREFUSED} || $!{ENETUNREACH} || $!{EADDRNOTAVAIL};
        }
    "#;
    let port = server.port().to_string();
    let mut targets = ["127.0.0.1", "::1", "0.0.0.0"].map(|host| format!("{host} {port}")).to_vec();
    let names = ["127.0.0.53", "127.0.0.1", "192.0.2.53", "10.0.0.2", "169.254.169.253", "::1"];
    targets.extend(names.map(|host| format!("{host} 53")));
    targets.extend(host::net::addresses().iter().map(|host| format!("{host} {port}")));
    targets.extend(host::net::addresses().iter().map(|host| format!("{host} 53")));
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let back = Outing::perl_with(rig, script, &targets).reach(server.port()).run_ok().await;
    assert_eq!(back.stdout, "", "{back:#?}");
    assert_eq!(server.connections(), 0);
}

/// Of all ports of the box's loopback, the proxy's alone is open.
async fn every_other_port_of_the_box(rig: &Rig) {
    let script = r#"
        for my $port (1 .. 65535) {
            socket(my $socket, AF_INET, SOCK_STREAM, 0) or die;
            # A port that is not bound may be given to us for our own end, and we would meet ourselves.
            next unless connect($socket, pack_sockaddr_in($port, inet_aton("127.0.0.1")));
            my ($own) = unpack_sockaddr_in(getsockname($socket));
            print "$port\n" unless $own == $port;
        }
    "#;
    let back = Outing::perl(rig, script).run_ok().await;
    assert_eq!(back.stdout, "3128\n", "{back:#?}");
}
