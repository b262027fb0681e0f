//! What a search asks of an index.

use super::shape::IndexShape;
use std::sync::Arc;

/// Which entries are wanted. Terms are as `IndexShape::term` makes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexLookup {
    /// Those of one term.
    Equal(Vec<u8>),
    /// Those between two terms, both included; only where the index is ordered.
    Between(Option<Vec<u8>>, Option<Vec<u8>>),
}

/// A search through an index.
#[derive(Clone, Debug)]
pub struct IndexSearch {
    /// The index.
    pub shape: Arc<IndexShape>,
    /// Its entries.
    pub lookup: IndexLookup,
}
