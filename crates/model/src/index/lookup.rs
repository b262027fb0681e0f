//! A search request to an index.

use super::layout::IndexLayout;
use std::sync::Arc;

/// The entries to find. Terms are those of `IndexLayout::term`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexLookup {
    /// The entries of one term.
    Equal(Vec<u8>),
    /// The entries between two terms, both inclusive; only in an ordered index.
    Between(Option<Vec<u8>>, Option<Vec<u8>>),
}

/// A search through an index.
#[derive(Clone, Debug)]
pub struct IndexSearch {
    /// The index to search.
    pub shape: Arc<IndexLayout>,
    /// The entries to find.
    pub lookup: IndexLookup,
}
