//! Request templates: a request is encoded once, and each copy differs in a few bytes.

use super::Text;
use super::session::PreparedStatement;
use anyhow::{Context, Result, ensure};
use helenus_wire::native::Direction;
use helenus_wire::native::{
    Batch, BatchKind, BatchStatement, EnvelopeReader, Execute, Query, QueryParameters, Request, RequestHead,
    StatementRef, Statements, Value, Values, Version, decode_request,
};
use helenus_wire::thrift::{Method, Reader, ThriftError, begin_call, end_message};
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

/// The position of the stream id in an envelope.
const STREAM: Range<usize> = 2..4;
/// Bytes of a framed call before the method's name: frame length, version and message type, length of the name.
const BEFORE_NAME: usize = 12;
/// The default page size of the drivers. The answers here are smaller.
const PAGE_ROWS: i32 = 5_000;

/// An encoded request and the positions of its values.
#[derive(Clone, Debug, Default)]
pub struct Template {
    bytes: Vec<u8>,
    /// The position of the number that the answer repeats: the stream id of an envelope, the sequence id of an RPC
    /// call.
    number: Range<usize>,
    /// The offsets of the values in the order of the bind markers; in a batch, statement by statement.
    places: Vec<usize>,
    /// The offsets of timestamps, which each copy sets to the current time.
    timestamps: Vec<usize>,
}

impl Template {
    /// A framed RPC call. `arguments` writes its argument struct. `values` reads that struct and returns the slices of
    /// the values to be set.
    pub fn call(
        method: Method,
        arguments: impl FnOnce(&mut Vec<u8>),
        values: impl for<'b> FnOnce(&mut Reader<'b>) -> Result<Vec<&'b [u8]>, ThriftError>,
    ) -> Result<Template> {
        let mut bytes = Vec::new();
        let at = begin_call(method, 0, &mut bytes);
        arguments(&mut bytes);
        end_message(at, &mut bytes);
        let number = BEFORE_NAME + method.name().len();
        let body = bytes.get(number + 4..).context("a call of our own")?;
        let start = bytes.as_ptr().addr();
        let found = values(&mut Reader::new(body))?;
        let places: Vec<usize> = found.into_iter().map(|value| value.as_ptr().addr() - start).collect();
        ensure!(!places.is_empty(), "a call without values");
        Ok(Template { bytes, number: number..number + 4, places, timestamps: Vec::new() })
    }

    /// Adds timestamps that each copy sets. Each is given as the index of a value and the distance in bytes from that
    /// value's start.
    pub fn stamped(mut self, after: impl IntoIterator<Item = (usize, usize)>) -> Template {
        let place = |(value, after): (usize, usize)| self.places.get(value).map(|place| place + after);
        self.timestamps = after.into_iter().filter_map(place).collect();
        self
    }

    /// An EXECUTE. `values` must have the lengths of the real values. With `reads`, it asks for pages of rows without
    /// metadata.
    pub fn execute(
        version: Version,
        statement: &PreparedStatement,
        values: &[&[u8]],
        reads: bool,
    ) -> Result<Template> {
        let values: Vec<Value<'_>> = values.iter().map(|value| Value::Bytes(value)).collect();
        let parameters = QueryParameters {
            values: Values::positional(&values),
            skip_metadata: reads,
            page_size: reads.then_some(PAGE_ROWS),
            ..QueryParameters::default()
        };
        let metadata_id = statement.result_metadata_id.as_deref();
        Self::encode(
            version,
            &Request::Execute(Execute { id: &statement.id, result_metadata_id: metadata_id, parameters }),
        )
    }

    /// A QUERY whose values are part of the text.
    pub fn query(version: Version, text: &Text) -> Result<Template> {
        let query = Query { query: text.as_str(), parameters: QueryParameters::default() };
        let mut template = Self::encode(version, &Request::Query(query))?;
        let start = template.places.first().copied().unwrap_or_default();
        template.places = text.places().iter().map(|place| start + place.start).collect();
        Ok(template)
    }

    /// An unlogged BATCH of `count` times the same statement.
    pub fn batch(
        version: Version,
        statement: &PreparedStatement,
        values: &[&[u8]],
        count: usize,
    ) -> Result<Template> {
        let values: Vec<Value<'_>> = values.iter().map(|value| Value::Bytes(value)).collect();
        let one = BatchStatement {
            statement: StatementRef::Prepared(&statement.id),
            values: Values::positional(&values),
        };
        let batch = Batch {
            kind: BatchKind::Unlogged,
            statements: Statements::Slice(&vec![one; count]),
            parameters: QueryParameters::default(),
        };
        Self::encode(version, &Request::Batch(batch))
    }

    /// An unlogged BATCH of several statements, each with its values.
    pub fn batch_of(version: Version, statements: &[(&PreparedStatement, &[&[u8]])]) -> Result<Template> {
        let values: Vec<Vec<Value<'_>>> = statements
            .iter()
            .map(|(_, values)| values.iter().map(|value| Value::Bytes(value)).collect())
            .collect();
        let statements: Vec<BatchStatement<'_>> = statements
            .iter()
            .zip(&values)
            .map(|((statement, _), values)| BatchStatement {
                statement: StatementRef::Prepared(&statement.id),
                values: Values::positional(values),
            })
            .collect();
        let batch = Batch {
            kind: BatchKind::Unlogged,
            statements: Statements::Slice(&statements),
            parameters: QueryParameters::default(),
        };
        Self::encode(version, &Request::Batch(batch))
    }

    /// Encodes the request and decodes it again, to find the offsets of the values.
    fn encode(version: Version, request: &Request<'_>) -> Result<Template> {
        let mut bytes = Vec::new();
        request.encode(&RequestHead::new(version, 0), &mut bytes)?;
        let reader =
            EnvelopeReader { from: Direction::Request, connection: Some(version), max_frame: u64::MAX };
        let envelope =
            reader.read(&bytes).map_err(|refusal| refusal.error)?.context("an envelope of our own")?;
        let header = envelope.header;
        let start = bytes.as_ptr().addr();
        let mut places = Vec::new();
        let values = match decode_request(version, header.opcode, header.flags, envelope.body)?.request {
            Request::Execute(execute) => vec![execute.parameters.values],
            Request::Batch(batch) => batch.statements.iter().map(|statement| statement.values).collect(),
            Request::Query(query) => {
                places.push(query.query.as_ptr().addr() - start); // the text itself
                Vec::new()
            }
            _ => Vec::new(),
        };
        let bytes_of = |values: Values<'_>| -> Vec<usize> {
            let found = values.iter().filter_map(|(_, value)| value.bytes());
            found.map(|value| value.as_ptr().addr() - start).collect()
        };
        places.extend(values.into_iter().flat_map(bytes_of));
        ensure!(!places.is_empty(), "a request without values");
        Ok(Template { bytes, number: STREAM, places, timestamps: Vec::new() })
    }

    /// Appends a copy with the number `stream`.
    #[inline]
    pub fn put<'o>(&'o self, stream: i16, out: &'o mut Vec<u8>) -> Copy<'o> {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let bytes = out.get_mut(start..).unwrap_or_default();
        let number = i32::from(stream).to_be_bytes();
        if let Some(place) = bytes.get_mut(self.number.clone()) {
            // A stream id has two bytes and is never negative.
            place.copy_from_slice(number.get(4 - place.len()..).unwrap_or_default());
        }
        if !self.timestamps.is_empty() {
            let now = now_us().to_be_bytes();
            for at in &self.timestamps {
                if let Some(place) = bytes.get_mut(*at..at + now.len()) {
                    place.copy_from_slice(&now);
                }
            }
        }
        Copy { bytes, places: &self.places }
    }
}

/// Microseconds since the epoch, used as the timestamp of RPC writes.
fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

/// A copy just appended, whose values can be set.
pub struct Copy<'o> {
    bytes: &'o mut [u8],
    places: &'o [usize],
}

impl Copy<'_> {
    /// Overwrites a value from `offset` on. The bytes must lie within the value.
    #[inline]
    pub fn set(&mut self, value: usize, offset: usize, bytes: &[u8]) {
        let Some(start) = self.places.get(value).map(|place| place + offset) else { return };
        if let Some(place) = self.bytes.get_mut(start..start + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// Overwrites a hexadecimal value of a text: two digits a byte.
    #[inline]
    pub fn set_hex(&mut self, value: usize, bytes: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let Some(start) = self.places.get(value) else { return };
        let Some(place) = self.bytes.get_mut(*start..start + bytes.len() * 2) else { return };
        for (pair, byte) in place.chunks_exact_mut(2).zip(bytes) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_wire::native::decode_request;

    #[test]
    fn a_text_carries_the_values_of_its_copy() {
        let mut text = Text::default();
        text.push("SELECT 0x").hex(2).push(", 0x").hex(1).push(" FROM t");
        let template = Template::query(Version::V4, &text).unwrap();
        let mut out = Vec::new();
        let mut copy = template.put(7, &mut out);
        copy.set_hex(0, &[0x01, 0xAB]);
        copy.set_hex(1, &[0xFF]);
        let reader =
            EnvelopeReader { from: Direction::Request, connection: Some(Version::V4), max_frame: 1 << 20 };
        let envelope = reader.read(&out).unwrap().unwrap();
        assert_eq!(envelope.header.stream, 7);
        let header = envelope.header;
        let decoded = decode_request(Version::V4, header.opcode, header.flags, envelope.body).unwrap();
        let Request::Query(query) = decoded.request else { panic!() };
        assert_eq!(query.query, "SELECT 0x01ab, 0xff FROM t");
    }
}
