//! Addresses of this machine, for checks that they cannot be reached.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};

/// Returns this machine's own addresses and its gateways, loopback left out.
pub fn addresses() -> Vec<IpAddr> {
    let mut found: BTreeSet<IpAddr> = interface_addresses().collect();
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    found.extend(parse_gateways(&routes).map(IpAddr::V4));
    found.into_iter().collect()
}

fn interface_addresses() -> impl Iterator<Item = IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    interfaces
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        })
        .filter(|address| !address.is_loopback() && !is_link_local(*address))
}

/// Returns whether an address is link-local; such an address is ambiguous without its link.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

/// Parses addresses, which the kernel prints as numbers in the byte order of the machine.
fn parse_gateways(text: &str) -> impl Iterator<Item = Ipv4Addr> + '_ {
    text.lines()
        .skip(1)
        .filter_map(|line| line.split_ascii_whitespace().nth(2))
        .filter_map(|field| u32::from_str_radix(field, 16).ok())
        .map(|number| Ipv4Addr::from(number.to_ne_bytes()))
        .filter(|address| !address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_are_read_from_the_route_table() {
        let text = "Iface\tDestination\tGateway\tFlags\n\
                    eth0\t00000000\t0101A8C0\t0003\n\
                    eth0\t0001A8C0\t00000000\t0001\n";
        let found: Vec<_> = parse_gateways(text).collect();
        assert_eq!(found, [Ipv4Addr::from(0x0101_A8C0_u32.to_ne_bytes())]);
    }
}
