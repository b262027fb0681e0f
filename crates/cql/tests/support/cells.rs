//! Answers as the judge of histories reads them.

use super::Answer;
use helenus_model::types::CqlType;
use histories::partition::Cell;

/// The rows of an answer.
pub fn cells(answer: &Answer) -> Vec<Vec<Cell>> {
    let types = || answer.columns.columns.iter().map(|column| &column.ty);
    let row =
        |row: &Vec<Option<Vec<u8>>>| types().zip(row).map(|(ty, value)| cell(ty, value.as_deref())).collect();
    answer.rows.iter().map(row).collect()
}

fn cell(ty: &CqlType, value: Option<&[u8]>) -> Cell {
    let int = |bytes: &[u8]| i32::from_be_bytes(bytes.try_into().expect("four bytes"));
    match (ty, value) {
        (_, None) => Cell::Null,
        (CqlType::Boolean, Some(value)) => Cell::Flag(value == [1]),
        (CqlType::Counter, Some(value)) => {
            Cell::Counter(i64::from_be_bytes(value.try_into().expect("eight bytes")))
        }
        (CqlType::List { .. }, Some(value)) => {
            Cell::List(value[4..].chunks(8).map(|element| int(&element[4..])).collect())
        }
        (_, Some(value)) => Cell::Int(int(value)),
    }
}
