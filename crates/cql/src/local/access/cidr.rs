//! Networks by CIDR, and the groups that `system_auth.cidr_groups` makes of them.
//!
//! Source: `CIDR`, `CIDRGroupsMappingIntervalTree`.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// A network: an address whose bits behind the mask are zero, and the number of bits of the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    /// The network of an address; `None` if the mask is longer than the address.
    pub(super) fn of(address: IpAddr, bits: u8) -> Option<Cidr> {
        let address = match address {
            IpAddr::V4(address) if bits <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) if bits <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
            _ => return None,
        };
        Some(Cidr { address, bits })
    }

    /// Reads `10.0.0.0/8`. The mask of an IPv4 address that is written as an IPv6 one counts from the beginning of the latter.
    pub(super) fn parse(text: &str) -> Option<Cidr> {
        let (address, bits) = text.split_once('/')?;
        let given: IpAddr = address.parse().ok()?;
        let bits: u8 = bits.parse().ok()?;
        let address = given.to_canonical();
        match address == given {
            true => Cidr::of(address, bits),
            false => Cidr::of(address, bits.checked_sub(96)?),
        }
    }

    /// The bytes of its address.
    fn octets(&self) -> Vec<u8> {
        match self.address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }

    /// Its place in a value of the type `set<tuple<inet, smallint>>`.
    pub(super) fn key(&self) -> (Vec<u8>, u8) {
        (self.octets(), self.bits)
    }

    /// Its address and mask, as a value of the type `tuple<inet, smallint>`.
    pub(super) fn tuple(&self) -> Vec<u8> {
        let address = self.octets();
        let mut bytes = (address.len() as i32).to_be_bytes().to_vec();
        bytes.extend_from_slice(&address);
        bytes.extend_from_slice(&2_i32.to_be_bytes());
        bytes.extend_from_slice(&u16::from(self.bits).to_be_bytes());
        bytes
    }

    /// The network of such a value; `None` if it is none.
    pub(super) fn of_tuple(bytes: &[u8]) -> Option<Cidr> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (address, rest) = rest.split_at_checked(usize::try_from(i32::from_be_bytes(*length)).ok()?)?;
        let address = match address.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
            _ => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
        };
        let bits = rest.strip_prefix(&2_i32.to_be_bytes())?;
        let bits = i16::from_be_bytes(bits.try_into().ok()?);
        Cidr::of(address, u8::try_from(bits).ok()?)
    }

    fn contains(&self, address: IpAddr) -> bool {
        Cidr::of(address, self.bits) == Some(*self)
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The groups of networks.
#[derive(Debug, Default)]
pub(super) struct CidrGroups {
    /// Each network with a group that it is in, the narrowest first.
    networks: Vec<(Cidr, Box<str>)>,
}

impl CidrGroups {
    /// Groups of these networks.
    pub(super) fn new(mut networks: Vec<(Cidr, Box<str>)>) -> CidrGroups {
        networks.sort_by(|a, b| b.0.bits.cmp(&a.0.bits).then_with(|| a.cmp(b)));
        CidrGroups { networks }
    }

    /// The groups of the narrowest network that an address is in.
    pub(super) fn of_address(&self, address: IpAddr) -> BTreeSet<Box<str>> {
        let address = address.to_canonical();
        let mut found = BTreeSet::new();
        let mut network: Option<Cidr> = None;
        for (cidr, group) in &self.networks {
            if network.map_or_else(|| cidr.contains(address), |network| network == *cidr) {
                network = Some(*cidr);
                found.insert(group.clone());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_read_as_cassandra_reads_them() {
        for (text, shown) in [
            ("10.20.33.40/24", "10.20.33.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("1.2.3.4/32", "1.2.3.4/32"),
            ("::ffff:192.1.56.10/96", "0.0.0.0/0"),
            ("2001:db8::1/64", "2001:db8::/64"),
            ("::/0", "::/0"),
        ] {
            let cidr = Cidr::parse(text).unwrap();
            assert_eq!(cidr.to_string(), shown);
            assert_eq!(Cidr::of_tuple(&cidr.tuple()), Some(cidr));
        }
        for text in
            ["", "1.2.3.4", "1.2.3.4/33", "1.2.3.4/-1", "a/8", "::1/129", "::ffff:1.2.3.4/95", "1.2.3.4/8/8"]
        {
            assert_eq!(Cidr::parse(text), None, "{text}");
        }
        for bytes in [&b""[..], &[0; 3], &[0, 0, 0, 9, 1], &[255; 20]] {
            assert_eq!(Cidr::of_tuple(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn an_address_has_the_groups_of_its_narrowest_network() {
        let of = |networks: &[(&str, &str)]| {
            CidrGroups::new(
                networks.iter().map(|(cidr, group)| (Cidr::parse(cidr).unwrap(), (*group).into())).collect(),
            )
        };
        let groups = of(&[
            ("10.0.0.0/8", "wide"),
            ("10.1.0.0/16", "near"),
            ("10.1.0.0/16", "also"),
            ("10.2.0.0/16", "other"),
            ("::/0", "six"),
        ]);
        for (address, expected) in [
            ("10.1.2.3", &["also", "near"][..]),
            ("10.3.0.1", &["wide"]),
            ("::ffff:10.3.0.1", &["wide"]),
            ("11.0.0.1", &[]),
            ("::1", &["six"]),
        ] {
            let found = groups.of_address(address.parse().unwrap());
            assert_eq!(found.iter().map(|group| &**group).collect::<Vec<_>>(), expected, "{address}");
        }
    }
}
