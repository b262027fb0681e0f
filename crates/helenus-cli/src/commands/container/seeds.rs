//! Seeds of a cluster: refuses those that are other machines, because this node joins none.
//!
//! Two nodes of a compose file would be two databases that know nothing of each other, and both healthy: rows written to one are
//! not found at the other.

use anyhow::{Result, bail};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

/// The variable that says that separate databases are meant.
pub const ALLOWED: &str = "HELENUS_IGNORE_SEEDS";

/// Refuses seeds other than this machine. `from` is the variable or the option that names them. With `is_allowed`, the result is
/// a note for the log instead.
///
/// # Errors
/// One of the seeds is another machine.
pub fn check(
    (from, seeds): (&str, &str),
    is_own: &dyn Fn(&str) -> bool,
    is_allowed: bool,
) -> Result<Option<String>> {
    let names = seeds.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty() && *name != "auto");
    let Some(other) = names.into_iter().find(|name| !is_own(host_of(name))) else { return Ok(None) };
    if is_allowed {
        return Ok(Some(format!(
            "{from}={seeds}: this node joins no cluster; it is a database of its own, without the rows of {other}"
        )));
    }
    bail!(
        "{from}={seeds} names another machine, {other}, and this node joins no cluster: both would be databases of their own, and \
         a client of one would not find the rows of the other. Run one node; for several separate databases set {ALLOWED}=true"
    )
}

/// A seed without its port.
fn host_of(seed: &str) -> &str {
    if let Some((inside, _)) = seed.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return inside;
    }
    match seed.split_once(':') {
        // Several colons are an IPv6 address.
        Some((host, port)) if !port.contains(':') => host,
        _ => seed,
    }
}

/// Whether a name or an address is this machine's: it is of the loopback, or a socket can be bound there. A name that has no address yet
/// may be the machine's own name, with or without its domain.
pub fn is_own(seed: &str) -> bool {
    let Ok(found) = (seed, 0).to_socket_addrs() else { return is_own_name(seed) };
    // With its zone: an address of a link has none without. A machine without IPv6 may call `::1` localhost.
    let is_here = |address: &SocketAddr| address.ip().is_loopback() || UdpSocket::bind(address).is_ok();
    let addresses: Vec<SocketAddr> = found.collect();
    !addresses.is_empty() && addresses.iter().all(is_here)
}

fn is_own_name(seed: &str) -> bool {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let first = |name: &str| name.trim().split('.').next().unwrap_or_default().to_ascii_lowercase();
    !seed.is_empty() && first(&own) == first(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_other_machines_are_refused_unless_separate_databases_are_meant() {
        let own = |name: &str| ["me", "10.0.0.1", "::1"].contains(&name);
        let check = |seeds: &str, is_allowed| check(("CASSANDRA_SEEDS", seeds), &own, is_allowed);
        for seeds in ["", "auto", "me", "me,10.0.0.1:7000", " me , [::1]:7000", "::1"] {
            assert_eq!(check(seeds, false).unwrap(), None, "{seeds}");
        }
        for seeds in ["e1", "me,e1", "10.0.0.2:7000"] {
            let text = check(seeds, false).unwrap_err().to_string();
            assert!(text.contains("HELENUS_IGNORE_SEEDS=true"), "{text}");
            assert!(check(seeds, true).unwrap().is_some_and(|note| note.contains("of its own")));
        }
    }

    #[test]
    fn addresses_of_the_loopback_are_of_this_machine() {
        assert!(is_own("127.0.0.1") && is_own("::1") && is_own("localhost"));
        assert!(!is_own("192.0.2.1"));
    }
}
