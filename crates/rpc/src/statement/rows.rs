//! Writes the rows of a statement as a `CqlResult`, as they arrive.

use helenus_cql::backend::{ResultColumns, RowsOut};
use helenus_wire::thrift::{Type, put_binary, put_field, put_i32, put_list, put_map};
use std::sync::Arc;

/// Writes `CqlRow`s (`ResultSet.toThriftResult`): an empty key, and one column for each result column, without a value
/// if it is null.
pub(super) struct CqlRows {
    pub(super) bytes: Vec<u8>,
    pub(super) rows: u32,
    columns: Option<Arc<ResultColumns>>,
    at: usize,
}

impl CqlRows {
    pub(super) fn new() -> CqlRows {
        CqlRows { bytes: Vec::new(), rows: 0, columns: None, at: 0 }
    }

    /// Appends the result: the rows and the types of the columns.
    pub(super) fn put_result(&self, columns: &ResultColumns, out: &mut Vec<u8>) {
        put_field(Type::I32, 1, out);
        put_i32(helenus_wire::thrift::CqlResultType::Rows as i32, out);
        put_field(Type::List, 2, out);
        put_list(Type::Struct, self.rows as usize, out);
        out.extend_from_slice(&self.bytes);
        put_field(Type::Struct, 4, out);
        put_types(columns, out);
        out.push(Type::Stop as u8);
    }
}

fn put_types(columns: &ResultColumns, out: &mut Vec<u8>) {
    put_field(Type::Map, 1, out);
    put_map(Type::String, Type::String, columns.columns.len(), out);
    for column in &columns.columns {
        put_binary(column.name.as_bytes(), out);
        put_binary(b"UTF8Type", out);
    }
    put_field(Type::Map, 2, out);
    put_map(Type::String, Type::String, columns.columns.len(), out);
    for column in &columns.columns {
        put_binary(column.name.as_bytes(), out);
        put_binary(column.ty.class_name().as_bytes(), out);
    }
    for field in [3, 4] {
        put_field(Type::String, field, out);
        put_binary(b"UTF8Type", out);
    }
    out.push(Type::Stop as u8);
}

impl RowsOut for CqlRows {
    fn columns(&mut self, columns: &Arc<ResultColumns>) {
        self.columns = Some(columns.clone());
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
