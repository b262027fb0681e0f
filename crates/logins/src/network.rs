//! The part of a client's address that limits count.

use std::net::{IpAddr, Ipv6Addr};

/// The part of an address that counts as one client wherever addresses share something: connections, bytes in flight, logins,
/// lines of a log. Of IPv6 it is the network of 64 bits, because a host chooses the others freely. An IPv4 address counts as the
/// same however it is written.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_network_are_one_client_and_others_are_not() {
        let of = |text: &str| network_of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2:3:4"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_ne!(of("::1"), of("::2"));
    }
}
