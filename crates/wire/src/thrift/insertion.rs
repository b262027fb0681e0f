//! Reads the most common mutation, the insertion of a plain column, in few steps.
//!
//! Generated clients write it with its fields in numerical order:
//!
//! ```text
//! struct 1 { struct 1 { string 1 name, string 2 value, i64 3 timestamp } }
//! ```

use super::binary::{Reader, Type};
use super::structs::Column;

const STRUCT: u8 = Type::Struct as u8;
const STRING: u8 = Type::String as u8;
const I64: u8 = Type::I64 as u8;
/// The ends of the column, of the struct that contains it, and of the mutation.
const ENDS: [u8; 3] = [Type::Stop as u8; 3];

/// Reads a mutation of this form. For any other form, returns `None` and reads nothing: it must then be read as a
/// `Mutation`.
#[inline]
pub fn read_insertion<'a>(reader: &mut Reader<'a>) -> Option<Column<'a>> {
    let mut ahead = reader.clone();
    ahead.pass(&[STRUCT, 0, 1, STRUCT, 0, 1, STRING, 0, 1])?;
    let name = ahead.binary().ok()?;
    ahead.pass(&[STRING, 0, 2])?;
    let value = ahead.binary().ok()?;
    ahead.pass(&[I64, 0, 3])?;
    let timestamp = ahead.i64().ok()?;
    ahead.pass(&ENDS)?;
    *reader = ahead;
    Some(Column { name, value: Some(value), timestamp: Some(timestamp), ttl: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thrift::{ColumnOrSuperColumn, Deletion, Field, Mutation};

    fn written(column: Option<Column<'_>>, deletion: Option<Deletion<'_>>) -> Vec<u8> {
        let held = column.map(|column| ColumnOrSuperColumn {
            column: Some(column),
            super_column: None,
            counter_column: None,
            counter_super_column: None,
        });
        let mut out = Vec::new();
        Mutation { column_or_supercolumn: held, deletion }.write(&mut out);
        out
    }

    #[test]
    fn a_plain_insertion_is_read_as_its_mutation_would_be_and_any_other_is_left_as_it_is() {
        let column = Column { name: b"n", value: Some(b"v"), timestamp: Some(-7), ttl: None };
        let mut bytes = written(Some(column.clone()), None);
        bytes.push(9);
        let mut reader = Reader::new(&bytes);
        assert_eq!(read_insertion(&mut reader), Some(column.clone()));
        assert_eq!(reader.rest(), [9]);
        for end in 0..bytes.len() - 1 {
            assert_eq!(read_insertion(&mut Reader::new(&bytes[..end])), None);
        }
        let deletion = Deletion { timestamp: Some(1), super_column: None, predicate: None };
        for other in [
            written(Some(Column { ttl: Some(1), ..column.clone() }), None),
            written(Some(Column { value: None, ..column }), None),
            written(None, Some(deletion)),
        ] {
            let mut reader = Reader::new(&other);
            assert_eq!(read_insertion(&mut reader), None);
            assert_eq!(reader.rest(), other);
        }
    }
}
