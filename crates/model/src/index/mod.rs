//! Secondary indexes as far as they need no storage: what is done to values before they are compared, how the hidden table
//! of an index is laid out, and what a search asks of it.

mod analyzer;
mod lookup;
mod shape;

pub use analyzer::{Analyzer, AnalyzerOption};
pub use lookup::{IndexLookup, IndexSearch};
pub use shape::IndexShape;
