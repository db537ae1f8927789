//! Classification of addresses as public or special-purpose.
//!
//! The special-purpose registries of RFC 6890 and its successors are written out, because a box that reaches
//! one of them reaches this host, its network or its cloud. An IPv6 address that carries an IPv4 address is
//! judged by what it carries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address is on the public internet.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// Network and prefix length.
const CLOSED_V4: [([u8; 4], u32); 17] = [
    ([0, 0, 0, 0], 8),       // this network
    ([10, 0, 0, 0], 8),      // private
    ([100, 64, 0, 0], 10),   // shared by carriers (CGNAT)
    ([127, 0, 0, 0], 8),     // loopback
    ([169, 254, 0, 0], 16),  // link-local, and the metadata of clouds
    ([172, 16, 0, 0], 12),   // private
    ([192, 0, 0, 0], 24),    // protocol assignments
    ([192, 0, 2, 0], 24),    // documentation (TEST-NET-1)
    ([192, 31, 196, 0], 24), // AS112
    ([192, 52, 193, 0], 24), // AMT
    ([192, 88, 99, 0], 24),  // 6to4 relays, withdrawn
    ([192, 168, 0, 0], 16),  // private
    ([192, 175, 48, 0], 24), // AS112
    ([198, 18, 0, 0], 15),   // benchmarking
    ([198, 51, 100, 0], 24), // documentation (TEST-NET-2)
    ([203, 0, 113, 0], 24),  // documentation (TEST-NET-3)
    ([224, 0, 0, 0], 3),     // multicast, reserved and broadcast
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    // The one address outside the ranges by which a cloud offers its host's services to a guest.
    let platform = Ipv4Addr::new(168, 63, 129, 16);
    let is_in = |(network, length): &([u8; 4], u32)| {
        let mask = u32::MAX << (32 - length);
        bits & mask == u32::from_be_bytes(*network)
    };
    address != platform && !CLOSED_V4.iter().any(is_in)
}

/// The first two segments of a network, and its prefix length up to 32; longer ones are below.
const CLOSED_V6: [([u16; 2], u32); 8] = [
    ([0x2001, 0x0db8], 32), // documentation
    ([0x3fff, 0x0000], 20), // documentation
    ([0x5f00, 0x0000], 16), // segment routing
    ([0xfc00, 0x0000], 7),  // unique local
    ([0xfe80, 0x0000], 10), // link-local
    ([0xfec0, 0x0000], 10), // site-local, withdrawn
    ([0xff00, 0x0000], 8),  // multicast
    ([0x0100, 0x0000], 32), // discard-only (100::/64) and the dummy prefix beside it
];

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(carried) = carried_v4(address) {
        return carried.into_iter().all(is_public_v4);
    }
    let s = address.segments();
    let front = u32::from(s[0]) << 16 | u32::from(s[1]);
    let is_in = |(network, length): &([u16; 2], u32)| {
        let mask = u32::MAX << (32 - length);
        front & mask == (u32::from(network[0]) << 16 | u32::from(network[1])) & mask
    };
    // Benchmarking, ORCHID and the other small blocks of 2001::/23 that are not destinations.
    let is_protocol_block = s[0] == 0x2001 && s[1] < 0x0200;
    // All of ::/8 is special: `::`, `::1`, the withdrawn v4-compatible form and the rest.
    s[0] >> 8 != 0 && !is_protocol_block && !CLOSED_V6.iter().any(is_in)
}

/// Returns the IPv4 addresses inside an IPv6 address of a kind that carries them.
fn carried_v4(address: Ipv6Addr) -> Option<Vec<Ipv4Addr>> {
    let s = address.segments();
    let at = |i: usize| Ipv4Addr::from_bits(u32::from(s[i]) << 16 | u32::from(s[i + 1]));
    match s {
        // v4-mapped, and v4-translated (::ffff:0:a.b.c.d).
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => Some(vec![at(6)]),
        // NAT64, the well-known prefix.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => Some(vec![at(6)]),
        // NAT64 for local use: the position of the address depends on the network, so none is trusted.
        [0x64, 0xff9b, 1, ..] => Some(vec![Ipv4Addr::UNSPECIFIED]),
        // 6to4.
        [0x2002, ..] => Some(vec![at(1)]),
        // Teredo: the server in clear, the client inverted.
        [0x2001, 0, ..] => Some(vec![at(2), Ipv4Addr::from_bits(!at(6).to_bits())]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: bool, addresses: &[&str]) {
        for text in addresses {
            assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_addresses_are_public() {
        check(true, &["8.8.8.8", "93.184.216.34", "1.1.1.1", "172.15.255.255", "172.32.0.1"]);
        check(true, &["100.63.255.255", "100.128.0.1", "192.0.1.1", "198.17.0.1", "198.20.0.1"]);
        check(true, &["223.255.255.255", "11.0.0.0", "9.255.255.255", "128.0.0.1", "126.1.1.1"]);
        check(true, &["2606:4700::1111", "2a00:1450:4001::200e", "2001:4860:4860::8888"]);
        check(true, &["2400:cb00::1", "2001:200::1", "2003::1"]);
    }

    #[test]
    fn every_closed_v4_range_is_closed_from_end_to_end() {
        check(false, &["0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255"]);
        check(false, &["100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.255.255"]);
        check(false, &["169.254.0.0", "169.254.169.254", "169.254.255.255"]);
        check(false, &["172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"]);
        check(false, &["192.0.0.0", "192.0.0.192", "192.0.0.255", "192.0.2.1", "192.88.99.1"]);
        check(false, &["198.18.0.0", "198.19.255.255", "198.51.100.7", "203.0.113.7"]);
        check(false, &["224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"]);
        check(false, &["168.63.129.16"]);
    }

    #[test]
    fn every_closed_v6_range_is_closed() {
        check(false, &["::", "::1", "fc00::1", "fd00:ec2::254", "fdff::1", "fe80::1", "febf::1"]);
        check(
            false,
            &["fec0::1", "feff::1", "ff02::1", "ff0e::1", "2001:db8::1", "2001:db8:ffff::1"],
        );
        check(false, &["3fff::1", "3fff:fff::1", "100::1", "100:0:0:1::1", "5f00::1"]);
        check(false, &["2001:2::1", "2001:10::1", "2001:20::1", "2001:1::1"]);
        check(true, &["4000::1", "3ffe::1", "3fff:1000::1"]);
    }

    #[test]
    fn an_address_inside_an_address_is_what_counts() {
        check(false, &["::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1"]);
        check(true, &["::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"]);
        check(false, &["::127.0.0.1", "::8.8.8.8", "::ffff:0:192.168.1.1"]);
        check(false, &["64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::8.8.8.8"]);
        check(false, &["2002:7f00:1::1", "2002:a9fe:a9fe::1", "2002:c0a8:101::1"]);
        // Teredo with server 8.8.8.8 and client 10.0.0.1, then the other way round, then both fine.
        check(false, &["2001:0:808:808::f5ff:fffe", "2001:0:a00:1::f7f7:f7f7"]);
        check(true, &["2001:0:808:808::f7f7:f7f7"]);
    }
}
