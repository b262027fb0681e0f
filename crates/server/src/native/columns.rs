//! A cache of encoded column descriptions, by result and protocol version.
//!
//! Every answer repeats the description of its columns unless the client asked to leave it out. The backend returns the
//! same `Arc` for the same prepared statement, so a small table keyed by address finds the encoded bytes again.

use std::sync::Arc;

use helenus_cql::backend::{ResultColumn, ResultColumns};
use helenus_host::account::{self, Refusal};
use helenus_model::types::described_bytes;
use helenus_wire::native::{ColumnSpec, EncodedColumns, Version};

/// Slots of the table: the number of results in use at once on one event loop. When two share a slot, they are encoded
/// anew.
const PLACES: usize = 256;

/// The longest description that is kept, and asks for no memory of its own: all places of an event loop have at most 4 MiB, and a
/// description is longer than the columns that are kept with it. A longer one is encoded for each answer.
const KEPT_BYTES_MAX: usize = 16 << 10;

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
    /// A description that is too long to be kept, until its answer is written.
    long: Option<EncodedColumns>,
}

/// The bytes of the description of columns, at most.
pub(super) fn description_bytes(columns: &[ResultColumn]) -> usize {
    let names =
        columns.iter().map(|column| 6 + column.keyspace.len() + column.table.len() + column.name.len());
    names.sum::<usize>().saturating_add(described_bytes(columns.iter().map(|column| &column.ty)))
}

impl ColumnsCache {
    /// The encoded form of `columns` for clients of `version`.
    ///
    /// # Errors
    /// It is long, and there is no memory for it and its copy in the answer.
    pub fn get(
        &mut self,
        columns: &Arc<ResultColumns>,
        version: Version,
    ) -> Result<&EncodedColumns, Refusal> {
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
            let bytes = description_bytes(&columns.columns);
            if bytes > KEPT_BYTES_MAX {
                account::grow(2 * bytes)?;
                return Ok(self.long.insert(EncodedColumns::new(&specs(&columns.columns), version)));
            }
        }
        let (_, _, encoded) = place.get_or_insert_with(|| {
            (Arc::clone(columns), version, EncodedColumns::new(&specs(&columns.columns), version))
        });
        Ok(encoded)
    }

    /// Drops a description that is not kept.
    pub fn forget_long(&mut self) {
        self.long = None;
    }
}
