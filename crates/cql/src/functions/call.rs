//! The seam between terms and functions: what a function is, what a call may ask for, how one is found.

use crate::analysis::{Receiver, Scope};
use crate::error::{CqlError, Result};
use crate::syntax::ast::{self, FunctionName};
use helenus_model::types::CqlType;
use std::fmt;
use std::sync::Arc;

/// A scalar function with fixed types, as one call uses it.
pub trait Scalar: fmt::Debug + Send + Sync {
    /// Its name as errors show it: `system.now`.
    fn name(&self) -> &str;
    /// Types of its arguments.
    fn argument_types(&self) -> &[CqlType];
    /// Type of what it returns.
    fn return_type(&self) -> &CqlType;
    /// Whether the same arguments always give the same value: such a call is computed once, at prepare, if its
    /// arguments are constants.
    fn is_pure(&self) -> bool;
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
    /// Gives microseconds since the epoch that nobody else was given, for time UUIDs.
    pub unique_us: &'a (dyn Fn() -> i64 + Sync),
    /// Fills with random bytes.
    pub random: &'a (dyn Fn(&mut [u8]) + Sync),
}

impl fmt::Debug for CallContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").field("now_us", &self.now_us).finish_non_exhaustive()
    }
}

/// What stands as an argument of a call: a term, or in a selection something whose type is known.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A term.
    Term(&'a ast::Term<'a>),
    /// A value of this type.
    Typed(&'a CqlType),
}

/// The function that a call means, chosen by its arguments and what the result is for (`FunctionResolver.get`).
///
/// # Errors
/// There is no such function, or none of its overloads fits.
pub fn find(
    name: &FunctionName<'_>,
    _arguments: &[Argument<'_>],
    _receiver: Option<&Receiver>,
    _scope: &Scope<'_>,
) -> Result<Arc<dyn Scalar>> {
    Err(CqlError::Invalid(format!("Unknown function {} called", name.name.as_str())))
}
