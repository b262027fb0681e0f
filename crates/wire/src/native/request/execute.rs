//! EXECUTE: a prepared statement by its id, with its parameters.

use crate::WireError;
use crate::native::Version;
use crate::native::primitives::{Put, Reader};

use super::QueryParameters;

/// A prepared statement to execute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Execute<'a> {
    /// The id from the answer to PREPARE.
    pub id: &'a [u8],
    /// v5: the id of the result's columns that the client knows.
    pub result_metadata_id: Option<&'a [u8]>,
    /// Values, consistency and so on.
    pub parameters: QueryParameters<'a>,
}

impl<'a> Execute<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, WireError> {
        Ok(Execute {
            id: reader.short_bytes()?,
            result_metadata_id: if version >= Version::V5 { Some(reader.short_bytes()?) } else { None },
            parameters: QueryParameters::read(reader, version)?,
        })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>, version: Version) -> Result<(), WireError> {
        out.put_short_bytes(self.id);
        if version >= Version::V5 {
            out.put_short_bytes(self.result_metadata_id.unwrap_or_default());
        }
        self.parameters.put(out, version)
    }
}
