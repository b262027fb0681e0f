//! Paging states of the gateway: the cluster's, with a mark and a checksum in front, so that a state that another server has made
//! is refused instead of being given to a node that would read something else in it.
//!
//! Where clients see the nodes, the states pass as they are: a client may fetch one page here and the next from a node. So do those of
//! the server that a gateway continues after a move, whose states have Cassandra's format.

use std::borrow::Cow;

use helenus_wire::native::{ErrorCode, ErrorMessage};

const MARK: [u8; 3] = *b"HG\x01";
const PREFIX: usize = MARK.len() + 4;

/// The paging states of a gateway.
pub(crate) struct PagingStates {
    /// The cluster's name.
    pub cluster: String,
    /// Whether they are the cluster's own.
    pub are_bare: bool,
}

impl PagingStates {
    /// The state for a client, from that of a node.
    pub fn for_client<'a>(&self, state: &'a [u8]) -> Cow<'a, [u8]> {
        match self.are_bare {
            true => Cow::Borrowed(state),
            false => Cow::Owned(wrap(&self.cluster, state)),
        }
    }

    /// The state for a node, from that of a client.
    ///
    /// # Errors
    /// The state is not of a gateway of this cluster; the error is Cassandra's for such a state.
    pub fn for_node<'a>(&self, state: &'a [u8]) -> Result<&'a [u8], ErrorMessage> {
        match self.are_bare {
            true => Ok(unwrap(&self.cluster, state).unwrap_or(state)),
            false => unwrap(&self.cluster, state),
        }
    }
}

/// Wraps a state of the cluster. `cluster`: its name.
fn wrap(cluster: &str, state: &[u8]) -> Vec<u8> {
    let mut wrapped = Vec::with_capacity(PREFIX + state.len());
    wrapped.extend_from_slice(&MARK);
    wrapped.extend_from_slice(&checksum(cluster, state));
    wrapped.extend_from_slice(state);
    wrapped
}

/// The state of the cluster inside one of the gateway.
///
/// # Errors
/// The state is not of a gateway of this cluster; the error is Cassandra's for such a state.
fn unwrap<'a>(cluster: &str, wrapped: &'a [u8]) -> Result<&'a [u8], ErrorMessage> {
    let inner = wrapped.strip_prefix(&MARK).and_then(|rest| rest.split_first_chunk::<4>());
    match inner {
        Some((sum, state)) if *sum == checksum(cluster, state) => Ok(state),
        _ => Err(ErrorMessage::plain(ErrorCode::Protocol, "Invalid value for the paging state")),
    }
}

fn checksum(cluster: &str, state: &[u8]) -> [u8; 4] {
    let mut context = md5::Context::new();
    context.consume(cluster);
    context.consume([0]);
    context.consume(state);
    let [a, b, c, d, ..] = *context.finalize();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_states_of_the_same_cluster_are_accepted() {
        let wrapped = wrap("ring", b"state");
        assert_eq!(unwrap("ring", &wrapped).unwrap(), b"state");
        assert_eq!(unwrap("ring", &wrap("ring", b"")).unwrap(), b"");
        assert!(unwrap("other", &wrapped).is_err());
        assert!(unwrap("ring", b"state").is_err());
        assert!(unwrap("ring", b"").is_err());
        let bare = PagingStates { cluster: "ring".to_owned(), are_bare: true };
        assert_eq!(bare.for_node(&wrapped).unwrap(), b"state");
        assert_eq!(bare.for_node(b"state").unwrap(), b"state");
        assert_eq!(*bare.for_client(b"state"), *b"state");
        let mut changed = wrapped;
        *changed.last_mut().unwrap() ^= 1;
        assert!(unwrap("ring", &changed).is_err());
    }
}
