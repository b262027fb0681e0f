//! BATCH: several statements, prepared or not, in one request.

use crate::WireError;
use crate::native::Version;
use crate::native::primitives::{Put, Reader, Value};

use super::encode::put_long_string;
use super::{QueryParameters, Values};

/// How a batch is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchKind {
    /// All or nothing, through the batch log.
    Logged,
    /// Without the batch log.
    Unlogged,
    /// Counter updates only.
    Counter,
}

impl BatchKind {
    fn from_byte(byte: u8) -> Result<Self, WireError> {
        match byte {
            0 => Ok(BatchKind::Logged),
            1 => Ok(BatchKind::Unlogged),
            2 => Ok(BatchKind::Counter),
            other => Err(WireError::InvalidBatchType { kind: other as i8 }),
        }
    }
}

/// One statement of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchStatement<'a> {
    /// The statement.
    pub statement: StatementRef<'a>,
    /// Its values, which are never named: the protocol has a flag for names here, but no server can support it
    /// (CASSANDRA-10246).
    pub values: Values<'a>,
}

/// A statement by its text or by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementRef<'a> {
    /// CQL text.
    Query(&'a str),
    /// Id of a prepared statement.
    Prepared(&'a [u8]),
}

impl<'a> StatementRef<'a> {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        match reader.byte()? {
            0 => Ok(StatementRef::Query(reader.long_string()?)),
            1 => Ok(StatementRef::Prepared(reader.short_bytes()?)),
            other => Err(WireError::InvalidBatchQueryKind { kind: other as i8 }),
        }
    }
}

impl<'a> BatchStatement<'a> {
    #[inline]
    fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, WireError> {
        let statement = StatementRef::read(reader)?;
        Ok(BatchStatement { statement, values: Values::read(reader, version, false)? })
    }

    fn put(&self, out: &mut Vec<u8>, version: Version) -> Result<(), WireError> {
        match self.statement {
            StatementRef::Query(query) => {
                out.put_byte(0);
                put_long_string(out, query);
            }
            StatementRef::Prepared(id) => {
                out.put_byte(1);
                out.put_short_bytes(id);
            }
        }
        self.values.put(out, version)
    }
}

/// The statements of a batch: received ones, checked and read in place, or a client's slice.
#[derive(Clone, Copy, Debug)]
pub enum Statements<'a> {
    /// As received by a server.
    Wire(WireStatements<'a>),
    /// As given by a client.
    Slice(&'a [BatchStatement<'a>]),
}

/// Statements inside a request; see [`Statements::iter`].
#[derive(Clone, Copy, Debug)]
pub struct WireStatements<'a> {
    count: u16,
    bytes: &'a [u8],
    version: Version,
}

impl<'a> Statements<'a> {
    /// The number of statements.
    pub fn len(&self) -> usize {
        match self {
            Statements::Wire(wire) => usize::from(wire.count),
            Statements::Slice(slice) => slice.len(),
        }
    }

    /// Whether there are no statements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Visits the statements once. For each, `value` is called with each of its values, then `statement` with the
    /// statement and the number of its values. Stops at the first error of `statement`.
    ///
    /// # Errors
    /// The error of `statement`.
    #[inline]
    pub fn walk<E>(
        &self,
        mut value: impl FnMut(Value<'a>),
        mut statement: impl FnMut(StatementRef<'a>, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let wire = match *self {
            Statements::Wire(wire) => wire,
            Statements::Slice(slice) => {
                for one in slice {
                    one.values.iter().for_each(|(_, given)| value(given));
                    statement(one.statement, one.values.len())?;
                }
                return Ok(());
            }
        };
        let mut reader = Reader::new(wire.bytes);
        for _ in 0..wire.count {
            // These reads cannot fail, because the message was checked before.
            let Ok(what) = StatementRef::read(&mut reader) else { break };
            let Ok(count) = reader.short() else { break };
            for _ in 0..count {
                if let Ok(given) = reader.value(wire.version) {
                    value(given);
                }
            }
            statement(what, usize::from(count))?;
        }
        Ok(())
    }

    /// The statements in order.
    pub fn iter(&self) -> StatementsIter<'a> {
        let (bytes, slice) = match *self {
            Statements::Wire(wire) => (wire.bytes, [].as_slice()),
            Statements::Slice(slice) => ([].as_slice(), slice),
        };
        StatementsIter { statements: *self, reader: Reader::new(bytes), slice, left: self.len() }
    }
}

impl PartialEq for Statements<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

/// See [`Statements::iter`].
#[derive(Clone, Debug)]
pub struct StatementsIter<'a> {
    statements: Statements<'a>,
    reader: Reader<'a>,
    slice: &'a [BatchStatement<'a>],
    left: usize,
}

impl<'a> Iterator for StatementsIter<'a> {
    type Item = BatchStatement<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        match self.statements {
            Statements::Wire(wire) => BatchStatement::read(&mut self.reader, wire.version).ok(),
            Statements::Slice(_) => {
                let (first, rest) = self.slice.split_first()?;
                self.slice = rest;
                Some(*first)
            }
        }
    }
}

/// A batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch<'a> {
    /// How the batch is applied.
    pub kind: BatchKind,
    /// The statements.
    pub statements: Statements<'a>,
    /// Consistency, timestamp and so on, for the whole batch.
    pub parameters: QueryParameters<'a>,
}

impl<'a> Batch<'a> {
    /// Checks the whole message. The kind is checked last, as in Cassandra, so that a batch with two faults gets the
    /// same error.
    pub(crate) fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, WireError> {
        let kind = reader.byte()?;
        let count = reader.short()?;
        let start = *reader;
        for _ in 0..count {
            BatchStatement::read(reader, version)?;
        }
        let statements = Statements::Wire(WireStatements { count, bytes: start.passed_by(reader), version });
        let parameters = QueryParameters::read(reader, version)?;
        Ok(Batch { kind: BatchKind::from_byte(kind)?, statements, parameters })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>, version: Version) -> Result<(), WireError> {
        let Ok(count) = u16::try_from(self.statements.len()) else {
            let count = self.statements.len() as u64;
            return Err(WireError::TooMany { count, max: u64::from(u16::MAX), of: "statements of a batch" });
        };
        out.put_byte(match self.kind {
            BatchKind::Logged => 0,
            BatchKind::Unlogged => 1,
            BatchKind::Counter => 2,
        });
        out.put_short(count);
        for statement in self.statements.iter() {
            statement.put(out, version)?;
        }
        self.parameters.put(out, version)
    }
}
