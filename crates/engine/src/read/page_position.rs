//! Finds a position between range tombstone markers at which a page can end.
//!
//! A paging state names a row: the next page begins after it. A marker stands at a bound, before or after the rows with
//! a prefix, and most bounds are no row's position. But any clustering will do that lies between the rows already read
//! and those ahead; no row needs to have it. Beside a bound of all clustering columns that is the clustering of the
//! bound itself. Beside a bound before a shorter prefix it is the prefix with nulls behind it, which sort before all
//! values (`ClusteringComparator.compareComponent`, which takes nulls in paging states of any table). Beside a bound
//! after a shorter prefix there is none, and the page goes on to the next marker or row.
//!
//! The position may lie ahead of the marker, with a row between them that is still to be read. Then the page ends at
//! the next element, if that lies beyond the position.

use helenus_model::byte_comparable::{clustering_bound, clustering_key};
use helenus_model::range_tombstone::MarkerView;
use helenus_model::schema::Table;

/// The position ahead of the last marker, while nothing but that marker has been read since.
#[derive(Default)]
pub(super) struct PositionAhead(Option<Vec<u8>>);

impl PositionAhead {
    /// Forgets the position: the read has passed a row.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// A position at which the page can end, given that everything before the marker has been read in the direction of
    /// the read, and nothing behind it; `None`: not here.
    pub(super) fn at(&mut self, marker: MarkerView<'_>, table: &Table, reversed: bool) -> Option<Vec<u8>> {
        let (mut bound, mut row) = (Vec::new(), Vec::new());
        let columns = &table.clustering;
        let count = marker.marker.clustering.len().min(columns.len());
        let values = || (0..count).map(|index| marker.clustering(index));
        // The bound at the edge of a slice has no prefix, and a key of its own.
        if marker.marker.key.is_empty() {
            clustering_bound(values(), columns, marker.marker.before, &mut bound).ok()?;
        } else {
            bound.extend_from_slice(&marker.marker.key);
        }
        let is_read = |position: &[u8]| if reversed { position > &bound[..] } else { position < &bound[..] };
        if let Some(ahead) = self.0.take().filter(|ahead| is_read(ahead)) {
            return Some(ahead);
        }
        if count == 0 || count < columns.len() && !marker.marker.before {
            return None;
        }
        let nulls = std::iter::repeat_n(None, columns.len() - count);
        clustering_key(values().chain(nulls), columns, &mut row).ok()?;
        if is_read(&row) {
            return Some(row);
        }
        self.0 = Some(row);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::range_tombstone::MarkerBuf;
    use helenus_model::row::span;
    use helenus_model::schema::{Column, ColumnKind, TableId};
    use helenus_model::types::CqlType;

    fn table() -> Table {
        let mut second = Column::new("b", ColumnKind::Clustering, CqlType::Int);
        (second.position, second.reversed) = (1, true);
        let columns = [
            Column::new("k", ColumnKind::PartitionKey, CqlType::Int),
            Column::new("a", ColumnKind::Clustering, CqlType::Int),
            second,
        ];
        Table::new(("ks", "t"), TableId(Default::default()), columns)
    }

    fn row(table: &Table, a: i32, b: i32) -> Vec<u8> {
        let (a, b, mut key) = (a.to_be_bytes(), b.to_be_bytes(), Vec::new());
        clustering_key([Some(&a[..]), Some(&b[..])], &table.clustering, &mut key).unwrap();
        key
    }

    fn marker(table: &Table, values: &[i32], before: bool) -> MarkerBuf {
        let mut marker = MarkerBuf { before, ..MarkerBuf::default() };
        for value in values {
            marker.clustering.push(span(marker.data.len(), 4));
            marker.data.extend_from_slice(&value.to_be_bytes());
        }
        let bytes = values.iter().map(|value| value.to_be_bytes()).collect::<Vec<_>>();
        let values = bytes.iter().map(|bytes| Some(&bytes[..]));
        clustering_bound(values, &table.clustering, before, &mut marker.key).unwrap();
        marker
    }

    #[test]
    fn a_position_parts_the_rows_that_were_read_from_those_ahead() {
        let table = table();
        let bounds: Vec<MarkerBuf> = (0..3)
            .flat_map(|a| {
                let of = |values: &[i32], before| marker(&table, values, before);
                let within = [2, 1].map(|b| [of(&[a, b], true), of(&[a, b], false)]);
                [of(&[a], true)].into_iter().chain(within.into_iter().flatten()).chain([of(&[a], false)])
            })
            .collect();
        assert!(bounds.is_sorted_by(|one, next| one.key < next.key));
        let rows: Vec<Vec<u8>> = (0..3).flat_map(|a| [3, 2, 1, 0].map(|b| row(&table, a, b))).collect();
        assert!(rows.is_sorted());
        for reversed in [false, true] {
            let mut found = 0;
            // Two markers, of which rows lie between or not; the page is due at the first.
            for (at, first) in bounds.iter().enumerate() {
                for next in bounds.iter().skip(at + 1) {
                    let (one, other) = if reversed { (next, first) } else { (first, next) };
                    let mut ahead = PositionAhead::default();
                    let mut check = |marker: &MarkerBuf, ahead: &mut PositionAhead| {
                        let position = ahead.at(marker.view(), &table, reversed)?;
                        found += 1;
                        for row in &rows {
                            let is_read = if reversed { *row > marker.key } else { *row < marker.key };
                            let is_before = if reversed { *row >= position } else { *row <= position };
                            let lies_between = (*row > one.key) != (*row > other.key);
                            assert!(is_read || !is_before, "skips a row");
                            assert!(is_before || !is_read || lies_between, "reads a row again");
                        }
                        Some(())
                    };
                    if check(one, &mut ahead).is_none() {
                        // Rows between the two would have been read as rows, and the position forgotten.
                        if rows.iter().any(|row| (*row > one.key) != (*row > other.key)) {
                            ahead.clear();
                        }
                        check(other, &mut ahead);
                    }
                }
            }
            assert!(found > 60, "{found} positions");
        }
    }
}
