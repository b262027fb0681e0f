//! Prepared statements by the numbers that clients get for them. All connections share one cache, as in Cassandra.
//!
//! Cassandra's numbers are hashes of 32 bits, so that a client can make a statement with the number of another's and have it run in
//! its place. Here a number is given once: they are counted, beginning with a random one, so that a number from before a restart is
//! not known.
//!
//! Clients choose the texts, so the cache is limited by memory, which is charged to the account. The least used statements are evicted
//! first, and their clients prepare them again.

use crate::error::{Result, invalid};
use helenus_cql::backend::StatementId;
use helenus_engine::account::{self, Charge, Share};
use parking_lot::Mutex;
use quick_cache::unsync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, Weighter};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// The memory of all statements at most, bytes, as that of the native protocol's.
const BYTES_MAX: u64 = 32 << 20;
/// The same as a part of the account, which is about half of `memory_limit`.
const ACCOUNT_PART: u64 = 8;
/// The approximate memory of a statement besides its text: its places in both maps.
const STATEMENT_BYTES: u64 = 256;

/// A CQL 3 statement that the local database does not run: the keyspace of its unqualified names, and its text.
pub(crate) type Elsewhere = (Option<Arc<str>>, Arc<str>);

/// A prepared statement.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Statement {
    /// CQL 3; the local database has the text.
    Cql3(StatementId),
    Cql2(Arc<str>),
    Elsewhere(Elsewhere),
}

impl Statement {
    fn bytes(&self) -> u64 {
        let texts = match self {
            Statement::Cql3(_) => 0,
            Statement::Cql2(text) => text.len(),
            Statement::Elsewhere((keyspace, text)) => {
                text.len() + keyspace.as_ref().map_or(0, |name| name.len())
            }
        };
        STATEMENT_BYTES + texts as u64
    }
}

/// The statements by number.
pub(crate) struct PreparedStatements {
    /// The longest text.
    text_bytes_max: u64,
    numbered: Mutex<Numbered>,
}

impl Default for PreparedStatements {
    fn default() -> PreparedStatements {
        PreparedStatements::new(BYTES_MAX.min(account::limit() / ACCOUNT_PART))
    }
}

impl PreparedStatements {
    /// A cache of so many bytes.
    fn new(bytes_max: u64) -> PreparedStatements {
        // One text leaves room for others.
        PreparedStatements { text_bytes_max: bytes_max / 2, numbered: Mutex::new(Numbered::new(bytes_max)) }
    }

    /// Checks that a text can be kept, before anything is done for it.
    ///
    /// # Errors
    /// It is too long.
    pub(crate) fn check_length(&self, text: &str) -> Result<()> {
        let (bytes, most) = (text.len() as u64, self.text_bytes_max);
        if bytes <= most {
            return Ok(());
        }
        invalid(format!(
            "The statement has {bytes} bytes, and one that is prepared may have {most}, which is half the memory for prepared \
             statements of this interface; put a marker in place of long values, or execute it without preparing it"
        ))
    }

    /// A number for a CQL 3 statement; equal statements get the same number.
    pub(crate) fn keep(&self, id: StatementId) -> i32 {
        self.numbered.lock().keep(Statement::Cql3(id))
    }

    pub(crate) fn id_of(&self, number: i32) -> Option<StatementId> {
        match self.numbered.lock().get(number)? {
            Statement::Cql3(id) => Some(*id),
            _ => None,
        }
    }

    /// A number for a CQL 3 statement that runs elsewhere; equal statements get the same number.
    pub(crate) fn keep_elsewhere(&self, statement: Elsewhere) -> i32 {
        self.numbered.lock().keep(Statement::Elsewhere(statement))
    }

    pub(crate) fn elsewhere(&self, number: i32) -> Option<Elsewhere> {
        match self.numbered.lock().get(number)? {
            Statement::Elsewhere(statement) => Some(statement.clone()),
            _ => None,
        }
    }

    /// A number for a CQL 2 statement; equal texts get the same number.
    pub(crate) fn keep_cql2(&self, text: &str) -> i32 {
        self.numbered.lock().keep(Statement::Cql2(text.into()))
    }

    pub(crate) fn text_of(&self, number: i32) -> Option<Arc<str>> {
        match self.numbered.lock().get(number)? {
            Statement::Cql2(text) => Some(Arc::clone(text)),
            _ => None,
        }
    }
}

/// Statements, and the number of each.
struct Numbered {
    next: i32,
    of: Cache<i32, Kept, ByMemory, DefaultHashBuilder, TellEvicted>,
    numbers: HashMap<Statement, i32>,
}

/// A statement whose memory is charged to the account.
struct Kept {
    statement: Statement,
    charge: Charge,
}

struct ByMemory;

impl Weighter<i32, Kept> for ByMemory {
    fn weight(&self, _number: &i32, kept: &Kept) -> u64 {
        kept.charge.bytes()
    }
}

/// Collects the statements that make room for a new one.
struct TellEvicted;

impl Lifecycle<i32, Kept> for TellEvicted {
    type RequestState = Vec<Kept>;

    fn on_evict(&self, evicted: &mut Vec<Kept>, _number: i32, kept: Kept) {
        evicted.push(kept);
    }
}

impl Numbered {
    fn new(bytes_max: u64) -> Numbered {
        // Each `RandomState` has other keys.
        let next = RandomState::new().hash_one(0) as i32;
        let estimated = (bytes_max / (2 * STATEMENT_BYTES)).max(16) as usize;
        let of = Cache::with(estimated, bytes_max, ByMemory, DefaultHashBuilder::default(), TellEvicted);
        Numbered { next, of, numbers: HashMap::new() }
    }

    fn get(&self, number: i32) -> Option<&Statement> {
        self.of.get(&number).map(|kept| &kept.statement)
    }

    fn keep(&mut self, statement: Statement) -> i32 {
        if let Some(number) = self.numbers.get(&statement).copied() {
            // Counts as a use.
            let _known = self.of.get(&number);
            return number;
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.numbers.insert(statement.clone(), number);
        let charge = Charge::force(Share::Statements, statement.bytes());
        let mut evicted = Vec::new();
        self.of.insert_with_lifecycle(number, Kept { statement, charge }, &mut evicted);
        for kept in &evicted {
            self.numbers.remove(&kept.statement);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Aa` and `BB` have the same `hashCode`.
    #[test]
    fn a_number_stands_for_one_statement_for_ever() {
        let statements = PreparedStatements::new(1 << 20);
        let (first, second) = (statements.keep_cql2("SELECT Aa"), statements.keep_cql2("SELECT BB"));
        assert_ne!(first, second);
        assert_eq!(statements.keep_cql2("SELECT Aa"), first);
        assert_eq!(statements.text_of(first).as_deref(), Some("SELECT Aa"));
        assert_eq!(statements.id_of(first), None, "it is of another language");
        // Statements with the same first four bytes, more than are kept.
        let id = |number: u32| {
            let mut id = [7; 16];
            id[12..].copy_from_slice(&number.to_be_bytes());
            id
        };
        let mut numbers: Vec<i32> = (0..10_000).map(|number| statements.keep(id(number))).collect();
        let found = |at: usize| statements.id_of(numbers[at]);
        assert!((0..10_000).all(|at| found(at).is_none_or(|found| found == id(at as u32))));
        assert!((0..10_000).any(|at| found(at).is_none()));
        assert!((0..10_000).any(|at| found(at).is_some()), "some make room, not all");
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 10_000);
    }

    #[test]
    fn texts_are_kept_up_to_their_bytes_which_are_on_the_account() {
        let statements = PreparedStatements::new(1 << 20);
        let charged = || {
            let metrics = account::metrics();
            metrics.shares.iter().find(|share| share.share == Share::Statements).map_or(0, |share| share.used)
        };
        for number in 0..100 {
            let text = format!("{number}{}", "x".repeat(100_000));
            statements.keep_cql2(&text);
            statements.keep_elsewhere((None, text.as_str().into()));
            let numbered = statements.numbered.lock();
            assert!(numbered.of.weight() <= 1 << 20, "{}", numbered.of.weight());
            assert_eq!(numbered.of.len(), numbered.numbers.len());
            assert!(charged() >= numbered.of.weight());
        }
        assert!(statements.numbered.lock().of.weight() > 1 << 19);
    }

    #[test]
    fn a_text_that_is_longer_than_the_cache_is_refused_and_the_longest_one_is_kept() {
        let statements = PreparedStatements::new(1 << 20);
        let longest = "x".repeat(1 << 19);
        statements.check_length(&longest).unwrap();
        let number = statements.keep_cql2(&longest);
        assert_eq!(statements.text_of(number).as_deref(), Some(longest.as_str()));
        let refused = statements.check_length(&format!("{longest}x")).unwrap_err().to_string();
        assert!(refused.contains("524289") && refused.contains("524288"), "{refused}");
    }

    #[test]
    fn a_statement_in_use_outlives_others_that_come_once() {
        let statements = PreparedStatements::new(1 << 20);
        let number = statements.keep_cql2("SELECT 1");
        for other in 0..20_000 {
            assert_eq!(statements.text_of(number).as_deref(), Some("SELECT 1"), "{other}");
            statements.keep_cql2(&format!("SELECT 'x{other}'"));
        }
    }
}
