//! `inet`: 4 or 16 bytes, or empty; ordered by the bytes.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::TypeError;
use super::text::write_hex;

pub(super) fn validate(bytes: &[u8]) -> Result<(), TypeError> {
    if matches!(bytes.len(), 0 | 4 | 16) {
        return Ok(());
    }
    let mut hex = String::new();
    write_hex(bytes, &mut hex);
    Err(TypeError::Inet { hex })
}

/// Prints like Java: an IPv6 address in full, an IPv4-mapped one as IPv4. Prints nothing for other lengths.
pub(super) fn write(bytes: &[u8], out: &mut String) {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        _ = write!(out, "{}", Ipv4Addr::from(bytes));
    } else if let Ok(bytes) = <[u8; 16]>::try_from(bytes) {
        let address = Ipv6Addr::from(bytes);
        if let Some(mapped) = address.to_ipv4_mapped() {
            _ = write!(out, "{mapped}");
            return;
        }
        for (i, group) in address.segments().iter().enumerate() {
            let colon = if i == 0 { "" } else { ":" };
            _ = write!(out, "{colon}{group:x}");
        }
    }
}

/// Parses an address, never a host name: Cassandra would ask the resolver, which a database must not do.
pub(super) fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let bare = bare.split_once('%').map_or(bare, |(address, _zone)| address);
    match bare.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => Ok(address.octets().to_vec()),
        Ok(IpAddr::V6(address)) => Ok(match address.to_ipv4_mapped() {
            Some(mapped) => mapped.octets().to_vec(),
            None => address.octets().to_vec(),
        }),
        Err(_) => short_v4(bare)
            .map(|address| address.to_be_bytes().to_vec())
            .ok_or_else(|| TypeError::text("Unable to make inet address from", text)),
    }
}

/// Parses the old short forms `a`, `a.b` and `a.b.c`, whose last number fills the remaining bytes.
fn short_v4(text: &str) -> Option<u32> {
    let parts: Vec<&str> = text.split('.').collect();
    let (last, first) = parts.split_last()?;
    if parts.len() > 4
        || parts.iter().any(|part| part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()))
    {
        return None;
    }
    let mut address = 0_u64;
    for part in first {
        address = address << 8 | u64::from(part.parse::<u8>().ok()?);
    }
    let bits_left = 8 * (4 - first.len() as u32);
    let last = last.parse::<u64>().ok().filter(|last| *last < 1 << bits_left)?;
    u32::try_from(address << bits_left | last).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_print_and_parse_as_in_java() {
        let printed = |text: &str| {
            let mut out = String::new();
            write(&parse(text).unwrap(), &mut out);
            out
        };
        assert_eq!(printed("127.0.0.1"), "127.0.0.1");
        assert_eq!(printed("127.1"), "127.0.0.1");
        assert_eq!(printed("010.0.0.1"), "10.0.0.1");
        assert_eq!(printed("::1"), "0:0:0:0:0:0:0:1");
        assert_eq!(printed("2001:DB8::ff00:42"), "2001:db8:0:0:0:0:ff00:42");
        assert_eq!(printed("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(
            parse("host.example").unwrap_err().to_string(),
            "Unable to make inet address from 'host.example'"
        );
        assert_eq!(
            validate(&[1, 2, 3]).unwrap_err().to_string(),
            "Expected 4 or 16 byte inetaddress; got 010203"
        );
    }
}
