//! The address of a server as a person writes it: `HOST`, `HOST:PORT` or `:PORT`, with an IPv6 address in brackets.
//!
//! Every option that names a server is parsed here: those of the tools and those of `helenus serve`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// A host and a port, of which at least one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address, without brackets. `None` is this machine.
    host: Option<String>,
    port: Option<u16>,
}

/// What an address may look like, for help and errors.
pub const ADDRESS_FORMS: &str = "HOST, HOST:PORT or :PORT, such as localhost:9042, 10.0.0.7 or [::1]:9042";

/// A text that is no address. The message says what is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; give {ADDRESS_FORMS}")]
pub struct AddressError {
    problem: String,
}

fn refused<T>(problem: String) -> Result<T, AddressError> {
    Err(AddressError { problem })
}

impl Address {
    /// The address of a host without a port.
    ///
    /// # Errors
    /// The text is neither a name nor an IP address.
    pub fn of_host(host: &str) -> Result<Address, AddressError> {
        let inside = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        if is_ipv6(inside) {
            return Ok(Address { host: Some(inside.to_owned()), port: None });
        }
        check_name(host)?;
        Ok(Address { host: Some(host.to_owned()), port: None })
    }

    /// The same with `port`, unless it has one.
    #[must_use]
    pub fn or_port(mut self, port: u16) -> Address {
        self.port.get_or_insert(port);
        self
    }

    /// The same without its port.
    #[must_use]
    pub fn without_port(self) -> Address {
        Address { port: None, ..self }
    }

    /// The host: a name, or an IP address without brackets.
    pub fn host(&self) -> &str {
        self.host.as_deref().unwrap_or("127.0.0.1")
    }

    /// The port, if one was given.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// `HOST:PORT`, with brackets around an IPv6 address.
    pub fn with_port(&self, default: u16) -> String {
        let (host, port) = (self.host(), self.port.unwrap_or(default));
        if is_ipv6(host) { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Looks the name up. IPv4 addresses come first, as in Java by default.
    ///
    /// # Errors
    /// The name has no address.
    pub fn resolve(&self, default_port: u16) -> std::io::Result<SocketAddr> {
        let mut found: Vec<SocketAddr> = self.with_port(default_port).to_socket_addrs()?.collect();
        found.sort_by_key(SocketAddr::is_ipv6);
        found.first().copied().ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    /// Whether the host is a name or address of this machine's loopback.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        host.eq_ignore_ascii_case("localhost")
            || host.parse().is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback())
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        if text.is_empty() {
            return refused("the address is empty".to_owned());
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return refused(format!("{text} begins with {scheme}://, which is no part of an address"));
        }
        if is_ipv6(text) {
            return Address::of_host(text);
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((host, "")) if is_ipv6(host) => (host, None),
                Some((host, rest)) if is_ipv6(host) && rest.starts_with(':') => (host, rest.get(1..)),
                _ => return refused(format!("{text}: no IPv6 address is between the brackets")),
            },
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return refused(format!("{text}: an IPv6 address with a port needs brackets"));
                }
                Some((host, port)) => (host, Some(port)),
                None if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                    return refused(format!("{text} is a port alone: write :{text}"));
                }
                None => (text, None),
            },
        };
        let port = match port.map(|port| (port, port.parse())) {
            None => None,
            Some((digits, Ok(port))) if !digits.starts_with('+') => Some(port),
            Some((digits, _)) => return refused(format!("{text}: {digits:?} is no port from 0 to 65535")),
        };
        match host {
            "" => Ok(Address { host: None, port }),
            host => Ok(Address { port, ..Address::of_host(host)? }),
        }
    }
}

impl fmt::Display for Address {
    /// As it was written, but for an IPv6 address, which is in brackets if a port follows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.port) {
            (Some(host), None) => f.write_str(host),
            (None, port) => write!(f, ":{}", port.unwrap_or_default()),
            (Some(_), Some(port)) => f.write_str(&self.with_port(port)),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address { host: Some(address.ip().to_string()), port: Some(address.port()) }
    }
}

/// Whether the text is an IPv6 address, with or without a zone as in `fe80::1%eth0`.
fn is_ipv6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    let is_zone =
        |zone: &str| !zone.is_empty() && zone.bytes().all(|byte| byte.is_ascii_graphic() && byte != b']');
    address.parse::<Ipv6Addr>().is_ok() && zone.is_none_or(is_zone)
}

/// Checks a host name or IPv4 address. Names have letters, digits, `-`, `_` and `.`; international ones are looked up
/// as they are.
fn check_name(name: &str) -> Result<(), AddressError> {
    let is_fine = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    if let Some(letter) = name.chars().find(|letter| !is_fine(*letter)) {
        return refused(format!("{name}: a host has no {letter:?} in it"));
    }
    // `10.0.0` is an address to the C library, and not the one that was meant.
    let is_numbers = name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if name.is_empty() || is_numbers && name.parse::<Ipv4Addr>().is_err() {
        return refused(format!("{name:?} is neither a name nor an IP address"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn host() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z][a-z0-9_-]{0,12}(\\.[a-z][a-z0-9-]{0,8}){0,3}",
            any::<[u8; 4]>().prop_map(|bytes| Ipv4Addr::from(bytes).to_string()),
            any::<[u8; 16]>().prop_map(|bytes| Ipv6Addr::from(bytes).to_string()),
            any::<[u8; 16]>().prop_map(|bytes| format!("{}%eth0", Ipv6Addr::from(bytes))),
        ]
    }

    proptest! {
        #[test]
        fn a_host_and_a_port_are_read_as_they_were_put_together(host in host(), port: u16) {
            let is_v6 = host.contains(':');
            let alone: Address = host.parse().unwrap();
            prop_assert_eq!((alone.host(), alone.port()), (host.as_str(), None));
            let bracketed = if is_v6 { format!("[{host}]") } else { host.clone() };
            let both: Address = format!("{bracketed}:{port}").parse().unwrap();
            prop_assert_eq!((both.host(), both.port()), (host.as_str(), Some(port)));
            prop_assert_eq!(both.with_port(1), format!("{bracketed}:{port}"));
            prop_assert_eq!(alone.with_port(port), both.to_string());
            prop_assert_eq!(bracketed.parse::<Address>().unwrap(), alone.clone());
            prop_assert_eq!(both.to_string().parse::<Address>().unwrap(), both.clone());
            prop_assert_eq!(alone.or_port(port), both);
        }

        #[test]
        fn a_port_alone_is_one_of_this_machine(port: u16) {
            let address: Address = format!(":{port}").parse().unwrap();
            prop_assert_eq!(address.with_port(1), format!("127.0.0.1:{port}"));
            prop_assert!(address.is_loopback());
            let error = port.to_string().parse::<Address>().unwrap_err().to_string();
            prop_assert!(error.contains(&address.to_string()));
        }

        #[test]
        fn any_text_is_an_address_that_can_be_written_again_or_an_error_that_says_what_is(text in "\\PC{0,24}") {
            match text.parse::<Address>() {
                Ok(address) => prop_assert_eq!(address.to_string().parse::<Address>().unwrap(), address),
                Err(error) => prop_assert!(error.to_string().ends_with(ADDRESS_FORMS)),
            }
        }
    }

    #[test]
    fn what_is_no_address_is_told_why() {
        for (text, problem) in [
            ("", "is empty"),
            ("http://db:9042", "begins with http://"),
            ("::1:99999", "needs brackets"),
            ("[db]:1", "no IPv6 address"),
            ("[::1", "no IPv6 address"),
            ("[::1]9042", "no IPv6 address"),
            ("db:", "no port"),
            ("db:65536", "no port"),
            ("db:-1", "no port"),
            ("db:+1", "no port"),
            ("a b", "' '"),
            ("10.0.0", "neither a name nor an IP address"),
            ("user@db", "'@'"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn names_of_this_machine_are_looked_up() {
        let address: Address = "localhost".parse().unwrap();
        assert!(address.is_loopback() && address.resolve(9042).unwrap().ip().is_loopback());
        assert!("nowhere.invalid".parse::<Address>().unwrap().resolve(1).is_err());
    }
}
