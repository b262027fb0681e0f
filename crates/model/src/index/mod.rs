//! The parts of secondary indexes that need no storage: how values are transformed before they are compared, the layout
//! of an index's hidden table, search requests, and which vectors an index can hold.

mod analyzer;
mod layout;
mod lookup;
mod vector_rule;

pub use analyzer::{Analyzer, AnalyzerOption};
pub use layout::IndexLayout;
pub use lookup::{IndexLookup, IndexSearch};
pub use vector_rule::{UnindexableVector, check_vector, is_by_cosine};
