//! Bounds the work of a request: checks its deadline, its client and its memory from time to time.
//!
//! A request has one `RequestBudget` from its text to its answer. The parser, the analysis, schema changes, DESCRIBE and
//! functions report each step (a term, a column or a row) to it; it makes the checks once every `STEPS` steps. Reads
//! have a check of their own in the engine (`ReadRequest`).

use crate::error::{CqlError, Result, SyntaxError};
use crate::request::Request;
use helenus_engine::{Database, account};
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Steps between two checks. A step takes from half a microsecond to a few, so the checks are a tenth of a millisecond to a
/// millisecond apart.
const STEPS: u32 = 256;

/// The bytes of a collection that take about as long as one step.
const BYTES_A_STEP: usize = 256;

/// The time limit of a request without a deadline of its own, counted from its first check (Cassandra's
/// `request_timeout`).
const TIME_MAX: Duration = Duration::from_secs(10);

/// The budget of one request.
pub struct RequestBudget<'a> {
    /// Provides the clock and the account.
    database: Option<&'a Database>,
    cancelled: Option<&'a AtomicBool>,
    /// Monotonic, nanoseconds; 0 until the first check.
    deadline_ns: AtomicU64,
    steps: AtomicU32,
    /// The error that ended a parser, which itself only reports that it was ended.
    interrupted: Mutex<Option<CqlError>>,
    /// Whether it runs on a thread where it may take long.
    may_block: bool,
}

/// Reserves memory that is about to be allocated for the request that this thread serves.
///
/// # Errors
/// No memory became free in time; `WouldBlock` where the thread may not wait for it.
pub(crate) fn room_for(bytes: usize) -> Result<()> {
    Ok(account::grow(bytes)?)
}

/// Work that belongs to no request.
pub(crate) static UNBOUNDED: RequestBudget<'static> = RequestBudget::unbounded();

impl RequestBudget<'static> {
    /// Work without limits, for texts of the server's own.
    pub(crate) const fn unbounded() -> RequestBudget<'static> {
        RequestBudget {
            database: None,
            cancelled: None,
            deadline_ns: AtomicU64::new(0),
            steps: AtomicU32::new(0),
            interrupted: Mutex::new(None),
            may_block: true,
        }
    }
}

impl<'a> RequestBudget<'a> {
    /// The work of a request.
    pub(crate) fn of(request: &Request<'a>, database: &'a Database) -> RequestBudget<'a> {
        RequestBudget {
            database: Some(database),
            cancelled: request.cancelled,
            deadline_ns: AtomicU64::new(request.deadline_ns.unwrap_or(0)),
            steps: AtomicU32::new(0),
            interrupted: Mutex::new(None),
            may_block: request.may_block,
        }
    }

    /// Work with a deadline and without a client that could disconnect.
    pub(crate) fn timed(database: &'a Database) -> RequestBudget<'a> {
        RequestBudget { database: Some(database), ..RequestBudget::unbounded() }
    }

    /// Keeps the error for which the parser stops.
    pub(crate) fn interrupt(&self, error: CqlError) {
        *self.interrupted.lock() = Some(error);
    }

    /// The error of a text that could not be parsed: the one that interrupted the parser, else the parser's own.
    pub(crate) fn parse_error(&self, error: SyntaxError) -> CqlError {
        self.interrupted.lock().take().unwrap_or_else(|| error.into())
    }

    /// Counts a step of code that only wants to know whether to go on. The error is kept for `interrupted`.
    pub(crate) fn goes_on(&self) -> bool {
        self.step().map_err(|error| self.interrupt(error)).is_ok()
    }

    /// The error for which the work was ended.
    pub(crate) fn interrupted(&self) -> CqlError {
        self.interrupted.lock().take().unwrap_or(CqlError::Cancelled)
    }

    /// Counts a step.
    ///
    /// # Errors
    /// The deadline has passed, or the client has disconnected.
    #[inline]
    pub(crate) fn step(&self) -> Result<()> {
        self.steps(1)
    }

    /// Counts several steps.
    ///
    /// # Errors
    /// As `step`.
    #[inline]
    pub(crate) fn steps(&self, count: usize) -> Result<()> {
        // One thread does the work of a request, so other threads need no exact count.
        let before = self.steps.load(Ordering::Relaxed);
        let after = before.wrapping_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.steps.store(after, Ordering::Relaxed);
        if before / STEPS == after / STEPS { Ok(()) } else { self.check() }
    }

    /// Counts the steps of going through a value of this many bytes element by element.
    ///
    /// # Errors
    /// As `step`.
    #[inline]
    pub(crate) fn value_steps(&self, bytes: usize) -> Result<()> {
        self.steps(1 + bytes / BYTES_A_STEP)
    }

    /// Announces a step that may take milliseconds.
    ///
    /// # Errors
    /// As `step`; `WouldBlock` on a thread where other clients would wait for it.
    pub(crate) fn long_step(&self) -> Result<()> {
        if self.may_block { self.check() } else { Err(CqlError::WouldBlock) }
    }

    /// Makes the checks now.
    ///
    /// # Errors
    /// As `step`.
    #[cold]
    pub(crate) fn check(&self) -> Result<()> {
        if self.cancelled.is_some_and(|cancelled| cancelled.load(Ordering::Relaxed)) {
            return Err(CqlError::Cancelled);
        }
        let Some(database) = self.database else { return Ok(()) };
        // The event loop has served no other client during these steps: the rest runs on a thread that may block.
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

impl fmt::Debug for RequestBudget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("steps", &self.steps).finish_non_exhaustive()
    }
}
