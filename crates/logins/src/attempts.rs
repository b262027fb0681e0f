//! Failed logins: how long their answers wait, and when further attempts of a client are not checked.
//!
//! A failure counts for its client's address with the role, and for the address alone. The first few are answered at
//! once; the answers of later ones wait, each twice as long as the one before. The delay outlives its connection: while
//! too many delays of a client run, its attempts are refused without a check. Nobody else waits: a right password is
//! answered at once, other addresses are not affected, and a role that has logged in from an address before is not
//! affected by failures of other roles there. So nobody is locked out by somebody else who guesses.
//!
//! Called before and after each check of a password. Passwords are checked on few threads, or few at a time, so attempts that
//! arrive together are counted one by one.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Failures in a row of a role at an address that are answered at once.
const FREE_OF_ROLE: u32 = 3;
/// The same for an address, of all roles.
const FREE_OF_ADDRESS: u32 = 20;
/// The delay of the first answer that waits; each following one waits twice as long.
const DELAY_MIN: Duration = Duration::from_millis(250);
/// The longest delay. It is shorter than the default of `handshake_timeout`, so that a client gets its answer.
const DELAY_MAX: Duration = Duration::from_secs(4);
/// The most delays at a time of one role at one address: at most two passwords a second are tried.
const DELAYS_OF_ROLE_MAX: usize = 8;
/// The most delays at a time of one address, of all roles.
const DELAYS_OF_ADDRESS_MAX: usize = 64;
/// After this time without a failure, those before are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// The most addresses, and the most addresses with roles, that are remembered.
const REMEMBERED_MAX: usize = 10_000;
/// The most bytes of a role's name that tell roles apart here.
const NAME_BYTES_MAX: usize = 64;

/// The failed logins of all clients.
#[derive(Default)]
pub struct Attempts {
    lists: Mutex<Lists>,
}

#[derive(Default)]
struct Lists {
    of_role: Memory<(IpAddr, Box<str>)>,
    of_address: Memory<IpAddr>,
}

/// Too many failures of the client: it may try again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryLater {
    /// The time until then.
    pub after: Duration,
}

impl TryLater {
    /// The text for the client that tried to log in as `role`.
    pub fn text(&self, role: &str) -> String {
        format!(
            "Too many failed logins of {role} from this address; try again in {} ms",
            self.after.as_millis() + 1
        )
    }
}

impl Attempts {
    /// Whether an attempt is to be checked now. `now_ns`: a monotonic clock.
    ///
    /// # Errors
    /// The client has failed too often; when it may try again.
    pub fn admit(&self, address: IpAddr, role: &str, now_ns: u64) -> Result<(), TryLater> {
        let mut lists = self.lists.lock();
        let lists = &mut *lists;
        let (address, key) = keys(address, role);
        if let Some(found) = lists.of_role.by_key.get_mut(&key) {
            found.room(DELAYS_OF_ROLE_MAX, now_ns)?;
            if found.has_succeeded {
                return Ok(());
            }
        }
        match lists.of_address.by_key.get_mut(&address) {
            Some(found) => found.room(DELAYS_OF_ADDRESS_MAX, now_ns),
            None => Ok(()),
        }
    }

    /// Notes a failure; returns how long its answer has to wait.
    pub fn failed(&self, address: IpAddr, role: &str, now_ns: u64) -> Duration {
        let mut lists = self.lists.lock();
        let (address, key) = keys(address, role);
        let of_role = lists.of_role.entry(key, now_ns).fail(FREE_OF_ROLE, now_ns);
        let of_address = lists.of_address.entry(address, now_ns).fail(FREE_OF_ADDRESS, now_ns);
        of_role.max(of_address)
    }

    /// Notes a success: the failures of the role at the address are forgotten.
    pub fn succeeded(&self, address: IpAddr, role: &str, now_ns: u64) {
        let (_, key) = keys(address, role);
        let success = Failures { has_succeeded: true, last_ns: now_ns, ..Failures::default() };
        *self.lists.lock().of_role.entry(key, now_ns) = success;
    }
}

/// The failures in a row of one client.
#[derive(Debug, Default)]
struct Failures {
    count: u32,
    /// When the last attempt ended.
    last_ns: u64,
    /// When each of its delays ends.
    delays: Vec<u64>,
    /// Whether the last attempts before these failures succeeded.
    has_succeeded: bool,
}

impl Failures {
    /// Whether fewer than `max` delays run.
    fn room(&mut self, max: usize, now_ns: u64) -> Result<(), TryLater> {
        self.delays.retain(|end_ns| *end_ns > now_ns);
        if self.delays.len() < max {
            return Ok(());
        }
        let first_ns = self.delays.iter().copied().min().unwrap_or(now_ns);
        Err(TryLater { after: Duration::from_nanos(first_ns - now_ns) })
    }

    fn fail(&mut self, free: u32, now_ns: u64) -> Duration {
        self.count = self.count.saturating_add(1);
        self.last_ns = now_ns;
        let Some(doublings) = self.count.checked_sub(free + 1) else { return Duration::ZERO };
        let delay = DELAY_MIN.saturating_mul(1 << doublings.min(16)).min(DELAY_MAX);
        self.delays.retain(|end_ns| *end_ns > now_ns);
        self.delays.push(now_ns.saturating_add(nanoseconds(delay)));
        delay
    }

    fn is_over(&self, now_ns: u64) -> bool {
        self.last_ns.saturating_add(nanoseconds(FORGOTTEN_AFTER)) < now_ns
    }
}

/// The failures of a limited number of clients.
struct Memory<K> {
    by_key: HashMap<K, Failures>,
}

impl<K> Default for Memory<K> {
    fn default() -> Self {
        Memory { by_key: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash> Memory<K> {
    /// The failures of a client. If too many are remembered, those that are over are removed, and if that is not
    /// enough, the half that is longest ago.
    fn entry(&mut self, key: K, now_ns: u64) -> &mut Failures {
        if self.by_key.len() >= REMEMBERED_MAX && !self.by_key.contains_key(&key) {
            self.by_key.retain(|_, failures| !failures.is_over(now_ns));
            if self.by_key.len() >= REMEMBERED_MAX {
                let mut times: Vec<u64> = self.by_key.values().map(|failures| failures.last_ns).collect();
                let middle = times.len() / 2;
                let (_, median, _) = times.select_nth_unstable(middle);
                let median = *median;
                self.by_key.retain(|_, failures| failures.last_ns > median);
            }
        }
        let failures = self.by_key.entry(key).or_default();
        if failures.is_over(now_ns) {
            let has_succeeded = failures.has_succeeded;
            *failures = Failures { has_succeeded, ..Failures::default() };
        }
        failures
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A client that tries to log in: its address and the role. Of IPv6 the 64 bits of the network count, because a host chooses
/// the others freely; of a role's name the first 64 bytes.
pub fn client_key(address: IpAddr, role: &str) -> (IpAddr, Box<str>) {
    let address = match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
        other => other,
    };
    let mut end = role.len().min(NAME_BYTES_MAX);
    while !role.is_char_boundary(end) {
        end -= 1;
    }
    (address, role.get(..end).unwrap_or_default().into())
}

/// The keys of a client.
fn keys(address: IpAddr, role: &str) -> (IpAddr, (IpAddr, Box<str>)) {
    let key = client_key(address, role);
    (key.0, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_delay_grows_and_a_success_ends_it() {
        let (attempts, here) = (Attempts::default(), address("10.0.0.1"));
        let fail = |now| attempts.failed(here, "alice", now).as_millis();
        let delays: Vec<u128> = (0..10).map(|at| fail(at * 10 * SECOND)).collect();
        assert_eq!(delays, [0, 0, 0, 250, 500, 1000, 2000, 4000, 4000, 4000]);
        attempts.succeeded(here, "alice", 100 * SECOND);
        assert_eq!(fail(101 * SECOND), 0);
        for at in 0..10 {
            fail((101 + at) * SECOND);
        }
        assert_eq!(fail(1000 * SECOND), 0, "forgotten");
    }

    #[test]
    fn a_storm_of_one_client_is_refused_and_locks_nobody_else_out() {
        let attempts = Attempts::default();
        let (here, there) = (address("10.0.0.1"), address("10.0.0.2"));
        attempts.succeeded(here, "app", 0);
        let mut checked = 0;
        for at in 0..10_000_u64 {
            let now = SECOND + at * SECOND / 1000;
            if attempts.admit(here, "alice", now).is_ok() {
                attempts.failed(here, "alice", now);
                checked += 1;
            }
        }
        assert!((10..40).contains(&checked), "{checked} in ten seconds");
        let now = 11 * SECOND;
        let refused = attempts.admit(here, "alice", now).unwrap_err();
        assert!(refused.after <= DELAY_MAX && !refused.after.is_zero(), "{refused:?}");
        assert_eq!(attempts.admit(there, "alice", now), Ok(()), "another address");
        assert_eq!(attempts.admit(here, "bob", now), Ok(()), "another role");
        for at in 0..1000 {
            let name = format!("role {at}");
            if attempts.admit(here, &name, now).is_ok() {
                attempts.failed(here, &name, now);
            }
        }
        assert!(attempts.admit(here, "bob", now).is_err(), "an address that tries many names");
        assert_eq!(attempts.admit(here, "app", now), Ok(()), "a role that has logged in here");
        assert_eq!(attempts.admit(here, "bob", now + 5 * SECOND), Ok(()), "it ends by itself");
    }

    #[test]
    fn the_memory_is_limited_and_hosts_of_one_network_are_one() {
        let attempts = Attempts::default();
        for at in 0..3 * REMEMBERED_MAX as u64 {
            let host = IpAddr::V6(Ipv6Addr::from_bits(u128::from(at) << 64));
            attempts.failed(host, "x", at);
        }
        let lists = attempts.lists.lock();
        assert!(
            lists.of_role.by_key.len() <= REMEMBERED_MAX && lists.of_address.by_key.len() <= REMEMBERED_MAX
        );
        assert_eq!(keys(address("2001:db8::1"), "x"), keys(address("2001:db8::2"), "x"));
        assert_eq!(keys(address("::ffff:10.0.0.1"), "x"), keys(address("10.0.0.1"), "x"));
        assert_ne!(keys(address("::1"), "x"), keys(address("::2"), "x"));
    }
}
