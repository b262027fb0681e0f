//! The seam between terms and functions: what a function is, what a call may ask for, how one is found.

use super::overload::{OPERAND_TYPES, Suits};
use super::resolve::CallPlace;
use super::time_uuid::time_uuid;
use crate::analysis::{Receiver, Scope};
use crate::error::{CqlError, Result};
use crate::syntax::ast::ArithmeticOperator;
use crate::work::Work;
use helenus_engine::account;
use helenus_model::types::{Assignment, CqlType};
use std::fmt;

/// A scalar function with fixed types, as one call uses it.
pub trait Scalar: fmt::Debug + Send + Sync {
    /// Its name as errors show it: `system.now`.
    fn name(&self) -> &str;
    /// Types of its arguments.
    fn argument_types(&self) -> &[CqlType];
    /// Type of what it returns.
    fn return_type(&self) -> &CqlType;
    /// What a result column of it is called, by what its arguments are called.
    fn column_name(&self, arguments: &[&str]) -> String {
        format!("{}({})", self.name(), arguments.join(", "))
    }
    /// The operator that it stands for.
    fn operator(&self) -> Option<ArithmeticOperator> {
        None
    }
    /// Whether the same arguments always give the same value: such a call is computed once, at prepare, if its
    /// arguments are constants.
    fn is_pure(&self) -> bool;
    /// Bytes of arguments from which on a call may take milliseconds.
    fn slow_from_bytes(&self) -> usize {
        1024
    }
    /// Whether a greater first argument never gives a lesser value, the others being the same.
    fn is_monotonic(&self) -> bool {
        false
    }
    /// Computes the value. Arguments are valid values of their types.
    ///
    /// # Errors
    /// An invalid request, where an argument has a value that the function does not take.
    fn call(&self, arguments: &[Option<&[u8]>], cx: &CallContext<'_>) -> Result<Option<Vec<u8>>>;
}

/// What a function may ask for while a statement runs.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    /// The statement's time, microseconds since the epoch.
    pub now_us: i64,
    /// Gives microseconds that nobody else was given, later than all before them though the wall clock be set back: of time
    /// UUIDs that say an order.
    pub unique_us: &'a (dyn Fn() -> i64 + Sync),
    /// Makes a time UUID by the wall clock.
    pub now_uuid: &'a (dyn Fn() -> [u8; 16] + Sync),
    /// Fills with random bytes.
    pub random: &'a (dyn Fn(&mut [u8]) + Sync),
    /// Clock sequence and node of this server's time UUIDs.
    pub node: u64,
    /// How long the statement may go on.
    pub work: &'a Work<'a>,
}

/// Bytes of arguments from which on room for the result is asked for before it is made.
const LARGE_ARGUMENTS: usize = 64 << 10;

/// Longest value that a function may make: twice what a mutation may have (`max_mutation_size`).
const RESULT_BYTES_MAX: usize = 32 << 20;

impl CallContext<'_> {
    /// Notes that a function is called.
    ///
    /// # Errors
    /// The statement has gone on for too long, or its client has gone; `WouldBlock` where other clients would wait for a call
    /// that may take long.
    pub(crate) fn calls(&self, function: &dyn Scalar, arguments: &[Option<&[u8]>]) -> Result<()> {
        let bytes: usize = arguments.iter().flatten().map(|argument| argument.len()).sum();
        if bytes >= function.slow_from_bytes() {
            self.work.long_step()?;
        }
        if bytes >= LARGE_ARGUMENTS {
            // What it makes may be longer than what it gets: JSON writes some characters in six.
            account::grow(6 * bytes)?;
        }
        self.work.passes(bytes)
    }

    /// What a function has made, unless it is too long to go on with: `to_json` of `to_json` doubles with each call.
    ///
    /// # Errors
    /// It is longer than a value can be written.
    pub(crate) fn made(&self, function: &dyn Scalar, value: Option<Vec<u8>>) -> Result<Option<Vec<u8>>> {
        if value.as_ref().is_some_and(|value| value.len() > RESULT_BYTES_MAX) {
            return Err(CqlError::Invalid(format!(
                "The result of {} is longer than {} MiB",
                function.name(),
                RESULT_BYTES_MAX >> 20
            )));
        }
        Ok(value)
    }

    /// A new time UUID, greater than every one that this gave before.
    pub fn time_uuid(&self) -> [u8; 16] {
        time_uuid((self.unique_us)(), self.node)
    }

    /// A new time UUID less than every one before: times run backwards from 2010-01-01.
    pub fn mirrored_time_uuid(&self) -> [u8; 16] {
        const REFERENCE_US: i64 = 1_262_304_000_000_000;
        time_uuid(2 * REFERENCE_US - (self.unique_us)(), self.node)
    }
}

impl fmt::Debug for CallContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").field("now_us", &self.now_us).finish_non_exhaustive()
    }
}

/// What stands as an argument of a call: a term, or in a selection anything that can be selected
/// (`AssignmentTestable`).
pub trait Testable {
    /// How well it suits a receiver.
    fn test(&self, receiver: &Receiver, scope: &Scope<'_>) -> Assignment;
    /// The type that it has or, if it may have several, that it is taken for.
    fn compatible_type(&self, keyspace: &str, scope: &Scope<'_>) -> Option<CqlType>;
    /// What errors call it.
    fn text(&self) -> String;
    /// How many elements it has, if it is a list that may as well be a vector.
    fn array_length(&self) -> Option<usize> {
        None
    }
    /// Whether it is a bind marker.
    fn is_marker(&self) -> bool {
        false
    }
    /// How well it suits each type that operands of operators have.
    fn suits(&self, place: &CallPlace, scope: &Scope<'_>) -> Suits {
        OPERAND_TYPES.map(|ty| self.test(&Receiver::of_argument(place, ty), scope))
    }
}
