//! `inet`: 4 or 16 bytes, or empty; ordered by the bytes.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::TypeError;
use super::error::quoted;
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

/// Parses an address as `InetAddress.getByName` of Java 17 does, without its look-up of names: a statement must not wait
/// for a name server, and must mean the same when the commit log is replayed elsewhere. Only `localhost` has an address
/// by definition (RFC 6761).
pub(super) fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(Ipv4Addr::LOCALHOST.octets().to_vec());
    }
    let address = match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').and_then(zoned_v6),
        None => v4(text).map(|address| address.to_be_bytes().to_vec()).or_else(|| zoned_v6(text)),
    };
    address.ok_or_else(|| match is_name(text) {
        true => TypeError::Text {
            before: "Unable to make inet address from",
            text: quoted(text),
            after: ": names of hosts are not looked up, write the address",
        },
        false => TypeError::text("Unable to make inet address from", text),
    })
}

/// Whether the text looks like the name of a host with its domain. Any single word may be a name, too, but is more often
/// a mistake.
fn is_name(text: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.contains('.') && text.bytes().all(is_of_name) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Parses one to four decimal numbers, of which the last fills the remaining bytes.
fn v4(text: &str) -> Option<u32> {
    const LENGTH_MAX: usize = 15;
    let parts: Vec<&str> = text.split('.').collect();
    let (last, first) = parts.split_last()?;
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if text.len() > LENGTH_MAX || parts.len() > 4 || !parts.iter().all(is_number) {
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

/// Parses an IPv6 address, maybe with the number of a zone, which is not kept. Zones given by the name of an interface
/// are refused, because another machine has other interfaces. An IPv4-mapped address becomes IPv4 and has no zone.
fn zoned_v6(text: &str) -> Option<Vec<u8>> {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    let is_number =
        |zone: &str| zone.bytes().all(|byte| byte.is_ascii_digit()) && zone.parse::<i32>().is_ok();
    if !zone.is_none_or(is_number) {
        return None;
    }
    let address = v6(address)?;
    match address.to_ipv4_mapped() {
        Some(mapped) => zone.is_none().then(|| mapped.octets().to_vec()),
        None => Some(address.octets().to_vec()),
    }
}

/// Parses groups of hexadecimal digits, one run of zero groups of which may be `::`. Leading zeros are allowed beyond
/// four digits.
fn v6(text: &str) -> Option<Ipv6Addr> {
    const GROUPS: usize = 8;
    let (before, after) = match text.split_once("::") {
        Some((before, after)) => (groups(before, false)?, Some(groups(after, true)?)),
        None => (groups(text, true)?, None),
    };
    let after_count = after.as_ref().map_or(0, Vec::len);
    let zeros = GROUPS.checked_sub(before.len() + after_count)?;
    if (zeros == 0) != after.is_none() {
        return None;
    }
    let all = before.into_iter().chain(std::iter::repeat_n(0, zeros)).chain(after.into_iter().flatten());
    let all: Vec<u16> = all.collect();
    <[u16; GROUPS]>::try_from(all).ok().map(Ipv6Addr::from)
}

/// Parses groups between colons. The last of the address may be an IPv4 address with four numbers, which is two groups.
fn groups(text: &str, ends_address: bool) -> Option<Vec<u16>> {
    let mut found = Vec::new();
    if text.is_empty() {
        return Some(found);
    }
    let mut rest = text.split(':').peekable();
    while let Some(group) = rest.next() {
        if group.contains('.') && ends_address && rest.peek().is_none() {
            let address = v4(group).filter(|_| group.matches('.').count() == 3)?;
            found.extend([(address >> 16) as u16, address as u16]);
        } else if group.bytes().all(|byte| byte.is_ascii_hexdigit()) && !group.is_empty() {
            let digits = group.trim_start_matches('0');
            found.push(if digits.is_empty() { 0 } else { u16::from_str_radix(digits, 16).ok()? });
        } else {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tests/types_against_cassandra.rs` has drawn addresses.
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
        assert_eq!(printed("LocalHost"), "127.0.0.1");
        for (text, error) in [
            (
                "host.example",
                "Unable to make inet address from 'host.example': names of hosts are not looked up, write the address",
            ),
            ("example", "Unable to make inet address from 'example'"),
            ("256.1", "Unable to make inet address from '256.1'"),
            ("[127.0.0.1]", "Unable to make inet address from '[127.0.0.1]'"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), error);
        }
        assert_eq!(
            validate(&[1, 2, 3]).unwrap_err().to_string(),
            "Expected 4 or 16 byte inetaddress; got 010203"
        );
    }
}
