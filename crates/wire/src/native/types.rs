//! Types and columns as `[option]`s, which describe the values of Rows and Prepared results.
//!
//! The ids, and the version that introduced each, are those of Cassandra's `DataType`. A type that the client's version
//! does not have is sent as a class name (option 0), so a v3 client sees `date` as a custom type.

use std::sync::Arc;

use helenus_model::types::{CqlType, UserType};

use super::Version;
use super::primitives::{Put, Reader};
use crate::WireError;

/// The deepest nesting of types in options.
const MAX_DEPTH: u8 = 64;

/// What an allocation needs besides its bytes: the counters of an `Arc`, and what the allocator rounds up.
const ALLOCATION_BYTES: usize = 32;
/// The memory of a type that is described by a class name, a vector of a user type say, in lengths of that name: of each field it has some
/// ten bytes at least.
const CLASS_NAME_FACTOR: usize = 16;

const CUSTOM: u16 = 0x0000;
const LIST: u16 = 0x0020;
const MAP: u16 = 0x0021;
const SET: u16 = 0x0022;
const UDT: u16 = 0x0030;
const TUPLE: u16 = 0x0031;

/// A column of a result, or a bind variable of a prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Keyspace of its table.
    pub keyspace: Arc<str>,
    /// Its table.
    pub table: Arc<str>,
    /// Name or alias, as shown to the client.
    pub name: Arc<str>,
    /// Its type.
    pub ty: CqlType,
}

/// The option id of a type without parameters.
fn simple_id(ty: &CqlType, version: Version) -> Option<u16> {
    let (id, since) = match ty {
        CqlType::Ascii => (0x0001, Version::V3),
        CqlType::BigInt => (0x0002, Version::V3),
        CqlType::Blob => (0x0003, Version::V3),
        CqlType::Boolean => (0x0004, Version::V3),
        CqlType::Counter => (0x0005, Version::V3),
        CqlType::Decimal => (0x0006, Version::V3),
        CqlType::Double => (0x0007, Version::V3),
        CqlType::Float => (0x0008, Version::V3),
        CqlType::Int => (0x0009, Version::V3),
        CqlType::Timestamp => (0x000B, Version::V3),
        CqlType::Uuid => (0x000C, Version::V3),
        CqlType::Text => (0x000D, Version::V3),
        CqlType::Varint => (0x000E, Version::V3),
        CqlType::TimeUuid => (0x000F, Version::V3),
        CqlType::Inet => (0x0010, Version::V3),
        CqlType::Date => (0x0011, Version::V4),
        CqlType::Time => (0x0012, Version::V4),
        CqlType::SmallInt => (0x0013, Version::V4),
        CqlType::TinyInt => (0x0014, Version::V4),
        CqlType::Duration => (0x0015, Version::V5),
        ty if ty.is_date_type() => (0x000B, Version::V3),
        _ => return None,
    };
    (version >= since).then_some(id)
}

fn simple_type(id: u16) -> Option<CqlType> {
    Some(match id {
        0x0001 => CqlType::Ascii,
        0x0002 => CqlType::BigInt,
        0x0003 => CqlType::Blob,
        0x0004 => CqlType::Boolean,
        0x0005 => CqlType::Counter,
        0x0006 => CqlType::Decimal,
        0x0007 => CqlType::Double,
        0x0008 => CqlType::Float,
        0x0009 => CqlType::Int,
        0x000B => CqlType::Timestamp,
        0x000C => CqlType::Uuid,
        0x000A | 0x000D => CqlType::Text, // 0x000A is TEXT, which Cassandra reads but never writes
        0x000E => CqlType::Varint,
        0x000F => CqlType::TimeUuid,
        0x0010 => CqlType::Inet,
        0x0011 => CqlType::Date,
        0x0012 => CqlType::Time,
        0x0013 => CqlType::SmallInt,
        0x0014 => CqlType::TinyInt,
        0x0015 => CqlType::Duration,
        _ => return None,
    })
}

/// Appends the `[option]` of a type. The wire format does not state whether a type is frozen.
pub fn put_type(out: &mut Vec<u8>, ty: &CqlType, version: Version) {
    if let Some(id) = simple_id(ty, version) {
        return out.put_short(id);
    }
    match ty {
        CqlType::List { element, .. } => {
            out.put_short(LIST);
            put_type(out, element, version);
        }
        CqlType::Set { element, .. } => {
            out.put_short(SET);
            put_type(out, element, version);
        }
        CqlType::Map { key, value, .. } => {
            out.put_short(MAP);
            put_type(out, key, version);
            put_type(out, value, version);
        }
        CqlType::Udt(udt) => {
            out.put_short(UDT);
            out.put_string(&udt.keyspace);
            out.put_string(&udt.name);
            out.put_short(udt.fields.len() as u16);
            for (name, ty) in &udt.fields {
                out.put_string(name);
                put_type(out, ty, version);
            }
        }
        CqlType::Tuple(types) => {
            out.put_short(TUPLE);
            out.put_short(types.len() as u16);
            types.iter().for_each(|ty| put_type(out, ty, version));
        }
        other => {
            out.put_short(CUSTOM);
            out.put_string(&other.class_name());
        }
    }
}

/// Reads an `[option]`. Collections and user types are returned as not frozen, because the wire format does not state
/// it, but within a class name, as of a vector, where they are as written: a gateway writes the same name again.
pub fn read_type(reader: &mut Reader<'_>) -> Result<CqlType, WireError> {
    read_nested(reader, 0)
}

fn read_nested(reader: &mut Reader<'_>, depth: u8) -> Result<CqlType, WireError> {
    if depth > MAX_DEPTH {
        return Err(WireError::TypeTooDeep { max: MAX_DEPTH });
    }
    let deeper = depth + 1;
    let id = reader.short()?;
    if let Some(ty) = simple_type(id) {
        return Ok(ty);
    }
    Ok(match id {
        CUSTOM => {
            let class = reader.string()?;
            CqlType::from_class_name_as_written(class).unwrap_or_else(|_| CqlType::Custom(class.into()))
        }
        LIST => CqlType::List { element: Arc::new(read_nested(reader, deeper)?), frozen: false },
        SET => CqlType::Set { element: Arc::new(read_nested(reader, deeper)?), frozen: false },
        MAP => {
            let key = Arc::new(read_nested(reader, deeper)?);
            CqlType::Map { key, value: Arc::new(read_nested(reader, deeper)?), frozen: false }
        }
        UDT => {
            let keyspace = Arc::from(reader.string()?);
            let name = Arc::from(reader.string()?);
            let mut fields = Vec::new();
            for _ in 0..reader.short()? {
                fields.push((Arc::from(reader.string()?), read_nested(reader, deeper)?));
            }
            CqlType::Udt(Arc::new(UserType { keyspace, name, fields, frozen: false }))
        }
        TUPLE => {
            let mut types = Vec::new();
            for _ in 0..reader.short()? {
                types.push(read_nested(reader, deeper)?);
            }
            CqlType::Tuple(types.into())
        }
        id => return Err(WireError::UnknownTypeId { id }),
    })
}

/// About the memory of an `[option]`'s type besides the value itself, bytes.
fn parts_bytes(reader: &mut Reader<'_>, depth: u8) -> Result<usize, WireError> {
    if depth > MAX_DEPTH {
        return Err(WireError::TypeTooDeep { max: MAX_DEPTH });
    }
    let boxed = |reader: &mut Reader<'_>| {
        Ok::<_, WireError>(ALLOCATION_BYTES + size_of::<CqlType>() + parts_bytes(reader, depth + 1)?)
    };
    Ok(match reader.short()? {
        CUSTOM => ALLOCATION_BYTES + CLASS_NAME_FACTOR * reader.string()?.len(),
        LIST | SET => boxed(reader)?,
        MAP => boxed(reader)? + boxed(reader)?,
        UDT => {
            let names = reader.string()?.len() + reader.string()?.len();
            let mut bytes = 4 * ALLOCATION_BYTES + size_of::<UserType>() + names;
            for _ in 0..reader.short()? {
                bytes += ALLOCATION_BYTES + reader.string()?.len();
                bytes += 2 * size_of::<(Arc<str>, CqlType)>() + parts_bytes(reader, depth + 1)?;
            }
            bytes
        }
        TUPLE => {
            let mut bytes = ALLOCATION_BYTES;
            for _ in 0..reader.short()? {
                bytes += 2 * size_of::<CqlType>() + parts_bytes(reader, depth + 1)?;
            }
            bytes
        }
        _ => 0,
    })
}

/// Skips an `[option]` without building the type.
pub(crate) fn skip_type(reader: &mut Reader<'_>, depth: u8) -> Result<(), WireError> {
    if depth > MAX_DEPTH {
        return Err(WireError::TypeTooDeep { max: MAX_DEPTH });
    }
    let id = reader.short()?;
    match id {
        CUSTOM => {
            reader.string()?;
        }
        LIST | SET => skip_type(reader, depth + 1)?,
        MAP => {
            skip_type(reader, depth + 1)?;
            skip_type(reader, depth + 1)?;
        }
        UDT => {
            reader.string()?;
            reader.string()?;
            for _ in 0..reader.short()? {
                reader.string()?;
                skip_type(reader, depth + 1)?;
            }
        }
        TUPLE => {
            for _ in 0..reader.short()? {
                skip_type(reader, depth + 1)?;
            }
        }
        id if simple_type(id).is_some() => {}
        id => return Err(WireError::UnknownTypeId { id }),
    }
    Ok(())
}

/// The first column, if all columns are of one table, so that the table need be named only once.
pub(crate) fn one_table(columns: &[ColumnSpec]) -> Option<&ColumnSpec> {
    let (first, rest) = columns.split_first()?;
    let same = |a: &Arc<str>, b: &Arc<str>| Arc::ptr_eq(a, b) || a == b;
    let all = rest
        .iter()
        .all(|column| same(&column.table, &first.table) && same(&column.keyspace, &first.keyspace));
    all.then_some(first)
}

/// Appends `<global_table_spec>?<col_spec>*`.
pub(crate) fn put_columns(out: &mut Vec<u8>, columns: &[ColumnSpec], version: Version) {
    let global = one_table(columns);
    if let Some(column) = global {
        out.put_string(&column.keyspace);
        out.put_string(&column.table);
    }
    for column in columns {
        if global.is_none() {
            out.put_string(&column.keyspace);
            out.put_string(&column.table);
        }
        out.put_string(&column.name);
        put_type(out, &column.ty, version);
    }
}

/// An unparsed `<global_table_spec>?<col_spec>*`, which is parsed on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns<'a> {
    count: usize,
    global: bool,
    bytes: &'a [u8],
}

impl<'a> Columns<'a> {
    /// Skips `count` columns.
    pub(crate) fn read(
        reader: &mut Reader<'a>,
        count: usize,
        global: bool,
    ) -> Result<Columns<'a>, WireError> {
        let start = *reader;
        if global {
            reader.string()?;
            reader.string()?;
        }
        for _ in 0..count {
            if !global {
                reader.string()?;
                reader.string()?;
            }
            reader.string()?;
            skip_type(reader, 0)?;
        }
        Ok(Columns { count, global, bytes: start.passed_by(reader) })
    }

    /// The number of described columns.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether no column is described.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// About the memory that the parsed columns take, bytes, found without parsing them: their number and their types are a client's choice,
    /// and a type of many fields takes many times its bytes here.
    ///
    /// # Errors
    /// As [`Columns::to_vec`].
    pub fn parsed_bytes(&self) -> Result<u64, WireError> {
        let mut reader = Reader::new(self.bytes);
        let texts = |reader: &mut Reader<'_>, count: usize| -> Result<usize, WireError> {
            (0..count).map(|_| Ok::<usize, WireError>(ALLOCATION_BYTES + reader.string()?.len())).sum()
        };
        let mut bytes = if self.global { texts(&mut reader, 2)? } else { 0 };
        for _ in 0..self.count {
            bytes += texts(&mut reader, if self.global { 1 } else { 3 })?;
            // The vector grows by doubling.
            bytes += 2 * size_of::<ColumnSpec>() + parts_bytes(&mut reader, 0)?;
        }
        Ok(bytes as u64)
    }

    /// Parses the columns.
    pub fn to_vec(&self) -> Result<Vec<ColumnSpec>, WireError> {
        let mut reader = Reader::new(self.bytes);
        let mut current: [Arc<str>; 2] = if self.global {
            [reader.string()?.into(), reader.string()?.into()]
        } else {
            ["".into(), "".into()]
        };
        let mut columns = Vec::new();
        for _ in 0..self.count {
            if !self.global {
                current = [reader.string()?.into(), reader.string()?.into()];
            }
            let [keyspace, table] = current.clone();
            let name = reader.string()?.into();
            columns.push(ColumnSpec { keyspace, table, name, ty: read_type(&mut reader)? });
        }
        Ok(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_columns_is_known_before_they_are_parsed() {
        let column = |name: &str, ty: CqlType| ColumnSpec {
            keyspace: "k".into(),
            table: "t".into(),
            name: name.into(),
            ty,
        };
        let parsed_bytes = |columns: &[ColumnSpec]| {
            let mut encoded = Vec::new();
            put_columns(&mut encoded, columns, Version::V4);
            let global = one_table(columns).is_some();
            let mut reader = Reader::new(&encoded);
            let read = Columns::read(&mut reader, columns.len(), global).unwrap();
            assert_eq!(read.to_vec().unwrap().len(), columns.len());
            read.parsed_bytes().unwrap()
        };
        let fields: Vec<(Arc<str>, CqlType)> = (0..2_000).map(|_| ("f".into(), CqlType::Int)).collect();
        let udt = UserType { keyspace: "k".into(), name: "u".into(), fields, frozen: false };
        let udt = CqlType::Udt(Arc::new(udt));
        let of_fields = 2_000 * (size_of::<(Arc<str>, CqlType)>() + 16) as u64;
        let one = parsed_bytes(&[column("a", udt.clone())]);
        assert!(one > of_fields, "{one}");
        assert!(parsed_bytes(&vec![column("a", udt.clone()); 10]) > 10 * of_fields);
        let list = CqlType::List { element: Arc::new(udt.clone()), frozen: false };
        let map = CqlType::Map { key: Arc::new(udt.clone()), value: Arc::new(list), frozen: false };
        let tuple = CqlType::Tuple([map, udt.clone()].into());
        assert!(parsed_bytes(&[column("a", tuple)]) > 3 * of_fields);
        // Within a class name too.
        let vector = CqlType::Vector { element: Arc::new(udt), dimension: 3 };
        let of_vector = parsed_bytes(&[column("a", vector)]);
        assert!(of_vector > of_fields, "{of_vector}");
        let mut other = column("b", CqlType::Int);
        other.table = "other".into();
        let several = parsed_bytes(&[column(&"n".repeat(10_000), CqlType::Custom("c".into())), other]);
        assert!((10_000..12_000).contains(&several), "{several}");
        assert_eq!(parsed_bytes(&[]), 0);
    }
}
