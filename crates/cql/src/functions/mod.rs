//! Functions that terms and selections can call.
//!
//! The interface of functions and their calls is `crate::scope`. `resolve` chooses a function by name and arguments: from those
//! with fixed types, which `native` lists and computes, and those that `factory` makes for the argument types;
//! `overload` chooses among the operators. The computations are in files by subject: `time`, `time_uuid`, `cast`,
//! `operation` (the operators), `math`, `collection`, `mask`, `digest`, `similarity`; `number`, `decimal` and
//! `logarithm` are the arithmetic, with Java's rules. `aggregate` computes one value of many rows.

mod aggregate;
mod cast;
mod collection;
mod compatibility;
mod decimal;
mod digest;
mod factory;
mod logarithm;
mod mask;
mod math;
mod native;
mod number;
mod operation;
mod overload;
mod resolve;
mod similarity;
mod steps;
mod time;

pub(crate) use aggregate::{Aggregate, Fold};
pub(crate) use compatibility::{assignable, compatible};
pub(crate) use operation::{NEGATION, function_name};
pub(crate) use overload::{Choice, choose, number_of};
pub use resolve::find;
pub(crate) use resolve::{Found, is_made, lookup, quoted_name};
pub(crate) use similarity::Similarity;
