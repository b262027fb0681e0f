//! Paging states of every kind: which bytes can be one at all.
//!
//! Cassandra reads the state of a request with the request's options, whatever the statement: one that nobody gave is an
//! error of the protocol even where no page is asked for (`QueryOptions.Codec`, `PagingState.deserialize`).

use super::{describe, select};
use crate::error::{Result, bad_paging_state};

/// Refuses a state that no statement of ours has given.
pub(crate) fn check_paging_state(state: Option<&[u8]>) -> Result<()> {
    match state {
        Some(state) if !select::is_paging_state(state) && !describe::is_paging_state(state) => {
            Err(bad_paging_state())
        }
        _ => Ok(()),
    }
}
