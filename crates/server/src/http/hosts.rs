//! Checks the `Host` of HTTP requests if the port is on the loopback interface.
//!
//! A page of any site can make a browser on this machine connect to the loopback, by a name of the site's own that it
//! points there (DNS rebinding), and then read the answers. The browser sends that name as the request's `Host`. A port
//! that other machines reach may be requested by any name that its owner has given the machine; there the check is made
//! only if `http_hosts` lists names.

use std::net::{IpAddr, SocketAddr};

use hyper::header::HOST;
use hyper::{Request, Version};

/// Most characters of a name that a refusal quotes.
const SHOWN_MAX: usize = 100;

/// The names that requests may use.
pub(super) struct KnownHosts {
    address: SocketAddr,
    names: Vec<String>,
    is_checked: bool,
}

impl KnownHosts {
    /// The names of a port that listens on `address`, with those that its owner configured.
    pub fn new(address: SocketAddr, names: &[String]) -> KnownHosts {
        let is_any = names.iter().any(|name| name == "*");
        let names: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let is_checked = !is_any && (address.ip().to_canonical().is_loopback() || !names.is_empty());
        KnownHosts { address, names, is_checked }
    }

    /// Checks that a request uses a known name.
    ///
    /// # Errors
    /// The text for a client that used another name.
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), String> {
        if !self.is_checked {
            return Ok(());
        }
        let mut hosts = request.headers().get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        if host.is_none() && request.version() < Version::HTTP_11 && request.uri().authority().is_none() {
            // A request without any Host is not from a browser.
            return Ok(());
        }
        let is_one = hosts.next().is_none();
        let is_known = |host: &str| self.knows(host);
        // A request with a whole URI means its authority, and must not have another Host beside it.
        let authority = request.uri().authority().map(|authority| authority.as_str());
        if is_one && host.is_some_and(is_known) && authority.is_none_or(is_known) {
            return Ok(());
        }
        let asked = authority.filter(|_| host.is_some_and(is_known)).or(host).unwrap_or_default();
        let shown: String = asked.chars().take(SHOWN_MAX).flat_map(char::escape_default).collect();
        Err(format!(
            "this port is not asked for as {shown:?} here: ask for {}, localhost or 127.0.0.1, or start the server with a name for \
             it in http_hosts\n",
            self.address
        ))
    }

    /// Whether `host` is a known name. Its port is ignored, because another port may be forwarded to this one.
    fn knows(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else { return false };
        if self.names.contains(&name) || name == "localhost" {
            return true;
        }
        let literal = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let ip = match literal {
            Some(literal) => literal.parse().map(IpAddr::V6),
            None => name.parse().map(IpAddr::V4),
        };
        // Addresses are not looked up in a name service.
        ip.is_ok_and(|ip| ip.to_canonical().is_loopback() || ip == self.address.ip())
    }
}

/// The name in lower case, without port and final dot; `None` if it is not a host.
fn name_of(host: &str) -> Option<String> {
    let is_port = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        // An IPv6 address without a port.
        Some((_, rest)) if rest.ends_with(']') => host,
        Some((name, port)) if is_port(port) => name,
        Some(_) => return None,
        None => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    (!name.is_empty()).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_answered(hosts: &KnownHosts, given: &[&str]) -> bool {
        let mut request = Request::builder().uri("/metrics");
        for host in given {
            request = request.header(HOST, *host);
        }
        request.body(()).is_ok_and(|request| hosts.check(&request).is_ok())
    }

    #[test]
    fn the_loopback_is_asked_for_by_its_own_names_alone() {
        let hosts = KnownHosts::new("127.0.0.1:9180".parse().unwrap(), &["metrics.example".to_owned()]);
        let known = [
            "localhost",
            "LocalHost:9180",
            "localhost.",
            "127.0.0.1:9180",
            "127.0.0.2",
            "[::1]:9180",
            "[::1]",
            "localhost:1",
            "metrics.example",
            "Metrics.Example:80",
            "[::ffff:127.0.0.1]:9180",
        ];
        for known in known {
            assert!(is_answered(&hosts, &[known]), "{known}");
        }
        let strange = [
            "evil.example",
            "evil.example:9180",
            "localhost.evil.example",
            "127.0.0.1.evil.example:9180",
            "127.0.0.1:",
            "",
            ":9180",
            "10.0.0.1:9180",
            "localhost:+9180",
            "localhost@evil.example",
            "[::1",
            "::1",
            "2130706433",
            "0x7f000001:9180",
            "[127.0.0.1]",
            "localhost, evil.example",
        ];
        for strange in strange {
            assert!(!is_answered(&hosts, &[strange]), "{strange}");
        }
        assert!(!is_answered(&hosts, &[]), "no host at all");
        assert!(!is_answered(&hosts, &["localhost", "evil.example"]), "two of them");
        let asked =
            Request::builder().uri("http://evil.example/metrics").header(HOST, "localhost").body(()).unwrap();
        assert!(hosts.check(&asked).is_err());
    }

    #[test]
    fn a_port_that_others_reach_is_asked_for_by_any_name_unless_some_are_given() {
        let open = KnownHosts::new("0.0.0.0:9180".parse().unwrap(), &[]);
        assert!(is_answered(&open, &["db.example:9180"]));
        let named = KnownHosts::new("0.0.0.0:9180".parse().unwrap(), &["db.example".to_owned()]);
        assert!(is_answered(&named, &["db.example:9180"]) && !is_answered(&named, &["evil.example"]));
        let any = KnownHosts::new("127.0.0.1:9180".parse().unwrap(), &["*".to_owned()]);
        assert!(is_answered(&any, &["evil.example"]));
    }
}
