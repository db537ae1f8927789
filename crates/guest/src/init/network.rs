//! The interfaces and routes of the box: loopback, and nothing else that could carry a packet.

use std::io;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

const ROUTES_V4: &str = "/proc/net/route";
const ROUTES_V6: &str = "/proc/net/ipv6_route";
const LOOPBACK: &str = "lo";

/// Interfaces and routes out of the box. Sorted and without repeats.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WaysOut {
    /// Interfaces that are up. Even without a route a socket can be bound to one and reach its neighbours.
    pub(crate) up: Vec<String>,
    pub(crate) routed: Vec<String>,
}

/// Lists the ways out. An interface that is down (kernels put tunnels like `sit0` into every namespace) does not count.
pub(crate) fn observe_ways_out() -> io::Result<WaysOut> {
    let mut up: Vec<String> = getifaddrs()?
        .filter(|entry| entry.flags.contains(InterfaceFlags::IFF_UP))
        .map(|entry| entry.interface_name)
        .collect();
    let mut routed = parse_routes_v4(&load_table(ROUTES_V4)?);
    routed.extend(parse_routes_v6(&load_table(ROUTES_V6)?));
    for names in [&mut up, &mut routed] {
        names.retain(|name| name != LOOPBACK);
        names.sort();
        names.dedup();
    }
    Ok(WaysOut { up, routed })
}

impl WaysOut {
    pub(crate) fn is_none(&self) -> bool {
        self.up.is_empty() && self.routed.is_empty()
    }

    pub(crate) fn render(&self) -> String {
        if self.is_none() {
            return "only loopback is up".to_owned();
        }
        format!("up: {}; routes over: {}", self.up.join(" "), self.routed.join(" "))
    }
}

/// Loads a table. A kernel without the protocol has neither the file nor routes.
fn load_table(path: &str) -> io::Result<String> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other,
    }
}

/// Parses the table. The interface is the first column; the first line names the columns.
fn parse_routes_v4(text: &str) -> Vec<String> {
    let names = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// Parses the table. The interface is the last column; there is no header line.
fn parse_routes_v6(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.split_whitespace().last());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_of_a_v4_route_comes_first() {
        let text = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
            eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
            eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
        assert_eq!(parse_routes_v4(text), ["eth0", "eth0"]);
        assert!(parse_routes_v4(text.lines().next().unwrap()).is_empty());
        assert!(parse_routes_v4("").is_empty());
    }

    #[test]
    fn the_interface_of_a_v6_route_comes_last() {
        let text = "00000000000000000000000000000001 80 00000000000000000000000000000000 00 \
            00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo\n\
            fe800000000000000000000000000000 40 00000000000000000000000000000000 00 \
            00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0\n";
        assert_eq!(parse_routes_v6(text), ["lo", "eth0"]);
        assert!(parse_routes_v6("").is_empty());
    }

    #[test]
    fn an_interface_without_a_route_is_a_way_out_too() {
        let ways = WaysOut { up: vec!["eth0".to_owned()], routed: Vec::new() };
        assert!(!ways.is_none());
        assert_eq!(ways.render(), "up: eth0; routes over: ");
    }

    #[test]
    fn loopback_alone_is_no_way_out() {
        assert_eq!(WaysOut::default().render(), "only loopback is up");
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let ways = observe_ways_out().unwrap();
        assert!(!ways.up.contains(&LOOPBACK.to_owned()));
    }
}
