//! The answers: each computed from its request, by the shape of the statement that was prepared.

use crate::content::{COLUMNS, NAME, name, value, wide_value};
use anyhow::{Context, Result, bail};
use helenus_model::types::CqlType;
use helenus_wire::native::{
    ColumnSource, ColumnSpec, Envelope, Execute, Outgoing, Prepared, Request, ResponseHead, RowsMetadata,
    RowsWriter, decode_request,
};

/// What a statement of `stress` is; its prepared id is this as a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Shape {
    Write = 1,
    Single,
    SliceUp,
    SliceDown,
    NamesUp,
    NamesDown,
}

const SHAPES: [Shape; 6] =
    [Shape::Write, Shape::Single, Shape::SliceUp, Shape::SliceDown, Shape::NamesUp, Shape::NamesDown];

/// Rows of a slice; `stress` asks for so many by default.
const LIMIT: u64 = 100;

/// Answers, with the buffers that serve one after another.
pub struct Answers {
    single: Vec<ColumnSpec>,
    wide: Vec<ColumnSpec>,
    names: Vec<u64>,
}

impl Default for Answers {
    fn default() -> Answers {
        let spec = |name: &str| ColumnSpec {
            keyspace: "stress".into(),
            table: "canned".into(),
            name: name.into(),
            ty: CqlType::Blob,
        };
        Answers {
            single: ["C0", "C1", "C2", "C3", "C4"].map(spec).to_vec(),
            wide: ["name", "value"].map(spec).to_vec(),
            names: Vec::new(),
        }
    }
}

impl Answers {
    /// Appends the answer to a request.
    pub fn put(&mut self, envelope: &Envelope<'_>, out: &mut Vec<u8>) -> Result<()> {
        let header = envelope.header;
        let head = ResponseHead::new(header.version, header.stream);
        let message = decode_request(header.version, header.opcode, header.flags, envelope.body)?;
        match message.request {
            Request::Startup(_) => Outgoing::Ready.encode(&head, None, out)?,
            Request::Options => Outgoing::Supported { cql_version: "3.4.7" }.encode(&head, None, out)?,
            // What shows that a server is up.
            Request::Query(query) if query.query.contains("system.local") => {
                let columns = ColumnSource::Specs(self.single.get(..1).unwrap_or_default());
                let metadata = RowsMetadata { columns, skip: false, changed_id: None };
                let mut rows = RowsWriter::begin(out, &head, &metadata, None);
                rows.cell(b"local");
                rows.end_row();
                rows.finish(None)?;
            }
            Request::Query(_) | Request::Batch(_) => Outgoing::Void.encode(&head, None, out)?,
            Request::Prepare(prepare) => {
                let prepared = Prepared {
                    id: &[shape_of(prepare.query)? as u8],
                    result_metadata_id: &[0],
                    variables: &[],
                    partition_key: &[],
                    result_columns: &[],
                };
                Outgoing::Prepared(&prepared).encode(&head, None, out)?;
            }
            Request::Execute(execute) => self.execute(&execute, &head, out)?,
            Request::Register(_) | Request::AuthResponse(_) => bail!("a request that stress never sends"),
        }
        Ok(())
    }

    fn execute(&mut self, execute: &Execute<'_>, head: &ResponseHead<'_>, out: &mut Vec<u8>) -> Result<()> {
        let shape = SHAPES.into_iter().find(|shape| [*shape as u8] == execute.id).context("an unknown id")?;
        let mut values = execute.parameters.values.iter().filter_map(|(_, value)| value.bytes());
        let key = values.next().context("no key")?;
        let columns = match shape {
            Shape::Write => return Ok(Outgoing::Void.encode(head, None, out)?),
            Shape::Single => &self.single,
            _ => &self.wide,
        };
        let metadata = RowsMetadata { columns: ColumnSource::Specs(columns), skip: true, changed_id: None };
        let mut rows = RowsWriter::begin(out, head, &metadata, None);
        if shape == Shape::Single {
            let row = key.iter().fold(0, |row, byte| row << 8 | u64::from(*byte));
            (0..COLUMNS).for_each(|column| rows.cell(&value(row, column)));
            rows.end_row();
            return Ok(rows.finish(None)?);
        }
        let width = decimal(key.strip_prefix(b"row-").context("not a key of stress")?);
        let second = values.next();
        let mut row = |number: u64| {
            rows.cell(&name(number));
            rows.cell(&wide_value(width, number));
            rows.end_row();
        };
        match shape {
            Shape::SliceDown => {
                let first = second.map_or(width - 1, decimal);
                (0..LIMIT.min(first + 1)).for_each(|at| row(first - at));
            }
            Shape::NamesUp | Shape::NamesDown => {
                self.names.clear();
                let list = second.context("no names")?.get(4..).unwrap_or_default();
                self.names.extend(
                    list.chunks_exact(4 + NAME).map(|name| decimal(name.get(4..).unwrap_or_default())),
                );
                self.names.sort_unstable();
                match shape {
                    Shape::NamesUp => self.names.iter().for_each(|number| row(*number)),
                    _ => self.names.iter().rev().for_each(|number| row(*number)),
                }
            }
            _ => {
                let first = second.map_or(0, decimal);
                (first..(first + LIMIT).min(width)).for_each(row);
            }
        }
        Ok(rows.finish(None)?)
    }
}

fn shape_of(query: &str) -> Result<Shape> {
    let has = |part: &str| query.contains(part);
    Ok(match () {
        () if query.starts_with("INSERT") || query.starts_with("UPDATE") => Shape::Write,
        () if has("\"C0\"") => Shape::Single,
        () if has("IN ?") => {
            if has(".reversed ") {
                Shape::NamesDown
            } else {
                Shape::NamesUp
            }
        }
        () if has("ORDER BY name DESC") => Shape::SliceDown,
        () if has("ORDER BY name ASC") => Shape::SliceUp,
        () => bail!("not a statement of stress: {query}"),
    })
}

fn decimal(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit.wrapping_sub(b'0')))
}
