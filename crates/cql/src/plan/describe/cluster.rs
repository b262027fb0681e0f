//! DESCRIBE CLUSTER: name, partitioner, snitch and, with a keyspace in use, the owners of the token ranges.

use crate::virtual_table::{NodeInfo, ring_tokens};
use helenus_model::types::pack;

/// The name of Cassandra's default snitch, which wraps every other.
const SNITCH: &str = "DynamicEndpointSnitch";
const PARTITIONER: &str = "Murmur3Partitioner";

/// The values of the row. The fourth, only with a keyspace in use, is a map from the ends of ranges to lists of nodes.
pub(super) fn row(node: &NodeInfo, with_ranges: bool) -> Vec<Vec<u8>> {
    let mut row = vec![
        node.cluster_name.as_bytes().to_vec(),
        PARTITIONER.as_bytes().to_vec(),
        SNITCH.as_bytes().to_vec(),
    ];
    if with_ranges {
        let endpoint = format!("/{}:7000", node.native_address.ip());
        let mut endpoints = Vec::new();
        pack(1, [Some(endpoint.as_bytes())], &mut endpoints);
        let tokens = ring_tokens();
        let entries = tokens.iter().flat_map(|token| [Some(token.as_bytes()), Some(&endpoints[..])]);
        let mut map = Vec::new();
        pack(tokens.len(), entries, &mut map);
        row.push(map);
    }
    row
}
