//! Requests encoded once, of which every copy differs in a few bytes.

use super::session::PreparedStatement;
use anyhow::{Context, Result, ensure};
use helenus_wire::native::Direction;
use helenus_wire::native::{
    Batch, BatchKind, BatchStatement, EnvelopeReader, Execute, QueryParameters, Request, RequestHead,
    StatementRef, Statements, Value, Values, Version, decode_request,
};

/// Where an envelope has its stream.
const STREAM: std::ops::Range<usize> = 2..4;
/// What the drivers ask for by default; the answers here are smaller.
const PAGE_ROWS: i32 = 5_000;

/// An encoded request and the places of its values.
#[derive(Clone, Debug, Default)]
pub struct Template {
    bytes: Vec<u8>,
    /// Offsets of the values, in the order of the markers, those of a batch one statement after the other.
    places: Vec<usize>,
}

impl Template {
    /// An EXECUTE; `values` have the lengths of the real ones. `reads` asks for rows without their description, in
    /// pages.
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

    /// An unlogged BATCH of `count` times one statement.
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

    /// The request's bytes, for who sets values in them by himself.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Encodes and then reads back, to learn where the values lie.
    fn encode(version: Version, request: &Request<'_>) -> Result<Template> {
        let mut bytes = Vec::new();
        request.encode(&RequestHead::new(version, 0), &mut bytes)?;
        let reader =
            EnvelopeReader { from: Direction::Request, connection: Some(version), max_frame: u64::MAX };
        let envelope =
            reader.read(&bytes).map_err(|refusal| refusal.error)?.context("an envelope of our own")?;
        let header = envelope.header;
        let values = match decode_request(version, header.opcode, header.flags, envelope.body)?.request {
            Request::Execute(execute) => vec![execute.parameters.values],
            Request::Batch(batch) => batch.statements.iter().map(|statement| statement.values).collect(),
            _ => Vec::new(),
        };
        let start = bytes.as_ptr().addr();
        let bytes_of = |values: Values<'_>| -> Vec<usize> {
            let found = values.iter().filter_map(|(_, value)| value.bytes());
            found.map(|value| value.as_ptr().addr() - start).collect()
        };
        let places: Vec<usize> = values.into_iter().flat_map(bytes_of).collect();
        ensure!(!places.is_empty(), "a request without values");
        Ok(Template { bytes, places })
    }

    /// Appends a copy for `stream`.
    #[inline]
    pub fn put<'o>(&'o self, stream: i16, out: &'o mut Vec<u8>) -> Copy<'o> {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let bytes = out.get_mut(start..).unwrap_or_default();
        if let Some(place) = bytes.get_mut(STREAM) {
            place.copy_from_slice(&stream.to_be_bytes());
        }
        Copy { bytes, places: &self.places }
    }
}

/// A request just appended, whose values may be set.
pub struct Copy<'o> {
    bytes: &'o mut [u8],
    places: &'o [usize],
}

impl Copy<'_> {
    /// Sets a value, or `offset` bytes into it. It must lie within the value.
    #[inline]
    pub fn set(&mut self, value: usize, offset: usize, bytes: &[u8]) {
        let Some(start) = self.places.get(value).map(|place| place + offset) else { return };
        if let Some(place) = self.bytes.get_mut(start..start + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}
