//! Bounds the work of a request: checks its deadline, its client and its memory from time to time.
//!
//! A request has one `RequestBudget` from its text to its answer. The parser, the analysis, schema changes, DESCRIBE and
//! functions report each step (a term, a column or a row) to it; it makes the checks once every `STEPS` steps. What
//! works on values reports as many steps as the values cost (`crate::cost`), before it works. Reads have a check of their
//! own in the engine (`ReadRequest`).

use crate::cost;
use crate::error::{CqlError, Result, SyntaxError};
use crate::request::Request;
use helenus_engine::{Database, ReadRequest, account};
use helenus_model::permission::{try_dedup, try_sort};
use helenus_model::types::{
    CqlType, collection_size, needs_normalising, normalise_within, write_json_within,
};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Steps between two checks. A step takes from half a microsecond to a few, so the checks are a tenth of a millisecond to a
/// millisecond apart.
const STEPS: u32 = 256;

/// The bytes of a collection that take about as long as one step.
const BYTES_A_STEP: usize = 256;

/// The same of a vector of numbers, whose elements have no lengths.
const NUMBER_BYTES_A_STEP: usize = 2048;

/// The most steps of a single operation, which nothing can interrupt: about two seconds.
const OPERATION_STEPS_MAX: usize = 2_000_000;

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
    /// The error after a deadline that the statement gave itself.
    late: OnceLock<Late>,
}

/// What ran out of the time that its statement gave it; each with the consistency level for the error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Late {
    /// A read.
    Read(u16),
    /// A write, of which nothing was written.
    Write(u16),
}

/// Reserves memory that is about to be allocated for the request that this thread serves.
///
/// # Errors
/// No memory became free in time; `WouldBlock` where the thread may not wait for it.
pub(crate) fn room_for(bytes: usize) -> Result<()> {
    Ok(account::grow(bytes)?)
}

/// A value of its own, for which memory is reserved if it must be copied.
///
/// # Errors
/// As `room_for`.
pub(crate) fn owned(value: Cow<'_, [u8]>) -> Result<Vec<u8>> {
    if let Cow::Borrowed(bytes) = &value {
        room_for(bytes.len())?;
    }
    Ok(value.into_owned())
}

/// The bytes of an element of a list that is taken apart into values of their own, besides its value.
const ELEMENT_BYTES: usize = 64;

/// Reserves memory for taking a list or a tuple apart into values of their own.
///
/// # Errors
/// As `room_for`.
pub(crate) fn room_for_elements(list: &[u8]) -> Result<()> {
    room_for(list.len() + ELEMENT_BYTES * collection_size(list).min(list.len() / 4))
}

/// Reserves memory for bytes that are about to be appended.
///
/// # Errors
/// As `room_for`.
pub(crate) fn room_in(buffer: &mut Vec<u8>, bytes: usize) -> Result<()> {
    Ok(account::reserve(buffer, bytes)?)
}

/// Reserves memory in a text for bytes that are about to be appended.
///
/// # Errors
/// As `room_for`.
pub(crate) fn room_in_text(text: &mut String, bytes: usize) -> Result<()> {
    let needed = text.len().saturating_add(bytes);
    if needed > text.capacity() {
        let whole = needed.max(text.capacity().saturating_add(text.capacity() / 4));
        // The old bytes exist beside the new ones until they are copied.
        account::grow(whole)?;
        text.reserve_exact(whole - text.len());
    }
    Ok(())
}

/// Appends a value as JSON, and asks for the memory of its text.
///
/// # Errors
/// As `room_for`.
pub(crate) fn put_json(ty: &CqlType, value: Option<&[u8]>, text: &mut String) -> Result<()> {
    let mut refusal = None;
    let mut room = |text: &mut String, bytes: usize| {
        refusal = room_in_text(text, bytes).err();
        refusal.is_none()
    };
    match write_json_within(ty, value, text, &mut room) {
        Some(()) => Ok(()),
        None => Err(refusal.unwrap_or(CqlError::Cancelled)),
    }
}

/// The value with its sets and maps sorted (`normalise`); asks for the memory of that, and counts the comparisons.
///
/// # Errors
/// As `room_for`; those of `RequestBudget::operation`.
pub(crate) fn normalised<'a>(
    ty: &CqlType,
    bytes: &'a [u8],
    work: &RequestBudget<'_>,
) -> Result<Cow<'a, [u8]>> {
    if !needs_normalising(ty) {
        return Ok(Cow::Borrowed(bytes));
    }
    let (once, times) = cost::sorting_of_numbers(ty, bytes);
    work.operation(once, "Sorting the value")?;
    work.steps(once.saturating_mul(times))?;
    let mut refusal = None;
    let mut may = |bytes: usize, steps: usize| {
        refusal = room_for(bytes).and_then(|()| work.steps(steps)).err();
        refusal.is_none()
    };
    match normalise_within(ty, bytes, &mut may) {
        Some(found) => Ok(found),
        None => Err(refusal.unwrap_or(CqlError::Cancelled)),
    }
}

/// Sorts values and keeps the first of equal ones. Asks for the memory, and counts the comparisons.
///
/// # Errors
/// As `room_for`; those of `compare`.
pub(crate) fn sorted_distinct<T>(
    values: Vec<T>,
    mut compare: impl FnMut(&T, &T) -> Result<Ordering>,
    work: &RequestBudget<'_>,
) -> Result<Vec<T>> {
    // The sort, and the list of distinct values.
    room_for(values.len().saturating_mul(size_of::<T>()).saturating_mul(3))?;
    let mut compared = 0_usize;
    let mut compare = |a: &T, b: &T| {
        compared += 1;
        work.steps(usize::from(compared.is_multiple_of(cost::SHORT_VALUES_PER_STEP)))?;
        compare(a, b)
    };
    let sorted = try_sort(values, &mut compare)?;
    try_dedup(sorted, &mut compare)
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
            late: OnceLock::new(),
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
            late: OnceLock::new(),
        }
    }

    /// The work of a call that is no statement, with the limits of its reads.
    pub fn of_read(request: ReadRequest<'a>, database: &'a Database) -> RequestBudget<'a> {
        RequestBudget {
            database: Some(database),
            cancelled: request.cancelled,
            deadline_ns: AtomicU64::new(request.deadline_ns.unwrap_or(0)),
            may_block: request.may_block,
            ..RequestBudget::unbounded()
        }
    }

    /// Sets the deadline that a statement gives itself (`USING TIMEOUT`), in place of the request's.
    pub(crate) fn end_at(&self, deadline_ns: u64, late: Late) {
        self.deadline_ns.store(deadline_ns.max(1), Relaxed);
        let _first_counts = self.late.set(late);
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

    /// Counts a step of code that only wants to know whether to go on, and is about to take so many bytes. The error is kept
    /// for `interrupted`.
    pub(crate) fn goes_on(&self, bytes: usize) -> bool {
        let counted = self.step().and_then(|()| room_for(bytes));
        counted.map_err(|error| self.interrupt(error)).is_ok()
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
        // What a step allocates without asking, which is little, is asked for here.
        account::settle()?;
        // One thread does the work of a request, so other threads need no exact count.
        let before = self.steps.load(Relaxed);
        let after = before.wrapping_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.steps.store(after, Relaxed);
        let passes = count >= STEPS as usize || before / STEPS != after / STEPS;
        if passes { self.check() } else { Ok(()) }
    }

    /// Counts the steps of a single operation on numbers, whose name is for its error.
    ///
    /// # Errors
    /// As `steps`; it would take too long.
    #[inline]
    pub(crate) fn operation(&self, count: usize, name: &str) -> Result<()> {
        if count > OPERATION_STEPS_MAX {
            return Err(CqlError::Invalid(format!(
                "{name} would take too long with numbers of so many digits: round them, or cast them to double, before"
            )));
        }
        self.steps(count)
    }

    /// Counts the steps of comparing two values.
    ///
    /// # Errors
    /// As `operation`.
    #[inline]
    pub(crate) fn comparison(&self, ty: &CqlType, a: &[u8], b: &[u8]) -> Result<()> {
        if a.len().max(b.len()) <= cost::SHORT_BYTES {
            return Ok(());
        }
        self.operation(cost::comparison(ty, a, b), "The comparison")
    }

    /// The order of two values, after its steps were counted.
    ///
    /// # Errors
    /// As `operation`.
    #[inline]
    pub fn order(&self, ty: &CqlType, a: &[u8], b: &[u8]) -> Result<Ordering> {
        self.comparison(ty, a, b)?;
        Ok(ty.compare(a, b))
    }

    /// Counts the steps of making a value's text.
    ///
    /// # Errors
    /// As `operation`.
    #[inline]
    pub(crate) fn text(&self, ty: &CqlType, value: &[u8]) -> Result<()> {
        self.value_steps(value.len())?;
        self.operation(cost::text(ty, value), "The text of the value")
    }

    /// Counts the steps of computing the digits of long numbers in a value, for its ordered form.
    ///
    /// # Errors
    /// As `operation`.
    #[inline]
    pub(crate) fn digits(&self, ty: &CqlType, value: &[u8]) -> Result<()> {
        if value.len() <= cost::SHORT_BYTES {
            return Ok(());
        }
        self.operation(cost::text(ty, value), "The order of the value")
    }

    /// Counts the steps of validating a value. Those without parts take less time than a step, or the time of copying them.
    ///
    /// # Errors
    /// As `step`.
    #[inline]
    pub(crate) fn validation(&self, ty: &CqlType, bytes: usize) -> Result<()> {
        if bytes < BYTES_A_STEP {
            return Ok(());
        }
        self.operation(cost::class_parsing(ty, bytes), "Checking the value")?;
        match ty {
            CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => {
                self.steps(bytes / BYTES_A_STEP)
            }
            CqlType::Tuple(_) | CqlType::Udt(_) | CqlType::Custom(_) => self.steps(bytes / BYTES_A_STEP),
            CqlType::Vector { element, .. } if element.fixed_length().is_some() => {
                self.steps(bytes / NUMBER_BYTES_A_STEP)
            }
            CqlType::Vector { .. } => self.steps(bytes / BYTES_A_STEP),
            _ => Ok(()),
        }
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
        if self.cancelled.is_some_and(|cancelled| cancelled.load(Relaxed)) {
            return Err(CqlError::Cancelled);
        }
        let Some(database) = self.database else { return Ok(()) };
        // The event loop has served no other client during these steps: the rest runs on a thread that may block.
        if !self.may_block {
            return Err(CqlError::WouldBlock);
        }
        account::settle()?;
        let now_ns = database.host().clock.monotonic_ns();
        match self.deadline_ns.load(Relaxed) {
            0 => {
                let limit = u64::try_from(TIME_MAX.as_nanos()).unwrap_or(u64::MAX);
                self.deadline_ns.store(now_ns.saturating_add(limit), Relaxed);
                Ok(())
            }
            deadline_ns if now_ns >= deadline_ns => Err(match self.late.get() {
                Some(Late::Read(consistency)) => CqlError::ReadTimeout { consistency: *consistency },
                Some(Late::Write(consistency)) => CqlError::WriteTimeout { consistency: *consistency },
                None => CqlError::Overloaded(
                    "the statement took too long; send it in smaller parts, or with values in place of long terms"
                        .to_owned(),
                ),
            }),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for RequestBudget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("steps", &self.steps).finish_non_exhaustive()
    }
}
