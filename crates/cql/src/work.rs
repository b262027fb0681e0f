//! How long the work of a request may go on: its deadline, its client and its memory are looked at now and then.
//!
//! One `Work` goes with a request from its text to its answer: the parser, the analysis, changes of the schema, DESCRIBE and
//! functions tell it each step they take, a step being a term, a column or a row, and it looks every so many of them. Reads have
//! the engine's own (`ReadRequest`).

use crate::backend::Request;
use crate::error::{CqlError, Result};
use helenus_engine::{Database, account};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Steps between two looks. A step takes a few microseconds: a look comes every few milliseconds at most.
const STEPS: u32 = 256;

/// Bytes of a collection that take about as long as a step.
const BYTES_A_STEP: usize = 256;

/// Time of a request that has no deadline of its own, from its first look on (Cassandra's `request_timeout`).
const TIME_MAX: Duration = Duration::from_secs(10);

/// The work of one request.
pub struct Work<'a> {
    /// Whose clock it goes by.
    database: Option<&'a Database>,
    cancelled: Option<&'a AtomicBool>,
    /// Monotonic, nanoseconds; 0 until the first look.
    deadline_ns: AtomicU64,
    steps: AtomicU32,
    /// Whether it runs on a thread where it may take long.
    may_block: bool,
}

/// Asks for memory that is about to be allocated for the request that this thread serves.
///
/// # Errors
/// There is none in time; `WouldBlock` where the thread may not wait for it.
pub(crate) fn room_for(bytes: usize) -> Result<()> {
    Ok(account::grow(bytes)?)
}

/// What is nobody's request.
pub(crate) static UNBOUNDED: Work<'static> = Work::unbounded();

impl Work<'static> {
    /// Work that nothing ends: of a text that nobody sent.
    pub(crate) const fn unbounded() -> Work<'static> {
        Work {
            database: None,
            cancelled: None,
            deadline_ns: AtomicU64::new(0),
            steps: AtomicU32::new(0),
            may_block: true,
        }
    }
}

impl<'a> Work<'a> {
    /// The work of a request.
    pub(crate) fn of(request: &Request<'a>, database: &'a Database) -> Work<'a> {
        Work {
            database: Some(database),
            cancelled: request.cancelled,
            deadline_ns: AtomicU64::new(request.deadline_ns.unwrap_or(0)),
            steps: AtomicU32::new(0),
            may_block: request.may_block,
        }
    }

    /// Work that has a deadline and no client to look for.
    pub(crate) fn timed(database: &'a Database) -> Work<'a> {
        Work { database: Some(database), ..Work::unbounded() }
    }

    /// Takes a step.
    ///
    /// # Errors
    /// The deadline is over, or the client has gone.
    #[inline]
    pub(crate) fn step(&self) -> Result<()> {
        self.steps(1)
    }

    /// Takes several steps.
    ///
    /// # Errors
    /// As `step`.
    #[inline]
    pub(crate) fn steps(&self, count: usize) -> Result<()> {
        // One thread does the work of a request: what it counts need not be exact for others.
        let before = self.steps.load(Ordering::Relaxed);
        let after = before.wrapping_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.steps.store(after, Ordering::Relaxed);
        if before / STEPS == after / STEPS { Ok(()) } else { self.look() }
    }

    /// Takes the steps of going over a value of so many bytes element by element.
    ///
    /// # Errors
    /// As `step`.
    #[inline]
    pub(crate) fn passes(&self, bytes: usize) -> Result<()> {
        self.steps(1 + bytes / BYTES_A_STEP)
    }

    /// Takes a step that may take milliseconds.
    ///
    /// # Errors
    /// As `step`; `WouldBlock` where other clients would wait for it.
    pub(crate) fn long_step(&self) -> Result<()> {
        if self.may_block { self.look() } else { Err(CqlError::WouldBlock) }
    }

    /// Looks at once.
    ///
    /// # Errors
    /// As `step`.
    #[cold]
    pub(crate) fn look(&self) -> Result<()> {
        if self.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            return Err(CqlError::Cancelled);
        }
        let Some(database) = self.database else { return Ok(()) };
        // So many steps take a tenth of a millisecond or more, in which no other client of an event loop is served.
        if !self.may_block {
            return Err(CqlError::WouldBlock);
        }
        account::settle()?;
        let now_ns = database.host().clock.monotonic_ns();
        match self.deadline_ns.load(Ordering::Relaxed) {
            0 => {
                let limit = u64::try_from(TIME_MAX.as_nanos()).unwrap_or(u64::MAX);
                self.deadline_ns.store(now_ns.saturating_add(limit), Ordering::Relaxed);
                Ok(())
            }
            deadline_ns if now_ns >= deadline_ns => Err(CqlError::Overloaded(
                "the statement took too long; send it in smaller parts, or with values in place of long terms".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("steps", &self.steps).finish_non_exhaustive()
    }
}
