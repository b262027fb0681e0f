//! What the sessions of a role use now, and its limits. One account for all interfaces: it hangs on the identity that each session has.
//!
//! A login gives the identity a seat, which counts as a connection until the last copy of the identity is dropped. The interfaces ask
//! it before each request (`Identity::begin`), and the backend for the statement's time and its memory. The limits are atomic numbers
//! here, so a change of a role acts on its running sessions, and a role without limits costs one look at each request.

use super::Identity;
use super::permits::{PermitNumbers, Permits};
use super::role_limits::RoleLimits;
use crate::error::{CqlError, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Before the name of the limit in a refusal.
const OF_OPTION: &str = " (its option ";

/// Stands for no limit.
const NONE: u64 = u64::MAX;

/// A number with its limit.
#[derive(Debug)]
struct Bounded {
    used: AtomicU64,
    max: AtomicU64,
}

impl Default for Bounded {
    fn default() -> Bounded {
        Bounded { used: AtomicU64::new(0), max: AtomicU64::new(NONE) }
    }
}

impl Bounded {
    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Adds to what is used; the limit if that would be too much. `takes_one`: whatever is alone is let in.
    fn take(&self, count: u64, takes_one: bool) -> std::result::Result<(), u64> {
        let max = self.max.load(Ordering::Relaxed);
        let added = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let after = used.saturating_add(count);
            (after <= max || takes_one && used == 0).then_some(after)
        });
        added.map(|_| ()).map_err(|_| max)
    }

    fn give_back(&self, count: u64) {
        self.used.fetch_sub(count, Ordering::Relaxed);
    }

    fn is_bounded(&self) -> bool {
        self.max.load(Ordering::Relaxed) != NONE
    }

    fn set_max(&self, max: Option<u64>) {
        self.max.store(max.unwrap_or(NONE), Ordering::Relaxed);
    }
}

/// What the sessions of a role use, and its limits.
#[derive(Debug)]
pub(crate) struct RoleUse {
    role: Box<str>,
    connections: Bounded,
    requests: Bounded,
    request_bytes: Bounded,
    memory: Bounded,
    statement_ms: AtomicU64,
    refused: AtomicU64,
    /// The limits in words, and how often they were set: a reading of the table does not replace a change that came meanwhile.
    limits: Mutex<(RoleLimits, u64)>,
    /// Whether the role was dropped or locked since. A role that is made later under its name has another account.
    is_ended: AtomicBool,
    /// Its permit to run statements that it may run.
    permits: Permits,
}

impl RoleUse {
    fn new(role: &str) -> RoleUse {
        RoleUse {
            role: role.into(),
            connections: Bounded::default(),
            requests: Bounded::default(),
            request_bytes: Bounded::default(),
            memory: Bounded::default(),
            statement_ms: AtomicU64::new(NONE),
            refused: AtomicU64::new(0),
            limits: Mutex::default(),
            is_ended: AtomicBool::new(false),
            permits: Permits::default(),
        }
    }

    fn set(&self, limits: &RoleLimits, expected: Option<u64>) {
        let mut now = self.limits.lock();
        if expected.is_some_and(|expected| expected != now.1) {
            return;
        }
        *now = (limits.clone(), now.1 + 1);
        self.connections.set_max(limits.connections_max);
        self.requests.set_max(limits.requests_max);
        self.request_bytes.set_max(limits.request_bytes_max);
        self.memory.set_max(limits.memory_max);
        let ms = limits.statement_timeout.and_then(|time| u64::try_from(time.as_millis()).ok());
        self.statement_ms.store(ms.unwrap_or(NONE), Ordering::Relaxed);
    }

    #[cold]
    fn refuse(&self, what: &str, limit: &str) -> CqlError {
        self.refused.fetch_add(1, Ordering::Relaxed);
        CqlError::Overloaded(format!("Role {} {what}{OF_OPTION}{limit})", self.role))
    }
}

/// The roles with sessions.
#[derive(Debug, Default)]
pub(crate) struct RoleUses {
    by_name: Mutex<HashMap<Box<str>, Weak<RoleUse>>>,
}

/// What a role uses, for people.
#[derive(Clone, Debug)]
pub(crate) struct RoleFigures {
    pub(crate) role: Box<str>,
    pub(crate) limits: RoleLimits,
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    pub(crate) request_bytes: u64,
    pub(crate) memory: u64,
    pub(crate) refused: u64,
}

/// The place of a login that is being checked among the sessions of its role. It is taken before anything is read of the role, so
/// that a login which has read of a role that is dropped meanwhile is none of the next role with its name.
pub(crate) struct Place(Arc<RoleUse>);

impl Place {
    /// Gives an identity that has been checked its seat. `read` reads the limits from the table.
    ///
    /// # Errors
    /// The role was dropped or locked since the place was taken; it has as many connections as it may have; those of `read`.
    pub(crate) fn seat(
        self,
        identity: Identity,
        read: impl FnOnce() -> Result<RoleLimits>,
    ) -> Result<Identity> {
        let account = self.0;
        let before = account.limits.lock().1;
        account.set(&read()?, Some(before));
        if let Err(max) = account.connections.take(1, false) {
            let what = format!("has {max} connections, as many as it may have; close some");
            return Err(account.refuse(&what, "connections_max"));
        }
        let seat = Seat { account };
        if seat.account.is_ended.load(Ordering::Acquire) {
            let role = &seat.account.role;
            return Err(CqlError::BadCredentials(format!("{role} is not permitted to log in")));
        }
        Ok(Identity { seat: Some(Arc::new(seat)), ..identity })
    }
}

impl RoleUses {
    /// Takes a place among the sessions of a role.
    pub(crate) fn place(&self, role: &str) -> Place {
        Place(self.account(role))
    }

    /// Ends the sessions of a role that was dropped or locked, and the logins that are being checked.
    pub(crate) fn end(&self, role: &str) {
        let account = self.by_name.lock().remove(role).and_then(|account| account.upgrade());
        if let Some(account) = account {
            account.is_ended.store(true, Ordering::Release);
        }
    }

    /// Sets the limits of a role: its running sessions have them at once.
    pub(crate) fn set(&self, role: &str, limits: &RoleLimits) {
        let account = self.by_name.lock().get(role).and_then(Weak::upgrade);
        if let Some(account) = account {
            account.set(limits, None);
        }
    }

    /// The roles with sessions, by name.
    pub(crate) fn figures(&self) -> Vec<RoleFigures> {
        let accounts: Vec<Arc<RoleUse>> = self.by_name.lock().values().filter_map(Weak::upgrade).collect();
        let of = |account: &Arc<RoleUse>| RoleFigures {
            role: account.role.clone(),
            limits: account.limits.lock().0.clone(),
            connections: account.connections.used(),
            requests: account.requests.used(),
            request_bytes: account.request_bytes.used(),
            memory: account.memory.used(),
            refused: account.refused.load(Ordering::Relaxed),
        };
        let mut figures: Vec<RoleFigures> = accounts.iter().map(of).collect();
        figures.retain(|of| of.connections > 0);
        figures.sort_by(|a, b| a.role.cmp(&b.role));
        figures
    }

    fn account(&self, role: &str) -> Arc<RoleUse> {
        let mut by_name = self.by_name.lock();
        if let Some(found) = by_name.get(role).and_then(Weak::upgrade) {
            return found;
        }
        by_name.retain(|_, account| account.strong_count() > 0);
        let account = Arc::new(RoleUse::new(role));
        by_name.insert(role.into(), Arc::downgrade(&account));
        account
    }
}

/// A session's place among those of its role.
#[derive(Debug)]
pub(super) struct Seat {
    account: Arc<RoleUse>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.account.connections.give_back(1);
    }
}

/// A request that is in flight for its role, until it is dropped.
#[derive(Debug)]
pub struct InFlight {
    account: Arc<RoleUse>,
    bytes: u64,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.account.requests.give_back(1);
        self.account.request_bytes.give_back(self.bytes);
    }
}

/// The memory of a statement's or call's answer, as far as it counts for its role.
#[derive(Debug, Default)]
pub struct AnswerMemory {
    account: Option<Arc<RoleUse>>,
    taken: u64,
}

/// An answer's memory is taken in pieces of this size.
const PIECE: u64 = 16 << 10;

impl AnswerMemory {
    /// Whether anything is counted.
    #[inline]
    pub fn counts(&self) -> bool {
        self.account.is_some()
    }

    /// Takes what an answer of this size needs.
    ///
    /// # Errors
    /// The statements of the role would have more than they may have.
    #[inline]
    pub fn grow_to(&mut self, bytes: usize) -> Result<()> {
        let Some(account) = &self.account else { return Ok(()) };
        if bytes as u64 <= self.taken {
            return Ok(());
        }
        let more = (bytes as u64).next_multiple_of(PIECE) - self.taken;
        if let Err(max) = account.memory.take(more, false) {
            return Err(account.refuse(&too_long(max), "memory_max"));
        }
        self.taken += more;
        Ok(())
    }
}

impl Drop for AnswerMemory {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.memory.give_back(self.taken);
        }
    }
}

impl Identity {
    fn account(&self) -> Option<&Arc<RoleUse>> {
        self.seat.as_deref().map(|seat| &seat.account)
    }

    /// Begins a request of this many bytes; `None` where nothing is counted, as its role has no such limit. A request that is alone is never too large.
    ///
    /// # Errors
    /// `Overloaded`: the role has as many requests or bytes in flight as it may have.
    #[inline]
    pub fn begin(&self, bytes: usize) -> Result<Option<InFlight>> {
        match self.account() {
            Some(account) if account.requests.is_bounded() || account.request_bytes.is_bounded() => {
                begin(account, bytes as u64).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Whether its role was dropped or locked since its login. Another role may have the name by now.
    #[inline]
    pub(crate) fn is_of_ended_role(&self) -> bool {
        self.account().is_some_and(|account| account.is_ended.load(Ordering::Acquire))
    }

    /// The number of its role's permit after so many changes of roles and rights, at this time; `None` of a session without a seat,
    /// or whose role has ended.
    #[inline]
    pub(crate) fn permit(&self, changes: u64, now_ns: u64, numbers: &PermitNumbers) -> Option<u64> {
        let account = self.account().filter(|account| !account.is_ended.load(Ordering::Acquire))?;
        Some(account.permits.number(changes, now_ns, numbers))
    }

    /// Whether its role has limits for its requests.
    pub fn is_limited(&self) -> bool {
        self.account().is_some_and(|account| {
            let bounded = [&account.requests, &account.request_bytes, &account.memory];
            bounded.iter().any(|bounded| bounded.is_bounded()) || self.statement_timeout().is_some()
        })
    }

    /// The time of its statements.
    #[inline]
    pub fn statement_timeout(&self) -> Option<Duration> {
        let ms = self.account()?.statement_ms.load(Ordering::Relaxed);
        (ms != NONE).then(|| Duration::from_millis(ms))
    }

    /// The error of a statement that has taken longer.
    #[cold]
    pub fn timed_out(&self, time: Duration) -> CqlError {
        match self.account() {
            Some(account) => {
                let what = format!("may have {time:?} for a statement, and this one took longer");
                account.refuse(&what, "statement_timeout")
            }
            None => CqlError::Overloaded("the statement took too long".to_owned()),
        }
    }

    /// The memory of an answer to it.
    pub fn answer_memory(&self) -> AnswerMemory {
        let account = self.account().filter(|account| account.memory.is_bounded());
        AnswerMemory { account: account.cloned(), taken: 0 }
    }
}

fn too_long(max: u64) -> String {
    format!("may have {max} bytes of answers at a time, and this one needs more; ask for pages or for less")
}

/// Whether an error is the refusal of a role's limit, whose text names the limit.
pub fn is_role_limit(error: &CqlError) -> bool {
    matches!(error, CqlError::Overloaded(text) if text.starts_with("Role ") && text.contains(OF_OPTION))
}

fn begin(account: &Arc<RoleUse>, bytes: u64) -> Result<InFlight> {
    if let Err(max) = account.requests.take(1, false) {
        let what = format!("has {max} requests in flight, as many as it may have; send fewer at a time");
        return Err(account.refuse(&what, "requests_max"));
    }
    if let Err(max) = account.request_bytes.take(bytes, true) {
        account.requests.give_back(1);
        let what =
            format!("may have {max} bytes of requests in flight; send fewer at a time, or smaller ones");
        return Err(account.refuse(&what, "request_bytes_max"));
    }
    Ok(InFlight { account: Arc::clone(account), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(set: &[(&str, &str)]) -> RoleLimits {
        let mut limits = RoleLimits::default();
        set.iter().for_each(|(name, text)| limits.set(name, text).unwrap());
        limits
    }

    fn seat(uses: &RoleUses, role: &str, limits: &RoleLimits) -> Result<Identity> {
        uses.place(role).seat(Identity::of_role(role), || Ok(limits.clone()))
    }

    fn text<T: std::fmt::Debug>(refused: Result<T>) -> String {
        match refused.unwrap_err() {
            CqlError::Overloaded(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_connection_counts_until_its_last_identity_is_dropped() {
        let uses = RoleUses::default();
        let two = limits(&[("connections_max", "2")]);
        let first = seat(&uses, "app", &two).unwrap();
        let copy = first.clone().at(None);
        let second = seat(&uses, "app", &two).unwrap();
        let refused = text(seat(&uses, "app", &two));
        assert!(
            refused.contains("Role app has 2 connections") && refused.contains("connections_max"),
            "{refused}"
        );
        assert!(seat(&uses, "other", &two).is_ok(), "another role");
        drop(first);
        assert!(seat(&uses, "app", &two).is_err(), "its copy is in use");
        drop(copy);
        drop((seat(&uses, "app", &two).unwrap(), second));
        assert!(uses.figures().is_empty());
    }

    #[test]
    fn requests_bytes_and_memory_are_counted_and_given_back() {
        let uses = RoleUses::default();
        let all = limits(&[("requests_max", "2"), ("request_bytes_max", "1KiB"), ("memory_max", "64KiB")]);
        let identity = seat(&uses, "app", &all).unwrap();
        let other = seat(&uses, "app", &all).unwrap();
        let first = identity.begin(1000).unwrap();
        assert!(text(other.begin(100)).contains("request_bytes_max"));
        let second = other.begin(24).unwrap();
        assert!(text(identity.begin(0)).contains("requests_max"));
        drop((first, second));
        drop(identity.begin(1 << 20).unwrap());
        let (mut one, mut two) = (identity.answer_memory(), other.answer_memory());
        one.grow_to(1).unwrap();
        two.grow_to(48 << 10).unwrap();
        assert!(text(one.grow_to(17 << 10)).contains("memory_max"));
        assert_eq!((uses.figures()[0].memory, uses.figures()[0].refused), (64 << 10, 3));
        drop((one, two));
        let figures = uses.figures();
        assert_eq!((figures[0].requests, figures[0].request_bytes, figures[0].memory), (0, 0, 0));
        assert_eq!(Identity::of_role("app"), identity, "a seat is no part of who somebody is");
    }

    #[test]
    fn a_change_acts_on_running_sessions_and_a_late_reading_does_not_undo_it() {
        let uses = RoleUses::default();
        let identity = seat(&uses, "app", &RoleLimits::default()).unwrap();
        let _uncounted = (identity.begin(0).unwrap(), identity.begin(0).unwrap());
        uses.set("app", &limits(&[("requests_max", "1"), ("statement_timeout", "1s")]));
        let _first = identity.begin(0).unwrap();
        assert!(identity.begin(0).is_err());
        assert_eq!(identity.statement_timeout(), Some(Duration::from_secs(1)));
        let late = uses.place("app").seat(Identity::of_role("app"), || {
            uses.set("app", &limits(&[("requests_max", "5")]));
            Ok(RoleLimits::default())
        });
        assert!(late.is_ok());
        assert_eq!(uses.figures()[0].limits.requests_max, Some(5));
    }

    #[test]
    fn a_role_that_ends_takes_its_sessions_and_the_logins_being_checked_with_it() {
        let uses = RoleUses::default();
        let none = RoleLimits::default();
        let (old, other) = (seat(&uses, "app", &none).unwrap(), seat(&uses, "other", &none).unwrap());
        let checked = uses.place("app");
        uses.end("app");
        assert!(old.is_of_ended_role() && old.clone().at(None).is_of_ended_role());
        let late = checked.seat(Identity::of_role("app"), || Ok(RoleLimits::default()));
        assert!(matches!(late, Err(CqlError::BadCredentials(_))), "{late:?}");
        let one = limits(&[("connections_max", "1")]);
        let new = seat(&uses, "app", &one).unwrap();
        assert!(!new.is_of_ended_role() && !other.is_of_ended_role());
        uses.end("nobody");
    }
}
