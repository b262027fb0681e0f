//! The mapping of CQL types to Arrow types.
//!
//! | CQL | Arrow |
//! |---|---|
//! | ascii, text | Utf8 |
//! | tinyint, smallint, int, bigint, counter | Int8, Int16, Int32, Int64, Int64 |
//! | float, double, boolean | Float32, Float64, Boolean |
//! | blob, types of unknown classes | Binary |
//! | timestamp | Timestamp in milliseconds, UTC |
//! | date | Date32 |
//! | time | Time64 in nanoseconds |
//! | uuid, timeuuid, inet | Utf8, as CQL prints them |
//! | decimal, varint | Utf8: their precision has no bound, and Arrow's has |
//! | duration | Struct of months, days, nanoseconds: Parquet has no interval of that precision |
//! | list, set, vector | List |
//! | map | Map |
//! | tuple | Struct of `field_1` and so on |
//! | user-defined types | Struct of its fields |

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use std::sync::Arc;

/// The Arrow schema of a table's rows.
pub fn schema(table: &Table) -> Arc<Schema> {
    let field =
        |column: &helenus_model::schema::Column| Field::new(&*column.name, arrow_type(&column.ty), true);
    let fields: Vec<Field> = table.columns_in_select_order().map(field).collect();
    Arc::new(Schema::new(fields))
}

/// The Arrow type of a CQL type.
pub fn arrow_type(ty: &CqlType) -> DataType {
    match ty {
        CqlType::Boolean => DataType::Boolean,
        CqlType::TinyInt => DataType::Int8,
        CqlType::SmallInt => DataType::Int16,
        CqlType::Int => DataType::Int32,
        CqlType::BigInt | CqlType::Counter => DataType::Int64,
        CqlType::Float => DataType::Float32,
        CqlType::Double => DataType::Float64,
        CqlType::Date => DataType::Date32,
        CqlType::Time => DataType::Time64(TimeUnit::Nanosecond),
        CqlType::Timestamp => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        CqlType::Ascii
        | CqlType::Text
        | CqlType::Decimal
        | CqlType::Varint
        | CqlType::Inet
        | CqlType::Uuid
        | CqlType::TimeUuid => DataType::Utf8,
        CqlType::Blob | CqlType::Empty | CqlType::Custom(_) => DataType::Binary,
        CqlType::Duration => DataType::Struct(duration_fields()),
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            DataType::List(item(element))
        }
        CqlType::Map { key, value, .. } => DataType::Map(entries(key, value), false),
        CqlType::Tuple(types) => {
            let field = |(index, ty)| Field::new(format!("field_{}", index + 1), arrow_type(ty), true);
            DataType::Struct(types.iter().enumerate().map(field).collect())
        }
        CqlType::Udt(udt) => {
            let field = |(name, ty): &(Arc<str>, CqlType)| Field::new(&**name, arrow_type(ty), true);
            DataType::Struct(udt.fields.iter().map(field).collect())
        }
    }
}

/// The field of a list's elements.
pub fn item(element: &CqlType) -> Arc<Field> {
    Arc::new(Field::new("item", arrow_type(element), true))
}

/// The field of a map's entries.
pub fn entries(key: &CqlType, value: &CqlType) -> Arc<Field> {
    Arc::new(Field::new("entries", DataType::Struct(entry_fields(key, value)), false))
}

/// The fields of a map's entry: key and value.
pub fn entry_fields(key: &CqlType, value: &CqlType) -> Fields {
    let fields = [Field::new("key", arrow_type(key), false), Field::new("value", arrow_type(value), true)];
    fields.into_iter().collect()
}

/// The fields of a duration.
pub fn duration_fields() -> Fields {
    let fields = [
        Field::new("months", DataType::Int32, true),
        Field::new("days", DataType::Int32, true),
        Field::new("nanoseconds", DataType::Int64, true),
    ];
    fields.into_iter().collect()
}
