//! The paging state that clients receive and send back, in Cassandra's format (`PagingState`).
//!
//! A state is a position and is not tied to a statement: clients may send any bytes with any statement. So nothing in a
//! state is trusted: its key, its row and its two numbers may each be anything. It is decoded as in Cassandra, with the
//! request and for every statement: an invalid state is a protocol error even where no paging is asked for
//! (`QueryOptions.Codec`).
//!
//! Two layouts are read, that of protocols 4 and 5 and that of protocol 3, each in requests of either; the first one is
//! written. Both contain the length of the key, the key, the length of the row mark, the row mark, the rows left of the
//! limit, and the rows left of the partition's limit. In the first layout all numbers are variable integers. In the
//! second, lengths have 2 bytes and numbers 4, and the last number may be absent.

use crate::error::{CqlError, Result, bad_paging_state};
use helenus_model::byte_comparable::{clustering_key, decode_clustering};
use helenus_model::schema::Table;
use helenus_model::vint;

/// The number of rows that means no limit.
const NO_LIMIT: u32 = i32::MAX as u32;
/// The suffix of states whose page was cut for its size where Cassandra would have returned all rows.
const CUT: &[u8] = b"cut:byte";
/// The suffix of states whose page ended among dead rows, before the first live row of its partition. Cassandra ends no
/// page there: to it, a state with a row says that the partition's static row is not the only one.
const BEFORE_ROWS: &[u8] = b"cut:dead";

/// A paging state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PagingState {
    /// The serialised partition key; absent in a read of one partition.
    pub(crate) key: Option<Vec<u8>>,
    /// The last row that was returned or passed.
    pub(crate) row: Option<RowMark>,
    /// Rows left of the limit; `u64::MAX`: no limit.
    pub(crate) rows_left: u64,
    /// Rows left of the partition's limit; `u64::MAX`: no limit.
    pub(crate) rows_left_in_partition: u64,
    /// Whether the page was cut for its size where Cassandra would not page. Such a statement obeys no other states.
    pub(crate) is_cut: bool,
    /// Whether no row of the partition was returned, although the state has a row: the page ended at a dead one.
    pub(crate) is_before_rows: bool,
}

/// A row, identified by its clustering values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowMark {
    /// A header of two bits for each value, then the values (`Clustering.serializer`).
    Values(Vec<u8>),
    /// Protocol 3: a composite, which continues with the name of a cell.
    Composite(Vec<u8>),
}

impl PagingState {
    /// Encodes a state.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let key = self.key.as_deref().unwrap_or_default();
        let mark = match &self.row {
            None => &[][..],
            Some(RowMark::Values(mark) | RowMark::Composite(mark)) => mark,
        };
        let mut out = Vec::with_capacity(key.len() + mark.len() + 32);
        for bytes in [key, mark] {
            vint::write_unsigned(bytes.len() as u64, &mut out);
            out.extend_from_slice(bytes);
        }
        for rows in [self.rows_left, self.rows_left_in_partition] {
            vint::write_unsigned(rows.min(u64::from(NO_LIMIT)), &mut out);
        }
        if self.is_before_rows {
            out.extend_from_slice(BEFORE_ROWS);
        }
        if self.is_cut {
            out.extend_from_slice(CUT);
        }
        out
    }

    /// Decodes a state.
    ///
    /// # Errors
    /// The bytes are not a paging state.
    pub(crate) fn decode(state: &[u8]) -> Result<PagingState> {
        let cut = state.strip_suffix(CUT);
        let plain = cut.unwrap_or(state);
        let before_rows = plain.strip_suffix(BEFORE_ROWS);
        let marked = modern(before_rows.unwrap_or(plain)).map(|state| PagingState {
            is_cut: cut.is_some(),
            is_before_rows: before_rows.is_some(),
            ..state
        });
        modern(state).or(marked).or_else(|| legacy(state)).ok_or_else(bad_paging_state)
    }
}

impl RowMark {
    /// The mark of the row with these clustering values; `None` if there are none.
    pub(crate) fn of<'v>(values: impl Iterator<Item = Option<&'v [u8]>> + Clone) -> Option<RowMark> {
        let mut mark = Vec::new();
        write_mark(values, &mut mark);
        (!mark.is_empty()).then_some(RowMark::Values(mark))
    }

    /// The ordered position of the row in a table.
    ///
    /// # Errors
    /// No row of this table can have this mark.
    pub(crate) fn position(&self, table: &Table) -> Result<Vec<u8>> {
        let columns = table.clustering.len();
        let values = match self {
            RowMark::Values(mark) => values_of(mark, columns),
            RowMark::Composite(mark) if table.is_compact() && columns == 1 => Some(vec![Some(&mark[..])]),
            RowMark::Composite(mark) => parts_of(mark, columns),
        };
        let mut position = Vec::new();
        let encoded = values.map(|values| clustering_key(values, &table.clustering, &mut position));
        match encoded {
            Some(Ok(())) => Ok(position),
            _ => Err(CqlError::Invalid(format!(
                "Invalid value for the paging state: its row can be none of table {}.{}; ask without a paging state",
                table.keyspace, table.name
            ))),
        }
    }
}

/// Rejects bytes that are not a paging state.
pub(crate) fn check_paging_state(state: Option<&[u8]>) -> Result<()> {
    state.map_or(Ok(()), |state| PagingState::decode(state).map(drop))
}

/// Appends the mark of a row.
pub(super) fn write_mark<'v>(values: impl Iterator<Item = Option<&'v [u8]>> + Clone, out: &mut Vec<u8>) {
    let mut rest = values.peekable();
    while rest.peek().is_some() {
        let header = rest.clone().take(VALUES_A_HEADER).enumerate().fold(0, |header, (at, value)| {
            let bits: u64 = match value {
                None => 2,
                Some([]) => 1,
                Some(_) => 0,
            };
            header | bits << (2 * at)
        });
        vint::write_unsigned(header, out);
        for value in rest.by_ref().take(VALUES_A_HEADER).flatten().filter(|value| !value.is_empty()) {
            vint::write_unsigned(value.len() as u64, out);
            out.extend_from_slice(value);
        }
    }
}

/// The mark of the row at an ordered position; `None` if the table has no clustering columns or no row can have the
/// position.
pub(super) fn mark_at(position: &[u8], table: &Table) -> Option<RowMark> {
    let values = decode_clustering(position, &table.clustering).ok()?.values;
    RowMark::of(values.iter().map(Option::as_deref))
}

/// The number of values that share a header: two bits each.
const VALUES_A_HEADER: usize = 32;

/// The first values of a mark. The bytes after them are ignored, as in Cassandra.
fn values_of(mut mark: &[u8], columns: usize) -> Option<Vec<Option<&[u8]>>> {
    let mut values = Vec::with_capacity(columns);
    while values.len() < columns {
        let mut header = number(&mut mark)?;
        for _ in 0..VALUES_A_HEADER.min(columns - values.len()) {
            values.push(match header & 3 {
                0 => {
                    let length = usize::try_from(number(&mut mark)?).ok()?;
                    Some(take(&mut mark, length)?)
                }
                1 => Some(&[][..]),
                _ => None,
            });
            header >>= 2;
        }
    }
    Some(values)
}

/// The first parts of a composite; absent ones are null (`CompositeType.splitName`).
fn parts_of(mut mark: &[u8], columns: usize) -> Option<Vec<Option<&[u8]>>> {
    const STATIC: &[u8] = &[0xFF, 0xFF];
    if mark.starts_with(STATIC) {
        return None;
    }
    let mut values = vec![None; columns];
    for value in &mut values {
        if mark.is_empty() {
            break;
        }
        let length = take(&mut mark, 2)?.first_chunk::<2>().map(|length| u16::from_be_bytes(*length))?;
        *value = Some(take(&mut mark, usize::from(length))?);
        take(&mut mark, 1)?;
    }
    Some(values)
}

fn modern(mut state: &[u8]) -> Option<PagingState> {
    let length = usize::try_from(limit(number(&mut state)?)?).ok()?;
    let key = take(&mut state, length)?.to_vec();
    let length = usize::try_from(limit(number(&mut state)?)?).ok()?;
    let mark = take(&mut state, length)?.to_vec();
    let (rows_left, in_partition) = (limit(number(&mut state)?)?, limit(number(&mut state)?)?);
    state
        .is_empty()
        .then(|| parsed(key, (!mark.is_empty()).then_some(RowMark::Values(mark)), (rows_left, in_partition)))
}

fn legacy(mut state: &[u8]) -> Option<PagingState> {
    let mut bytes = || {
        let length = *take(&mut state, 2)?.first_chunk::<2>()?;
        let length = usize::try_from(i16::from_be_bytes(length)).ok()?;
        Some(take(&mut state, length)?.to_vec())
    };
    let (key, mark) = (bytes()?, bytes()?);
    let rows_left = rows(&mut state)?;
    // Cassandra 2.1 and 2.2 end the state here.
    let in_partition = if state.is_empty() { NO_LIMIT } else { rows(&mut state)? };
    let mark = (!mark.is_empty()).then_some(RowMark::Composite(mark));
    state.is_empty().then(|| parsed(key, mark, (rows_left, in_partition)))
}

fn rows(bytes: &mut &[u8]) -> Option<u32> {
    let rows = *take(bytes, 4)?.first_chunk::<4>()?;
    u32::try_from(i32::from_be_bytes(rows)).ok()
}

fn parsed(key: Vec<u8>, row: Option<RowMark>, (rows_left, in_partition): (u32, u32)) -> PagingState {
    let rows = |rows: u32| if rows == NO_LIMIT { u64::MAX } else { u64::from(rows) };
    PagingState {
        key: (!key.is_empty()).then_some(key),
        row,
        rows_left: rows(rows_left),
        rows_left_in_partition: rows(in_partition),
        is_cut: false,
        is_before_rows: false,
    }
}

/// A variable integer in its shortest form; longer forms are rejected.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (value, length) = vint::read_unsigned(bytes)?;
    take(bytes, length)?;
    (length == vint::unsigned_length(value)).then_some(value)
}

/// A number that Cassandra stores in a signed 32-bit integer.
fn limit(value: u64) -> Option<u32> {
    u32::try_from(value).ok().filter(|value| *value <= NO_LIMIT)
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    fn state(key: &[u8], row: Option<RowMark>, rows_left: u64, rows_left_in_partition: u64) -> PagingState {
        let key = (!key.is_empty()).then(|| key.to_vec());
        PagingState { key, row, rows_left, rows_left_in_partition, ..PagingState::default() }
    }

    /// Each with the bytes that Cassandra 5.0.9 produced for it.
    fn known() -> Vec<(PagingState, Vec<u8>)> {
        let at = |c: u32| RowMark::of([Some(&c.to_be_bytes()[..])].into_iter());
        let one = |rows_left, left| state(&[], at(1), rows_left, left);
        vec![
            (one((1 << 31) - 3, (1 << 31) - 3), unhex("0006000400000001f07ffffffdf07ffffffd")),
            (state(&[0, 0, 0, 1], at(0), 11, u64::MAX), unhex("0400000001060004000000000bf07fffffff")),
            (state(&[0, 0, 0, 2], None, 1, 0), unhex("0400000002000100")),
        ]
    }

    #[test]
    fn states_are_the_bytes_of_cassandra_both_ways() {
        for (state, bytes) in known() {
            assert_eq!(state.encode(), bytes);
            assert_eq!(PagingState::decode(&bytes).unwrap(), state);
        }
        for (is_cut, is_before_rows) in [(true, false), (false, true), (true, true)] {
            let marked = PagingState { is_cut, is_before_rows, ..state(&[1], None, 5, 5) };
            assert_eq!(PagingState::decode(&marked.encode()).unwrap(), marked);
        }
    }

    /// A page that ends between range tombstones names the clustering of a prefix with nulls (`engine::read::page_position`).
    #[test]
    fn a_mark_with_nulls_is_that_of_cassandra_and_a_position_before_all_rows_of_its_prefix() {
        use helenus_model::schema::{Column, ColumnKind, TableId};
        use helenus_model::types::CqlType;
        for reversed in [false, true] {
            let mut second = Column::new("b", ColumnKind::Clustering, CqlType::Int);
            (second.position, second.reversed) = (1, reversed);
            let columns = [
                Column::new("k", ColumnKind::PartitionKey, CqlType::Int),
                Column::new("a", ColumnKind::Clustering, CqlType::Int),
                second,
            ];
            let table = Table::new(("ks", "t"), TableId(Default::default()), columns);
            let (a, b) = (5_i32.to_be_bytes(), i32::MIN.to_be_bytes());
            let position = |b: Option<&[u8]>| {
                let mut position = Vec::new();
                clustering_key([Some(&a[..]), b], &table.clustering, &mut position).unwrap();
                position
            };
            let mark = mark_at(&position(None), &table).unwrap();
            assert_eq!(mark, RowMark::Values(unhex("080400000005")));
            assert_eq!(mark.position(&table).unwrap(), position(None));
            assert!(position(None) < position(Some(&b)) && position(None) < position(Some(&[])));
        }
    }

    #[test]
    fn states_of_protocol_3_are_read_with_and_without_the_rows_of_the_partition() {
        let row = || Some(RowMark::Composite(unhex("00040000000100000000")));
        let text = "000400000001000a000400000001000000007fffffff";
        assert_eq!(
            PagingState::decode(&unhex(text)).unwrap(),
            state(&[0, 0, 0, 1], row(), u64::MAX, u64::MAX)
        );
        let text = format!("{text}00000003");
        assert_eq!(PagingState::decode(&unhex(&text)).unwrap(), state(&[0, 0, 0, 1], row(), u64::MAX, 3));
    }

    #[test]
    fn what_is_no_state_is_a_protocol_error() {
        let refused = |bytes: &[u8]| {
            let error = PagingState::decode(bytes).unwrap_err();
            assert!(matches!(error, CqlError::Protocol(_)));
            assert_eq!(error.to_string(), "Invalid value for the paging state");
        };
        for text in ["", "00", "000000", "ff", "ffffffffffffffffff", "040000f07fffffff", "00000000000000"] {
            refused(&unhex(text));
        }
        for (_, bytes) in known() {
            (0..bytes.len()).for_each(|length| refused(&bytes[..length]));
            refused(&[&bytes[..], &[0]].concat());
        }
    }

    #[test]
    fn marks_keep_null_empty_and_other_values_apart_however_many_there_are() {
        for columns in [1, 2, 31, 32, 33, 70] {
            let values: Vec<Option<&[u8]>> =
                (0..columns).map(|at| [None, Some(&b""[..]), Some(&b"value"[..])][at % 3]).collect();
            let Some(RowMark::Values(mark)) = RowMark::of(values.iter().copied()) else { panic!("a mark") };
            assert_eq!(values_of(&mark, columns).unwrap(), values);
            // With fewer columns only the first values count; a table with more columns has no such row.
            assert_eq!(values_of(&mark, columns - 1).unwrap(), values[..columns - 1]);
            assert_eq!(values_of(&mark, columns + 40), None);
        }
        assert_eq!(RowMark::of(std::iter::empty()), None);
    }
}
