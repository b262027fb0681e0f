//! A cache of encoded column descriptions, by result and protocol version.
//!
//! Every answer repeats the description of its columns unless the client asked to leave it out. The backend returns the
//! same `Arc` for the same prepared statement, so a small table keyed by address finds the encoded bytes again.

use std::sync::Arc;

use helenus_cql::backend::{ResultColumn, ResultColumns};
use helenus_wire::native::{ColumnSpec, EncodedColumns, Version};

/// Slots of the table: the number of results in use at once on one event loop. When two share a slot, they are encoded
/// anew.
const PLACES: usize = 256;

/// Converts columns to the wire crate's form.
pub(super) fn specs(columns: &[ResultColumn]) -> Vec<ColumnSpec> {
    let spec = |column: &ResultColumn| ColumnSpec {
        keyspace: Arc::clone(&column.keyspace),
        table: Arc::clone(&column.table),
        name: Arc::clone(&column.name),
        ty: column.ty.clone(),
    };
    columns.iter().map(spec).collect()
}

/// Encoded columns, by the address of the columns they were encoded from. The `Arc` in each slot keeps that address
/// from being reused.
#[derive(Default)]
pub(super) struct ColumnsCache {
    places: Vec<Option<(Arc<ResultColumns>, Version, EncodedColumns)>>,
}

impl ColumnsCache {
    /// The encoded form of `columns` for clients of `version`.
    pub fn get(&mut self, columns: &Arc<ResultColumns>, version: Version) -> &EncodedColumns {
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || None);
        }
        // An allocation begins at a multiple of 16, so neighbouring ones differ in the bits above.
        let place = (Arc::as_ptr(columns).addr() >> 4).wrapping_mul(31) % PLACES;
        #[expect(clippy::indexing_slicing, reason = "a remainder by PLACES, the length of the table")]
        let place = &mut self.places[place];
        let found = place
            .as_ref()
            .is_some_and(|(kept, kept_version, _)| Arc::ptr_eq(kept, columns) && *kept_version == version);
        if !found {
            *place = None;
        }
        let (_, _, encoded) = place.get_or_insert_with(|| {
            (Arc::clone(columns), version, EncodedColumns::new(&specs(&columns.columns), version))
        });
        encoded
    }
}
