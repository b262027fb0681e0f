//! Failed logins: how long their answers wait, and when further attempts of a client are not checked.
//!
//! A failure counts for its client's address with the role, and for the address alone. The first few are answered at
//! once; the answers of later ones wait, each twice as long as the one before. The delay outlives its connection: while
//! too many delays of a client run, its attempts are not checked. Nobody else waits: a right password is
//! answered at once, other addresses are not affected, and a role that has logged in from an address before is not
//! affected by failures of other roles there. So nobody is locked out by somebody else who guesses.
//!
//! `room` is for a queue of logins: it tells which may be checked now and whose turn comes first, so that one which has to wait
//! is not refused. `admit` refuses one that comes without a queue. Either is asked before a check, `failed` or `succeeded` is called
//! after it. Passwords are checked on few threads, or few at a time, so attempts that arrive together are counted one by one.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

use crate::network_of;

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
/// The most addresses, and the most addresses with roles, that are remembered: of those that have logged in, and of the others.
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

/// What is known of a client that wants to log in. The order is that of the turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The role has logged in from the address.
    Known,
    /// Neither the role there nor the address has failed of late.
    #[default]
    Unknown,
    /// One of them has.
    Failed,
}

/// How many attempts of a client may be checked now, those that are being checked included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Of the role from the address.
    pub of_role: usize,
    /// Of all roles from the address, as far as this role counts among them.
    pub of_address: usize,
    /// What is known of the client.
    pub standing: Standing,
}

impl Room {
    /// That of a client of whom nothing is known, where failures are not counted.
    pub const ANY: Room = Room { of_role: usize::MAX, of_address: usize::MAX, standing: Standing::Unknown };
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

    /// How many attempts of a client may be checked now. `now_ns`: a monotonic clock.
    pub fn room(&self, address: IpAddr, role: &str, now_ns: u64) -> Room {
        let mut lists = self.lists.lock();
        let lists = &mut *lists;
        let (address, key) = keys(address, role);
        let mut room = Room {
            of_role: DELAYS_OF_ROLE_MAX,
            of_address: DELAYS_OF_ADDRESS_MAX,
            standing: Standing::Unknown,
        };
        if let Some(found) = lists.of_address.by_key.get_mut(&address) {
            room.of_address -= found.running(now_ns).min(room.of_address);
            if found.count > 0 && !found.is_over(now_ns) {
                room.standing = Standing::Failed;
            }
        }
        if let Some(found) = lists.of_role.by_key.get_mut(&key) {
            room.of_role -= found.running(now_ns).min(room.of_role);
            if found.has_succeeded {
                (room.of_address, room.standing) = (usize::MAX, Standing::Known);
            }
        }
        room
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
        self.lists.lock().of_role.succeed(key, now_ns);
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
    /// The number of delays that run.
    fn running(&mut self, now_ns: u64) -> usize {
        self.delays.retain(|end_ns| *end_ns > now_ns);
        self.delays.len()
    }

    /// Whether fewer than `max` delays run.
    fn room(&mut self, max: usize, now_ns: u64) -> Result<(), TryLater> {
        if self.running(now_ns) < max {
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

/// The failures of a limited number of clients. Those that have succeeded proved that they know a password, and anybody can fail
/// as often as it takes to fill this memory: so either have places of their own, and are pushed out by their like alone.
struct Memory<K> {
    by_key: HashMap<K, Failures>,
    /// The number of those that have succeeded.
    succeeded: usize,
}

impl<K> Default for Memory<K> {
    fn default() -> Self {
        Memory { by_key: HashMap::new(), succeeded: 0 }
    }
}

impl<K: Clone + Eq + Hash> Memory<K> {
    /// The failures of a client.
    fn entry(&mut self, key: K, now_ns: u64) -> &mut Failures {
        if !self.by_key.contains_key(&key) {
            self.make_room(false, now_ns);
        }
        let failures = self.by_key.entry(key).or_default();
        if failures.is_over(now_ns) {
            let has_succeeded = failures.has_succeeded;
            *failures = Failures { has_succeeded, ..Failures::default() };
        }
        failures
    }

    /// Notes that a client has succeeded.
    fn succeed(&mut self, key: K, now_ns: u64) {
        if !self.by_key.get(&key).is_some_and(|failures| failures.has_succeeded) {
            self.make_room(true, now_ns);
            self.succeeded += 1;
        }
        self.by_key.insert(key, Failures { has_succeeded: true, last_ns: now_ns, ..Failures::default() });
    }

    /// Makes room for one more of those that have succeeded, or of the others. If there is none, of the others those go that are over,
    /// and if that is not enough, the half whose last attempt is longest ago.
    fn make_room(&mut self, has_succeeded: bool, now_ns: u64) {
        let count = |memory: &Self| match has_succeeded {
            true => memory.succeeded,
            false => memory.by_key.len() - memory.succeeded,
        };
        if count(self) < REMEMBERED_MAX {
            return;
        }
        if !has_succeeded {
            self.by_key.retain(|_, failures| failures.has_succeeded || !failures.is_over(now_ns));
        }
        if count(self) >= REMEMBERED_MAX {
            let like = self.by_key.values().filter(|failures| failures.has_succeeded == has_succeeded);
            let mut all: Vec<u64> = like.map(|failures| failures.last_ns).collect();
            let middle = all.len() / 2;
            let (_, median, _) = all.select_nth_unstable(middle);
            let median = *median;
            self.by_key
                .retain(|_, failures| failures.has_succeeded != has_succeeded || failures.last_ns > median);
            if has_succeeded {
                self.succeeded = self.by_key.values().filter(|failures| failures.has_succeeded).count();
            }
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A client that tries to log in: its network (`network_of`) and the role, of whose name the first 64 bytes count.
pub fn client_key(address: IpAddr, role: &str) -> (IpAddr, Box<str>) {
    let address = network_of(address);
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
    use std::net::Ipv6Addr;

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
    fn the_room_of_a_client_is_what_admit_allows() {
        let attempts = Attempts::default();
        let (here, there) = (address("10.0.0.1"), address("10.0.0.2"));
        attempts.succeeded(here, "app", 0);
        let standing = |address, role, now| attempts.room(address, role, now).standing;
        assert_eq!(standing(here, "app", 1), Standing::Known);
        assert_eq!(standing(here, "alice", 1), Standing::Unknown);
        for at in 0..300 {
            let now = SECOND + at * SECOND / 20;
            for role in ["alice", "bob", "carol", "app"] {
                let room = attempts.room(here, role, now);
                let may_go = room.of_role > 0 && room.of_address > 0;
                assert_eq!(attempts.admit(here, role, now).is_ok(), may_go, "{role} at {at}: {room:?}");
                if may_go && role != "app" {
                    attempts.failed(here, role, now);
                }
            }
        }
        let now = 20 * SECOND;
        assert_eq!(
            (standing(here, "alice", now), standing(here, "dan", now)),
            (Standing::Failed, Standing::Failed)
        );
        assert_eq!(
            (standing(here, "app", now), standing(there, "alice", now)),
            (Standing::Known, Standing::Unknown)
        );
        let later = now + 2 * nanoseconds(FORGOTTEN_AFTER);
        assert_eq!(standing(here, "dan", later), Standing::Unknown, "failures are forgotten");
        assert_eq!(standing(here, "app", later), Standing::Known);
    }

    #[test]
    fn who_has_logged_in_is_forgotten_last() {
        let (minute, known) = (60 * SECOND, REMEMBERED_MAX as u64 * 9 / 10);
        // Idle for less than it takes to forget failures, and for longer.
        for idle in [minute, 30 * minute] {
            let attempts = Attempts::default();
            let host = |at: u64| IpAddr::V6(Ipv6Addr::from_bits(u128::from(at) << 64));
            (0..known).for_each(|at| attempts.succeeded(host(at), "app", at));
            for at in 0..3 * REMEMBERED_MAX as u64 {
                attempts.failed(host(known + at), "guess", idle + at);
            }
            let later = idle + minute;
            let forgotten = (0..known)
                .filter(|at| attempts.room(host(*at), "app", later).standing != Standing::Known)
                .count();
            assert_eq!(forgotten, 0, "after {idle}");
            // Where all have logged in, the older ones go.
            for at in 0..3 * REMEMBERED_MAX as u64 {
                attempts.succeeded(host(known + at), "app", later + at);
            }
            let last = host(known + 3 * REMEMBERED_MAX as u64 - 1);
            assert_eq!(attempts.room(last, "app", later).standing, Standing::Known);
            assert!(attempts.lists.lock().of_role.by_key.len() <= 2 * REMEMBERED_MAX);
        }
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
