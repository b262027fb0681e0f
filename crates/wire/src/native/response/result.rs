//! RESULT: its kinds, and the answer to PREPARE.

use crate::WireError;
use crate::native::primitives::{Put, Reader};
use crate::native::types::{Columns, one_table, put_columns};
use crate::native::{ColumnSpec, Version};

use super::rows::ReadMetadata;
use super::{ColumnSource, Rows, RowsMetadata, SchemaChange};

const GLOBAL_TABLES_SPEC: i32 = 0x0001;

/// The kinds of RESULT, with their numbers on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ResultKind {
    /// No result.
    Void = 1,
    /// Rows.
    Rows = 2,
    /// The result of USE.
    SetKeyspace = 3,
    /// The result of PREPARE.
    Prepared = 4,
    /// The result of a schema statement.
    SchemaChange = 5,
}

/// The answer to PREPARE.
#[derive(Clone, Copy, Debug)]
pub struct Prepared<'a> {
    /// Id of the statement; Cassandra's is an MD5.
    pub id: &'a [u8],
    /// v5: the id of the result's columns.
    pub result_metadata_id: &'a [u8],
    /// The bind markers.
    pub variables: &'a [ColumnSpec],
    /// Since v4: the markers of the partition key, in the order of its columns; empty if a column has no marker.
    pub partition_key: &'a [u16],
    /// Columns of the result; empty for statements that have none.
    pub result_columns: &'a [ColumnSpec],
}

impl Prepared<'_> {
    /// Appends the answer. The partition key's markers are omitted if the variables are of several tables, and a result
    /// without columns is marked as having no metadata, as in Cassandra.
    pub(super) fn put(&self, out: &mut Vec<u8>, version: Version) {
        out.put_short_bytes(self.id);
        if version >= Version::V5 {
            out.put_short_bytes(self.result_metadata_id);
        }
        let global = one_table(self.variables).is_some();
        out.put_int(if global { GLOBAL_TABLES_SPEC } else { 0 });
        out.put_int(self.variables.len() as i32);
        if version >= Version::V4 {
            let markers = if global { self.partition_key } else { &[] };
            out.put_int(markers.len() as i32);
            markers.iter().for_each(|marker| out.put_short(*marker));
        }
        put_columns(out, self.variables, version);
        let result = RowsMetadata {
            columns: ColumnSource::Specs(self.result_columns),
            skip: self.result_columns.is_empty(),
            changed_id: None,
        };
        result.put(out, version, None);
    }
}

/// The answer to PREPARE, as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPrepared<'a> {
    /// Id of the statement.
    pub id: &'a [u8],
    /// v5: the id of the result's columns, to be sent with EXECUTE.
    pub result_metadata_id: Option<&'a [u8]>,
    /// The bind markers.
    pub variables: Columns<'a>,
    /// Since v4: the markers of the partition key.
    pub partition_key: Vec<u16>,
    /// The metadata of the result.
    pub result: ReadMetadata<'a>,
}

impl<'a> ReadPrepared<'a> {
    fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, WireError> {
        let id = reader.short_bytes()?;
        let result_metadata_id = if version >= Version::V5 { Some(reader.short_bytes()?) } else { None };
        let flags = reader.int()?;
        let count = reader.int()?;
        let Ok(variables) = usize::try_from(count) else {
            return Err(WireError::NegativeCount { count, of: "variables" });
        };
        let mut partition_key = Vec::new();
        if version >= Version::V4 {
            for _ in 0..reader.int()? {
                partition_key.push(reader.short()?);
            }
        }
        let variables = Columns::read(reader, variables, flags & GLOBAL_TABLES_SPEC != 0)?;
        let result = ReadMetadata::read(reader)?;
        Ok(ReadPrepared { id, result_metadata_id, variables, partition_key, result })
    }
}

/// A RESULT as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultMessage<'a> {
    /// No result.
    Void,
    /// Rows.
    Rows(Rows<'a>),
    /// The keyspace now in use.
    SetKeyspace(&'a str),
    /// A prepared statement.
    Prepared(ReadPrepared<'a>),
    /// The schema change that the request made.
    SchemaChange(SchemaChange<'a>),
}

impl<'a> ResultMessage<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, WireError> {
        match reader.int()? {
            1 => Ok(ResultMessage::Void),
            2 => Ok(ResultMessage::Rows(Rows::read(reader)?)),
            3 => Ok(ResultMessage::SetKeyspace(reader.string()?)),
            4 => Ok(ResultMessage::Prepared(ReadPrepared::read(reader, version)?)),
            5 => Ok(ResultMessage::SchemaChange(SchemaChange::read(reader)?)),
            kind => Err(WireError::UnknownResultKind { kind }),
        }
    }
}
