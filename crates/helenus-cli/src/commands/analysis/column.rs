//! Builds an Arrow array from the serialised values of one column, of any CQL type.

use super::types::{arrow_type, duration_fields, entries, entry_fields, item};
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, Float32Builder, Float64Builder, Int8Builder, Int16Builder,
    Int32Builder, Int64Builder, StringBuilder, Time64NanosecondBuilder, TimestampMillisecondBuilder,
};
use arrow_array::{ArrayRef, ListArray, MapArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Fields};
use helenus_model::types::{CqlType, Duration, Elements, Fields as Parts, VectorElements, write_text};
use std::sync::Arc;

/// The day that CQL's `date` encodes 1970-01-01 as.
const DATE_ZERO: i64 = 1 << 31;

/// The array of a column under construction.
pub struct Column {
    ty: CqlType,
    builder: Builder,
    text: String,
}

/// The builder of an array, by kind.
enum Builder {
    Boolean(BooleanBuilder),
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Date(Date32Builder),
    Time(Time64NanosecondBuilder),
    Timestamp(TimestampMillisecondBuilder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Duration(Int32Builder, Int32Builder, Int64Builder, NullBufferBuilder),
    List(Box<Column>, Vec<i32>, NullBufferBuilder),
    Map(Box<[Column; 2]>, Vec<i32>, NullBufferBuilder),
    Struct(Vec<Column>, NullBufferBuilder),
}

impl Column {
    /// An empty column of type `ty`.
    pub fn new(ty: &CqlType) -> Column {
        let nulls = || NullBufferBuilder::new(0);
        let column = |ty: &CqlType| Box::new(Column::new(ty));
        let builder = match ty {
            CqlType::Boolean => Builder::Boolean(BooleanBuilder::new()),
            CqlType::TinyInt => Builder::Int8(Int8Builder::new()),
            CqlType::SmallInt => Builder::Int16(Int16Builder::new()),
            CqlType::Int => Builder::Int32(Int32Builder::new()),
            CqlType::BigInt | CqlType::Counter => Builder::Int64(Int64Builder::new()),
            CqlType::Float => Builder::Float32(Float32Builder::new()),
            CqlType::Double => Builder::Float64(Float64Builder::new()),
            CqlType::Date => Builder::Date(Date32Builder::new()),
            CqlType::Time => Builder::Time(Time64NanosecondBuilder::new()),
            CqlType::Timestamp => Builder::Timestamp(TimestampMillisecondBuilder::new().with_timezone("UTC")),
            CqlType::Duration => {
                Builder::Duration(Int32Builder::new(), Int32Builder::new(), Int64Builder::new(), nulls())
            }
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. } => Builder::List(column(element), vec![0], nulls()),
            CqlType::Map { key, value, .. } => {
                Builder::Map(Box::new([Column::new(key), Column::new(value)]), vec![0], nulls())
            }
            CqlType::Tuple(types) => Builder::Struct(types.iter().map(Column::new).collect(), nulls()),
            CqlType::Udt(udt) => {
                Builder::Struct(udt.fields.iter().map(|(_, ty)| Column::new(ty)).collect(), nulls())
            }
            CqlType::Blob | CqlType::Empty | CqlType::Custom(_) => Builder::Bytes(BinaryBuilder::new()),
            _ => Builder::Text(StringBuilder::new()),
        };
        Column { ty: ty.clone(), builder, text: String::new() }
    }

    /// Adds a serialised value. `None` becomes a null, as does an empty value of a type that has no empty value in
    /// Arrow.
    pub fn add(&mut self, value: Option<&[u8]>) {
        let value = value.filter(|value| self.ty.validate_stored(value).is_ok());
        match &mut self.builder {
            Builder::Boolean(builder) => {
                builder.append_option(value.and_then(<[u8]>::first).map(|byte| *byte != 0))
            }
            Builder::Int8(builder) => builder.append_option(fixed(value).map(i8::from_be_bytes)),
            Builder::Int16(builder) => builder.append_option(fixed(value).map(i16::from_be_bytes)),
            Builder::Int32(builder) => builder.append_option(fixed(value).map(i32::from_be_bytes)),
            Builder::Int64(builder) => builder.append_option(fixed(value).map(i64::from_be_bytes)),
            Builder::Float32(builder) => builder.append_option(fixed(value).map(f32::from_be_bytes)),
            Builder::Float64(builder) => builder.append_option(fixed(value).map(f64::from_be_bytes)),
            Builder::Date(builder) => {
                let days =
                    fixed(value).map(|bytes| (i64::from(u32::from_be_bytes(bytes)) - DATE_ZERO) as i32);
                builder.append_option(days);
            }
            Builder::Time(builder) => builder.append_option(fixed(value).map(i64::from_be_bytes)),
            Builder::Timestamp(builder) => builder.append_option(fixed(value).map(i64::from_be_bytes)),
            Builder::Bytes(builder) => builder.append_option(value),
            Builder::Text(builder) => {
                let is_text = matches!(self.ty, CqlType::Ascii | CqlType::Text);
                let value = value.filter(|value| is_text || !value.is_empty());
                self.text.clear();
                if let Some(value) = value {
                    write_text(&self.ty, value, &mut self.text);
                }
                builder.append_option(value.map(|_| self.text.as_str()));
            }
            Builder::Duration(months, days, nanoseconds, nulls) => {
                let duration = value.and_then(Duration::from_bytes);
                months.append_option(duration.map(|duration| duration.months));
                days.append_option(duration.map(|duration| duration.days));
                nanoseconds.append_option(duration.map(|duration| duration.nanoseconds));
                nulls.append(duration.is_some());
            }
            Builder::List(..) | Builder::Map(..) | Builder::Struct(..) => self.add_nested(value),
        }
    }

    fn add_nested(&mut self, value: Option<&[u8]>) {
        match (&self.ty, &mut self.builder) {
            (CqlType::Vector { element, .. }, Builder::List(items, offsets, nulls)) => {
                let mut count = 0;
                for part in value.into_iter().flat_map(|value| VectorElements::of(element, value)) {
                    items.add(Some(part));
                    count += 1;
                }
                ended(value, count, offsets, nulls);
            }
            (_, Builder::List(items, offsets, nulls)) => {
                let mut count = 0;
                for part in value.into_iter().flat_map(Elements::of_list) {
                    items.add(part);
                    count += 1;
                }
                ended(value, count, offsets, nulls);
            }
            (_, Builder::Map(columns, offsets, nulls)) => {
                let [keys, values] = &mut **columns;
                let mut count = 0;
                let mut parts = Elements::of_map(value.unwrap_or_default());
                while let (Some(key), Some(part)) = (parts.next(), parts.next()) {
                    keys.add(key);
                    values.add(part);
                    count += 1;
                }
                ended(value, count, offsets, nulls);
            }
            (_, Builder::Struct(fields, nulls)) => {
                let mut parts = Parts::of(value.unwrap_or_default());
                for field in fields {
                    field.add(parts.next().flatten());
                }
                nulls.append(value.is_some());
            }
            _ => {}
        }
    }

    /// Returns the array of all values added, and empties the builder.
    ///
    /// # Errors
    /// Arrow's errors for inconsistent nested arrays, such as a null key of a map in a damaged value.
    pub fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let ty = self.ty.clone();
        Ok(match &mut self.builder {
            Builder::Boolean(builder) => Arc::new(builder.finish()),
            Builder::Int8(builder) => Arc::new(builder.finish()),
            Builder::Int16(builder) => Arc::new(builder.finish()),
            Builder::Int32(builder) => Arc::new(builder.finish()),
            Builder::Int64(builder) => Arc::new(builder.finish()),
            Builder::Float32(builder) => Arc::new(builder.finish()),
            Builder::Float64(builder) => Arc::new(builder.finish()),
            Builder::Date(builder) => Arc::new(builder.finish()),
            Builder::Time(builder) => Arc::new(builder.finish()),
            Builder::Timestamp(builder) => Arc::new(builder.finish()),
            Builder::Text(builder) => Arc::new(builder.finish()),
            Builder::Bytes(builder) => Arc::new(builder.finish()),
            Builder::Duration(months, days, nanoseconds, nulls) => {
                let parts: Vec<ArrayRef> =
                    vec![Arc::new(months.finish()), Arc::new(days.finish()), Arc::new(nanoseconds.finish())];
                Arc::new(StructArray::try_new(duration_fields(), parts, nulls.finish())?)
            }
            Builder::List(items, offsets, nulls) => {
                let (CqlType::List { element, .. }
                | CqlType::Set { element, .. }
                | CqlType::Vector { element, .. }) = &ty
                else {
                    return Err(ArrowError::SchemaError(format!("{ty} is no list")));
                };
                let values = items.finish()?;
                Arc::new(ListArray::try_new(item(element), taken(offsets), values, nulls.finish())?)
            }
            Builder::Map(columns, offsets, nulls) => {
                let CqlType::Map { key, value, .. } = &ty else {
                    return Err(ArrowError::SchemaError(format!("{ty} is no map")));
                };
                let parts = columns.iter_mut().map(Column::finish).collect::<Result<Vec<_>, _>>()?;
                let of_entries = StructArray::try_new(entry_fields(key, value), parts, None)?;
                let (field, offsets) = (entries(key, value), taken(offsets));
                Arc::new(MapArray::try_new(field, offsets, of_entries, nulls.finish(), false)?)
            }
            Builder::Struct(columns, nulls) => {
                let fields: Fields = match arrow_type(&ty) {
                    DataType::Struct(fields) => fields,
                    other => return Err(ArrowError::SchemaError(format!("{other} is no struct"))),
                };
                let parts = columns.iter_mut().map(Column::finish).collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new(fields, parts, nulls.finish())?)
            }
        })
    }
}

/// A value of exactly `N` bytes; `None` for any other length.
fn fixed<const N: usize>(value: Option<&[u8]>) -> Option<[u8; N]> {
    value?.try_into().ok()
}

/// Ends a list or map that has `count` entries.
fn ended(value: Option<&[u8]>, count: i32, offsets: &mut Vec<i32>, nulls: &mut NullBufferBuilder) {
    offsets.push(offsets.last().copied().unwrap_or_default() + count);
    nulls.append(value.is_some());
}

fn taken(offsets: &mut Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(offsets, vec![0])))
}
