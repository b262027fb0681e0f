//! `<query_parameters>`: the parameters of QUERY, EXECUTE and BATCH besides the statement (Cassandra's
//! `QueryOptions.Codec`).
//!
//! Cassandra reads the same parameters at the end of a BATCH. So the flags for values, page size and paging state are
//! applied there too, although the specification omits them. The flags are a byte before v5 and an `[int]` since. Bit 7
//! of the byte means a keyspace in every version. Unknown bits are ignored.

use crate::WireError;
use crate::native::primitives::{Put, Reader};
use crate::native::{Consistency, Version};

use super::Values;

const VALUES: u32 = 0x0001;
const SKIP_METADATA: u32 = 0x0002;
const PAGE_SIZE: u32 = 0x0004;
const PAGING_STATE: u32 = 0x0008;
const SERIAL_CONSISTENCY: u32 = 0x0010;
const TIMESTAMP: u32 = 0x0020;
const NAMES_FOR_VALUES: u32 = 0x0040;
const KEYSPACE: u32 = 0x0080;
const NOW_IN_SECONDS: u32 = 0x0100;

/// The parameters of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryParameters<'a> {
    /// Consistency level.
    pub consistency: Consistency,
    /// Bound values. In a BATCH, each statement has its own instead.
    pub values: Values<'a>,
    /// Whether the client knows the columns and wants rows only.
    pub skip_metadata: bool,
    /// Rows in a page, as sent, even if zero or negative: see [`QueryParameters::check_page_size`].
    pub page_size: Option<i32>,
    /// Where the page begins, from an earlier response.
    pub paging_state: Option<&'a [u8]>,
    /// Consistency of the Paxos phase. Cassandra uses SERIAL if there is none.
    pub serial_consistency: Option<Consistency>,
    /// Default timestamp of writes, microseconds since the epoch.
    pub timestamp: Option<i64>,
    /// Keyspace of unqualified names. Specified since v5, but Cassandra accepts the flag in older versions too.
    pub keyspace: Option<&'a str>,
    /// Since v5: the time used to decide what has expired, in seconds since the epoch, to be read as unsigned.
    pub now_in_seconds: Option<i32>,
}

impl Default for QueryParameters<'_> {
    fn default() -> Self {
        QueryParameters {
            consistency: Consistency::One,
            values: Values::NONE,
            skip_metadata: false,
            page_size: None,
            paging_state: None,
            serial_consistency: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
        }
    }
}

impl<'a> QueryParameters<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, WireError> {
        let consistency = reader.consistency()?;
        let flags = if version >= Version::V5 { reader.int()? as u32 } else { u32::from(reader.byte()?) };
        let has = |flag: u32| flags & flag != 0;
        // The fields of a struct literal are evaluated in order, which is the order on the wire.
        Ok(QueryParameters {
            consistency,
            values: if has(VALUES) {
                Values::read(reader, version, has(NAMES_FOR_VALUES))?
            } else {
                Values::NONE
            },
            skip_metadata: has(SKIP_METADATA),
            page_size: if has(PAGE_SIZE) { Some(reader.int()?) } else { None },
            paging_state: if has(PAGING_STATE) { reader.bytes()? } else { None },
            serial_consistency: if has(SERIAL_CONSISTENCY) { Some(reader.consistency()?) } else { None },
            timestamp: if has(TIMESTAMP) { Some(read_timestamp(reader)?) } else { None },
            keyspace: if has(KEYSPACE) { Some(reader.string()?) } else { None },
            now_in_seconds: if has(NOW_IN_SECONDS) { Some(reader.int()?) } else { None },
        })
    }

    /// Appends the parameters. Before v5, `now_in_seconds` is omitted, because its flag does not fit into the byte.
    pub(crate) fn put(&self, out: &mut Vec<u8>, version: Version) -> Result<(), WireError> {
        let v5 = version >= Version::V5;
        let now_in_seconds = self.now_in_seconds.filter(|_| v5);
        let flag = |set: bool, flag: u32| if set { flag } else { 0 };
        let flags = flag(!self.values.is_empty(), VALUES)
            | flag(self.skip_metadata, SKIP_METADATA)
            | flag(self.page_size.is_some(), PAGE_SIZE)
            | flag(self.paging_state.is_some(), PAGING_STATE)
            | flag(self.serial_consistency.is_some(), SERIAL_CONSISTENCY)
            | flag(self.timestamp.is_some(), TIMESTAMP)
            | flag(!self.values.is_empty() && self.values.has_names(), NAMES_FOR_VALUES)
            | flag(self.keyspace.is_some(), KEYSPACE)
            | flag(now_in_seconds.is_some(), NOW_IN_SECONDS);
        out.put_consistency(self.consistency);
        if v5 {
            out.put_int(flags as i32);
        } else {
            out.put_byte(flags as u8);
        }
        if !self.values.is_empty() {
            self.values.put(out, version)?;
        }
        if let Some(rows) = self.page_size {
            out.put_int(rows);
        }
        if let Some(state) = self.paging_state {
            out.put_bytes(state);
        }
        if let Some(consistency) = self.serial_consistency {
            out.put_consistency(consistency);
        }
        if let Some(timestamp) = self.timestamp {
            out.put_long(timestamp);
        }
        if let Some(keyspace) = self.keyspace {
            out.put_string(keyspace);
        }
        if let Some(now) = now_in_seconds {
            out.put_int(now);
        }
        Ok(())
    }

    /// Refuses a page size of 0. Cassandra does this when it executes a QUERY or an EXECUTE, after it has looked up the
    /// prepared statement, so it is not part of decoding.
    pub fn check_page_size(&self) -> Result<(), WireError> {
        if self.page_size == Some(0) { Err(WireError::ZeroPageSize) } else { Ok(()) }
    }
}

fn read_timestamp(reader: &mut Reader<'_>) -> Result<i64, WireError> {
    match reader.long()? {
        i64::MIN => Err(WireError::TimestampOutOfBounds),
        timestamp => Ok(timestamp),
    }
}
