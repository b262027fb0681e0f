//! Counts the failed logins of an address, and the refused calls of clients there that have not logged in, in place of writing
//! each of them.
//!
//! A stranger needs no login to make them, and each line may push older ones out of the log (`max_log_size`). The first
//! lines of an address in a minute are written, then those whose number is a power of two; a written line says how many
//! were not. The number of addresses is limited; the failures of further ones are counted together.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use helenus_logins::network_of;

use helenus_cql::audit::EventType;

use super::entry::{AuditEntry, AuditUser};

/// The failures of an address in a period that are written one by one.
const WRITTEN_MAX: u64 = 10;
/// The period, milliseconds.
const PERIOD_MS: i64 = 60_000;
/// The most addresses that are counted each by itself: some hundred KiB.
const ADDRESSES_MAX: usize = 4096;

/// The address under which failures of addresses without a place are counted.
const OTHERS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// What a stranger may make fail without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// A login.
    Login,
    /// Another call without a login.
    Call,
}

impl Repeated {
    /// Both.
    pub const ALL: [Repeated; 2] = [Repeated::Login, Repeated::Call];

    /// Of an event that is counted; `None` for others.
    pub fn of(entry: &AuditEntry<'_>) -> Option<Repeated> {
        match (entry.event, entry.user) {
            (EventType::LoginError, _) => Some(Repeated::Login),
            (EventType::LoginSuccess, _) => None,
            (_, AuditUser::Nobody) => Some(Repeated::Call),
            _ => None,
        }
    }

    /// The event under which those are written that were not written one by one.
    pub fn event(self) -> EventType {
        match self {
            Repeated::Login => EventType::LoginError,
            Repeated::Call => EventType::UnauthorizedAttempt,
        }
    }

    /// The operation of such a line.
    pub fn unwritten_text(self, count: u64) -> String {
        let what = match self {
            Repeated::Login => "failed logins",
            Repeated::Call => "refused calls without a login",
        };
        format!("{count} more {what} from this address are not written one by one")
    }
}

/// The failures of addresses, of one kind.
#[derive(Debug, Default)]
pub struct Repeats {
    addresses: HashMap<IpAddr, Failures>,
    /// When the addresses whose period is over were last looked for.
    swept_ms: i64,
}

#[derive(Debug, Default)]
struct Failures {
    began_ms: i64,
    /// Failures in this period.
    count: u64,
    /// Failures that no line tells of.
    unwritten: u64,
}

/// Failures that were not written one by one, of an address.
pub type Unwritten = (IpAddr, u64);

impl Repeats {
    /// Counts a failure; returns whether its line is written, with the number of those before it that were not. `over` gets the
    /// failures of addresses whose period is over.
    pub fn failed(&mut self, address: IpAddr, now_ms: i64, over: &mut Vec<Unwritten>) -> Option<u64> {
        if now_ms.abs_diff(self.swept_ms) >= PERIOD_MS.unsigned_abs() {
            self.swept_ms = now_ms;
            let is_over =
                |failures: &Failures| now_ms.abs_diff(failures.began_ms) >= PERIOD_MS.unsigned_abs();
            let gone = self.addresses.extract_if(|_, failures| is_over(failures));
            over.extend(gone.map(|(address, failures)| (address, failures.unwritten)));
            over.retain(|(_, unwritten)| *unwritten > 0);
        }
        let mut key = network_of(address);
        if self.addresses.len() >= ADDRESSES_MAX && !self.addresses.contains_key(&key) {
            key = OTHERS;
        }
        let failures = self.addresses.entry(key).or_default();
        if failures.count == 0 || now_ms.abs_diff(failures.began_ms) >= PERIOD_MS.unsigned_abs() {
            *failures = Failures { began_ms: now_ms, count: 0, unwritten: failures.unwritten };
        }
        failures.count += 1;
        if failures.count <= WRITTEN_MAX || failures.count.is_power_of_two() {
            return Some(std::mem::take(&mut failures.unwritten));
        }
        failures.unwritten += 1;
        None
    }

    /// Forgets all addresses; returns the failures that no line tells of.
    pub fn end(&mut self) -> Vec<Unwritten> {
        let all = self.addresses.drain().map(|(address, failures)| (address, failures.unwritten));
        all.filter(|(_, unwritten)| *unwritten > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn of(number: u32) -> IpAddr {
        IpAddr::from((0x0A00_0000 + number).to_be_bytes())
    }

    #[test]
    fn many_failures_have_few_lines_and_each_is_counted_once() {
        let (mut repeats, mut over) = (Repeats::default(), Vec::new());
        let (mut lines, mut told) = (0, 0);
        for number in 0..100_000 {
            if let Some(unwritten) = repeats.failed(of(1), number / 100, &mut over) {
                lines += 1;
                told += 1 + unwritten;
            }
        }
        assert!(lines < 30, "{lines}");
        assert!(over.is_empty());
        // Another address is written at once.
        assert_eq!(repeats.failed(of(2), 1000, &mut over), Some(0));
        told += repeats.end().iter().map(|(_, unwritten)| unwritten).sum::<u64>();
        assert_eq!(told, 100_000);
    }

    #[test]
    fn what_was_not_written_is_told_when_the_period_is_over() {
        let (mut repeats, mut over) = (Repeats::default(), Vec::new());
        assert_eq!((0..15).filter_map(|_| repeats.failed(of(1), 0, &mut over)).count(), 10);
        assert_eq!(repeats.failed(of(2), PERIOD_MS, &mut over), Some(0));
        assert_eq!(over, [(of(1), 5)]);
        assert!(repeats.end().is_empty());
    }

    #[test]
    fn the_number_of_addresses_is_limited_and_a_network_of_ipv6_is_one() {
        let (mut repeats, mut over) = (Repeats::default(), Vec::new());
        let (mut lines, mut told) = (0, 0);
        for number in 0..20_000 {
            if let Some(unwritten) = repeats.failed(of(number), 0, &mut over) {
                (lines, told) = (lines + 1, told + 1 + unwritten);
            }
        }
        assert!(repeats.addresses.len() <= ADDRESSES_MAX + 1 && lines < ADDRESSES_MAX + 40, "{lines}");
        assert_eq!(told + repeats.end().iter().map(|(_, unwritten)| unwritten).sum::<u64>(), 20_000);
        for host in 0..100_u128 {
            repeats.failed(IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | host)), 0, &mut over);
        }
        assert_eq!(repeats.addresses.len(), 1);
    }
}
