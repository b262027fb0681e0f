//! A cache of encoded column descriptions, by result and protocol version.
//!
//! Every answer repeats the description of its columns unless the client asked to leave it out. The backend returns the
//! same `Arc` for the same prepared statement, so a small table keyed by address finds the encoded bytes again.

use std::sync::Arc;

use helenus_cql::backend::{ResultColumn, ResultColumns};
use helenus_host::account::{self, Refusal};
use helenus_model::types::described_bytes;
use helenus_wire::native::{ColumnSource, ColumnSpec, EncodedColumns, Version};

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

fn only_counted(columns: &[ResultColumn]) -> ColumnSource<'static> {
    let are_of_one_table = columns.split_first().is_some_and(|(first, rest)| {
        rest.iter().all(|column| column.table == first.table && column.keyspace == first.keyspace)
    });
    ColumnSource::Known { count: columns.len(), are_of_one_table }
}

impl ColumnsCache {
    /// The columns for an answer to a client of `version`. Where they are not described (`skip`), a long description is not made.
    ///
    /// # Errors
    /// The description is long, and there is no memory for it and its copy in the answer.
    pub fn get(
        &mut self,
        columns: &Arc<ResultColumns>,
        version: Version,
        skip: bool,
    ) -> Result<ColumnSource<'_>, Refusal> {
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
            let bytes = description_bytes(&columns.columns);
            if bytes > KEPT_BYTES_MAX && skip {
                return Ok(only_counted(&columns.columns));
            }
            *place = None;
            if bytes > KEPT_BYTES_MAX {
                account::grow(2 * bytes)?;
                let encoded = EncodedColumns::new(&specs(&columns.columns), version);
                return Ok(ColumnSource::Encoded(self.long.insert(encoded)));
            }
        }
        let (_, _, encoded) = place.get_or_insert_with(|| {
            (Arc::clone(columns), version, EncodedColumns::new(&specs(&columns.columns), version))
        });
        Ok(ColumnSource::Encoded(encoded))
    }

    /// Drops a description that is not kept.
    pub fn forget_long(&mut self) {
        self.long = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::types::CqlType;

    fn columns(count: usize) -> Arc<ResultColumns> {
        let column = |number: usize| ResultColumn {
            keyspace: "ks".into(),
            table: "t".into(),
            name: format!("column_{number}").into(),
            ty: CqlType::Text,
        };
        Arc::new(ResultColumns { columns: (0..count).map(column).collect(), id: [0; 16] })
    }

    #[test]
    fn a_long_description_is_not_made_for_a_client_that_knows_it() {
        let mut cache = ColumnsCache::default();
        let (short, long) = (columns(3), columns(2000));
        let got = cache.get(&long, Version::V4, true);
        assert!(matches!(got, Ok(ColumnSource::Known { count: 2000, are_of_one_table: true })));
        assert!(cache.long.is_none());
        assert!(
            matches!(cache.get(&long, Version::V4, false), Ok(ColumnSource::Encoded(all)) if all.len() == 2000)
        );
        // A short one is kept for those who do not know it.
        assert!(
            matches!(cache.get(&short, Version::V4, true), Ok(ColumnSource::Encoded(all)) if all.len() == 3)
        );
    }
}
