//! Writes the rows of a statement as a `CqlResult`, as they arrive.

use helenus_cql::backend::{ResultColumns, RowsOut};
use helenus_engine::account::{self, Refusal};
use helenus_wire::thrift::{Type, put_binary, put_field, put_i32, put_list, put_map};
use std::sync::Arc;

/// The bytes around a cell, and around a row and its key.
const CELL_BYTES: usize = 16;
const ROW_BYTES: usize = 32;

/// Writes `CqlRow`s (`ResultSet.toThriftResult`): an empty key, and one column for each result column, without a value
/// if it is null.
pub(super) struct CqlRows {
    pub(super) bytes: Vec<u8>,
    pub(super) rows: u32,
    columns: Option<Arc<ResultColumns>>,
    at: usize,
    /// The bytes of a row besides its values: each row names its columns.
    row_bytes: usize,
}

impl CqlRows {
    pub(super) fn new() -> CqlRows {
        CqlRows { bytes: Vec::new(), rows: 0, columns: None, at: 0, row_bytes: 0 }
    }

    /// Appends the result: the rows and the types of the columns. The rows are copied, so memory is asked for once more.
    ///
    /// # Errors
    /// There is not enough of it.
    pub(super) fn put_result(&self, columns: &ResultColumns, out: &mut Vec<u8>) -> Result<(), Refusal> {
        account::reserve(out, self.bytes.len() + ROW_BYTES)?;
        put_field(Type::I32, 1, out);
        put_i32(helenus_wire::thrift::CqlResultType::Rows as i32, out);
        put_field(Type::List, 2, out);
        put_list(Type::Struct, self.rows as usize, out);
        out.extend_from_slice(&self.bytes);
        put_field(Type::Struct, 4, out);
        put_types(columns, out)?;
        account::reserve(out, ROW_BYTES)?;
        out.push(Type::Stop as u8);
        Ok(())
    }
}

/// Appends the names and types of the columns. Any number of columns may have a type whose name is long.
fn put_types(columns: &ResultColumns, out: &mut Vec<u8>) -> Result<(), Refusal> {
    put_field(Type::Map, 1, out);
    put_map(Type::String, Type::String, columns.columns.len(), out);
    for column in &columns.columns {
        account::reserve(out, column.name.len() + 2 * CELL_BYTES)?;
        put_binary(column.name.as_bytes(), out);
        put_binary(b"UTF8Type", out);
    }
    put_field(Type::Map, 2, out);
    put_map(Type::String, Type::String, columns.columns.len(), out);
    for column in &columns.columns {
        let class = column.ty.class_name();
        account::reserve(out, column.name.len() + class.len() + 2 * CELL_BYTES)?;
        put_binary(column.name.as_bytes(), out);
        put_binary(class.as_bytes(), out);
    }
    for field in [3, 4] {
        put_field(Type::String, field, out);
        put_binary(b"UTF8Type", out);
    }
    out.push(Type::Stop as u8);
    Ok(())
}

impl RowsOut for CqlRows {
    fn columns(&mut self, columns: &Arc<ResultColumns>) {
        let names = columns.columns.iter().map(|column| column.name.len() + CELL_BYTES);
        self.row_bytes = ROW_BYTES + names.sum::<usize>();
        self.columns = Some(columns.clone());
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), Refusal> {
        account::reserve(&mut self.bytes, bytes + self.row_bytes)
    }

    fn cell(&mut self, value: Option<&[u8]>) {
        let Some(columns) = &self.columns else { return };
        let out = &mut self.bytes;
        if self.at == 0 {
            put_field(Type::String, 1, out);
            put_binary(b"", out);
            put_field(Type::List, 2, out);
            put_list(Type::Struct, columns.columns.len(), out);
        }
        put_field(Type::String, 1, out);
        put_binary(columns.columns.get(self.at).map_or(&[][..], |column| column.name.as_bytes()), out);
        if let Some(value) = value {
            put_field(Type::String, 2, out);
            put_binary(value, out);
        }
        out.push(Type::Stop as u8);
        self.at += 1;
    }

    fn end_row(&mut self) {
        self.bytes.push(Type::Stop as u8);
        self.at = 0;
        self.rows += 1;
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.rows = 0;
        self.at = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_cql::backend::ResultColumn;
    use helenus_engine::account::{Scope, Share, Waits};
    use helenus_model::types::{CqlType, UserType};

    fn column(name: &str, ty: CqlType) -> ResultColumn {
        ResultColumn { keyspace: "k".into(), table: "t".into(), name: name.into(), ty }
    }

    #[test]
    fn a_row_has_room_for_its_values_and_the_names_of_its_columns() {
        let name = "n".repeat(1000);
        let columns: Vec<ResultColumn> = (0..10).map(|_| column(&name, CqlType::Blob)).collect();
        let columns = Arc::new(ResultColumns { columns, id: [0; 16] });
        let mut rows = CqlRows::new();
        rows.columns(&columns);
        for _ in 0..100 {
            rows.make_room(10 * 50).unwrap();
            let room = rows.bytes.capacity();
            (0..10).for_each(|_| rows.cell(Some(&[7; 50])));
            rows.end_row();
            assert_eq!(rows.bytes.capacity(), room, "nothing is taken without asking");
        }
    }

    /// On a thread that may not wait, memory beyond a little is refused.
    #[test]
    fn a_result_asks_for_its_memory() {
        let fields: Vec<(Arc<str>, CqlType)> = (0..2_000).map(|_| ("f".into(), CqlType::Int)).collect();
        let udt = UserType { keyspace: "k".into(), name: "u".into(), fields, frozen: false };
        let udt = CqlType::Udt(Arc::new(udt));
        let columns = |count| {
            let columns: Vec<ResultColumn> = (0..count).map(|_| column("u", udt.clone())).collect();
            Arc::new(ResultColumns { columns, id: [0; 16] })
        };
        let _scope = Scope::begin(Share::Requests, Waits::Never);
        let mut rows = CqlRows::new();
        assert!(rows.put_result(&columns(2), &mut Vec::new()).is_ok());
        assert_eq!(rows.put_result(&columns(1000), &mut Vec::new()), Err(Refusal::WouldBlock));
        rows.columns(&columns(1));
        assert_eq!(rows.make_room(8 << 20), Err(Refusal::WouldBlock));
    }
}
