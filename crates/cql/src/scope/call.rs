//! The interface between terms and functions: scalar functions, the context of their calls, and arguments.

use super::names::Scope;
use super::receiver::Receiver;
use crate::budget::RequestBudget;
use crate::error::{CqlError, Result};
use crate::syntax::ast::ArithmeticOperator;
use crate::time_uuid::time_uuid;
use helenus_engine::account;
use helenus_model::types::{Assignment, CqlType};
use std::fmt;
use std::sync::Arc;

/// A scalar function with fixed types, as used by one call.
pub trait Scalar: fmt::Debug + Send + Sync {
    /// Its name in errors: `system.now`.
    fn name(&self) -> &str;
    /// Types of its arguments.
    fn argument_types(&self) -> &[CqlType];
    /// Type of what it returns.
    fn return_type(&self) -> &CqlType;
    /// The name of its result column, for the names of its arguments.
    fn column_name(&self, arguments: &[&str]) -> String {
        format!("{}({})", self.name(), arguments.join(", "))
    }
    /// The operator that it implements, if any.
    fn operator(&self) -> Option<ArithmeticOperator> {
        None
    }
    /// Whether equal arguments always give the same value: such a call with constant arguments is evaluated once, when
    /// the statement is prepared.
    fn is_pure(&self) -> bool;
    /// The bytes of a result whose length comes from its type and not from the arguments; 0 for others.
    fn fixed_result_bytes(&self) -> usize {
        0
    }
    /// The steps of a call with these arguments (`crate::cost`), besides those of going through their bytes.
    fn steps(&self, arguments: &[Option<&[u8]>]) -> usize;
    /// Whether a greater first argument never gives a lesser value, if the other arguments stay the same.
    fn is_monotonic(&self) -> bool {
        false
    }
    /// Computes the value. Arguments are valid values of their types.
    ///
    /// # Errors
    /// An invalid request, if an argument has a value that the function refuses.
    fn call(&self, arguments: &[Option<&[u8]>], cx: &CallContext<'_>) -> Result<Option<Vec<u8>>>;
}

/// The context of function calls while a statement runs.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    /// The statement's time, microseconds since the epoch.
    pub now_us: i64,
    /// Returns unique microseconds that are later than all before, even if the wall clock is set back; for time UUIDs
    /// that define an order.
    pub unique_us: &'a (dyn Fn() -> i64 + Sync),
    /// Makes a time UUID from the wall clock.
    pub now_uuid: &'a (dyn Fn() -> [u8; 16] + Sync),
    /// Fills with random bytes.
    pub random: &'a (dyn Fn(&mut [u8]) + Sync),
    /// Clock sequence and node of this server's time UUIDs.
    pub node: u64,
    /// Limits the time of the statement.
    pub work: &'a RequestBudget<'a>,
}

/// A call with at least this many bytes of arguments may take milliseconds.
const SLOW_FROM_BYTES: usize = 1024;

/// With at least this many bytes of arguments, memory for the result is charged before the call.
const LARGE_ARGUMENTS: usize = 64 << 10;

/// Maximum bytes of a function's result: twice the maximum mutation (`max_mutation_size`).
const RESULT_BYTES_MAX: usize = 32 << 20;

impl CallContext<'_> {
    /// Accounts for a function call before it is made.
    ///
    /// # Errors
    /// The statement has taken too long, or its client is gone; `WouldBlock` if the call may take long and would delay
    /// other clients.
    pub(crate) fn calls(&self, function: &dyn Scalar, arguments: &[Option<&[u8]>]) -> Result<()> {
        let bytes: usize = arguments.iter().flatten().map(|argument| argument.len()).sum();
        if bytes >= SLOW_FROM_BYTES {
            self.work.long_step()?;
        }
        let fixed = function.fixed_result_bytes();
        if fixed > RESULT_BYTES_MAX {
            return Err(too_long(function));
        }
        if bytes.max(fixed) >= LARGE_ARGUMENTS {
            // The result may be longer than the arguments: JSON writes some characters as six.
            account::grow((6 * bytes).max(fixed))?;
        }
        self.work.value_steps(bytes.max(fixed))?;
        self.work.operation(function.steps(arguments), function.name())
    }

    /// Returns a function's result unless it is too long: nested calls of `to_json` double the length each time.
    ///
    /// # Errors
    /// It is longer than any value that can be written.
    pub(crate) fn made(&self, function: &dyn Scalar, value: Option<Vec<u8>>) -> Result<Option<Vec<u8>>> {
        if value.as_ref().is_some_and(|value| value.len() > RESULT_BYTES_MAX) {
            return Err(too_long(function));
        }
        account::settle()?;
        Ok(value)
    }

    /// A new time UUID, greater than all that this returned before.
    pub fn time_uuid(&self) -> [u8; 16] {
        time_uuid((self.unique_us)(), self.node)
    }

    /// A new time UUID, less than all that this returned before: times run backwards from 2010-01-01.
    pub fn mirrored_time_uuid(&self) -> [u8; 16] {
        const REFERENCE_US: i64 = 1_262_304_000_000_000;
        time_uuid(2 * REFERENCE_US - (self.unique_us)(), self.node)
    }
}

fn too_long(function: &dyn Scalar) -> CqlError {
    CqlError::Invalid(format!(
        "The result of {} is longer than {} MiB",
        function.name(),
        RESULT_BYTES_MAX >> 20
    ))
}

impl fmt::Debug for CallContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").field("now_us", &self.now_us).finish_non_exhaustive()
    }
}

/// The context of a call.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// Keyspace of the statement's table.
    pub(crate) keyspace: Arc<str>,
    /// The statement's table.
    pub(crate) table: Arc<str>,
    /// The required type of the result, if known.
    pub(crate) ty: Option<CqlType>,
}

/// The types of operands and results; numbers come first.
pub(crate) const OPERAND_TYPES: [CqlType; 14] = [
    CqlType::TinyInt,
    CqlType::SmallInt,
    CqlType::Int,
    CqlType::BigInt,
    CqlType::Float,
    CqlType::Double,
    CqlType::Decimal,
    CqlType::Varint,
    CqlType::Counter,
    CqlType::Timestamp,
    CqlType::Date,
    CqlType::Duration,
    CqlType::Text,
    CqlType::Ascii,
];

/// How well an operand fits each of `OPERAND_TYPES`.
pub(crate) type Fits = [Assignment; OPERAND_TYPES.len()];

/// An argument of a call: a term, or any selectable in a selection (`AssignmentTestable`).
pub trait Argument {
    /// How well it fits a receiver.
    fn test(&self, receiver: &Receiver, scope: &Scope<'_>) -> Assignment;
    /// Its type or, if it may have several, the one that is assumed.
    fn compatible_type(&self, keyspace: &str, scope: &Scope<'_>) -> Option<CqlType>;
    /// Its text in errors.
    fn text(&self) -> String;
    /// The number of its elements, if it is a list that may also be a vector.
    fn array_length(&self) -> Option<usize> {
        None
    }
    /// Whether it is a bind marker.
    fn is_marker(&self) -> bool {
        false
    }
    /// How well it fits each operand type of operators.
    fn suits(&self, place: &CallSite, scope: &Scope<'_>) -> Fits {
        OPERAND_TYPES.map(|ty| self.test(&Receiver::of_argument(place, ty), scope))
    }
}
