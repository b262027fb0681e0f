//! The parts of secondary indexes that need no storage: how values are transformed before they are compared, the layout
//! of an index's hidden table, and search requests.

mod analyzer;
mod layout;
mod lookup;

pub use analyzer::{Analyzer, AnalyzerOption};
pub use layout::IndexLayout;
pub use lookup::{IndexLookup, IndexSearch};
