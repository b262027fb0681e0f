//! QUERY: a statement as text, with its parameters.

use crate::WireError;
use crate::native::Version;
use crate::native::primitives::{Put, Reader};

use super::QueryParameters;
use super::encode::put_long_string;

/// A statement to be parsed and executed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Query<'a> {
    /// The CQL text.
    pub query: &'a str,
    /// Values, consistency and so on.
    pub parameters: QueryParameters<'a>,
}

impl<'a> Query<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, WireError> {
        Ok(Query { query: reader.long_string()?, parameters: QueryParameters::read(reader, version)? })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>, version: Version) -> Result<(), WireError> {
        put_long_string(out, self.query);
        self.parameters.put(out, version)
    }
}

/// PREPARE: a statement to be parsed and kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prepare<'a> {
    /// The CQL text.
    pub query: &'a str,
    /// Since v5: keyspace of unqualified names.
    pub keyspace: Option<&'a str>,
}

impl<'a> Prepare<'a> {
    const KEYSPACE: i32 = 1;

    pub(crate) fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, WireError> {
        let query = reader.long_string()?;
        let flags = if version >= Version::V5 { reader.int()? } else { 0 };
        let keyspace = if flags & Self::KEYSPACE != 0 { Some(reader.string()?) } else { None };
        Ok(Prepare { query, keyspace })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>, version: Version) {
        put_long_string(out, self.query);
        if version < Version::V5 {
            return;
        }
        match self.keyspace {
            Some(keyspace) => {
                out.put_int(Self::KEYSPACE);
                out.put_string(keyspace);
            }
            None => out.put_int(0),
        }
    }
}
