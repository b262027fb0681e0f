//! The state of a chunk of rows as it must be: each live cell with its timestamp and expiry, in the bytes that a SELECT answers with.

use std::collections::BTreeMap;

use crate::tables::{Kind, Table, place_bytes};

/// From a second to a second.
pub type Span = (i64, i64);

/// Seconds around an expiry in which nobody can tell.
const DOUBT_S: i64 = 5;

/// A cell that is not deleted.
#[derive(Clone, Debug)]
pub struct Cell {
    pub value: Vec<u8>,
    pub at: i64,
    pub expires: Option<Span>,
}

/// Cells by column and place in it.
pub type Cells = BTreeMap<(usize, Vec<u8>), Cell>;

/// A row: the expiry of its marker, if it has one, and its cells.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub marker: Option<Option<Span>>,
    pub cells: Cells,
}

/// The rows that are compared together: a partition, or a part of the wide one.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    pub statics: Cells,
    pub rows: BTreeMap<u32, Row>,
}

/// A row as a SELECT answers it: p and c, then value and WRITETIME of each column; and the expiry of each cell of a column.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub bytes: Vec<Option<Vec<u8>>>,
    pub expires: Vec<Vec<Option<Span>>>,
}

/// Whether a cell lives at this second; none if it is in doubt.
fn lives(expires: Option<Span>, now: i64) -> Option<bool> {
    match expires {
        None => Some(true),
        Some((from, _)) if now < from - DOUBT_S => Some(true),
        Some((_, to)) if now > to + DOUBT_S => Some(false),
        Some(_) => None,
    }
}

impl Chunk {
    /// What a SELECT of the chunk answers at this second; none while an expiry is in doubt.
    pub fn answers(&self, (table, chunk): (&Table, u32), now: i64) -> Option<Vec<Answer>> {
        let living = |cells: &Cells| -> Option<Cells> {
            let mut alive = Cells::new();
            for (key, cell) in cells {
                if lives(cell.expires, now)? {
                    alive.insert(key.clone(), cell.clone());
                }
            }
            Some(alive)
        };
        let statics = living(&self.statics)?;
        let mut all = Vec::new();
        for (number, row) in &self.rows {
            let cells = living(&row.cells)?;
            let is_marked = match row.marker {
                Some(expires) => lives(expires, now)?,
                None => false,
            };
            if is_marked || !cells.is_empty() {
                let (p, c) = table.key(chunk, *number);
                all.push(answer(table, (p, Some(c)), &[&statics, &cells]));
            }
        }
        if all.is_empty() && !statics.is_empty() {
            let (p, _) = table.key(chunk, 0);
            all.push(answer(table, (p, None), &[&statics, &Cells::new()]));
        }
        Some(all)
    }
}

fn answer(table: &Table, (p, c): (i32, Option<i32>), [statics, cells]: &[&Cells; 2]) -> Answer {
    let mut answer = Answer {
        bytes: vec![Some(p.to_be_bytes().to_vec()), c.map(|c| c.to_be_bytes().to_vec())],
        expires: Vec::new(),
    };
    for (number, column) in table.columns.iter().enumerate() {
        let of = if column.is_static { statics } else { cells };
        let of: Vec<(&[u8], &Cell)> = of
            .range((number, Vec::new())..(number + 1, Vec::new()))
            .map(|((_, path), cell)| (path.as_slice(), cell))
            .collect();
        let (value, times, expires) = column_of(column.kind, &of);
        answer.bytes.push(value);
        answer.bytes.push(times);
        answer.expires.push(expires);
    }
    answer
}

/// Value, WRITETIME and expiries of a column.
#[allow(clippy::type_complexity, reason = "the three parts of a column")]
fn column_of(kind: Kind, cells: &[(&[u8], &Cell)]) -> (Option<Vec<u8>>, Option<Vec<u8>>, Vec<Option<Span>>) {
    let Some((_, first)) = cells.first() else { return (None, None, Vec::new()) };
    let of_all = || cells.iter().map(|(_, cell)| cell.expires).collect();
    let times = |cells: &[Option<&Cell>]| {
        let times: Vec<_> =
            cells.iter().map(|cell| cell.map(|cell| cell.at.to_be_bytes().to_vec())).collect();
        Some(list(&times))
    };
    let every: Vec<Option<&Cell>> = cells.iter().map(|(_, cell)| Some(*cell)).collect();
    match kind {
        Kind::Int | Kind::Text | Kind::Frozen => {
            (Some(first.value.clone()), Some(first.at.to_be_bytes().to_vec()), of_all())
        }
        Kind::Map => {
            let mut bytes = (cells.len() as i32).to_be_bytes().to_vec();
            for (path, cell) in cells {
                for part in [path, cell.value.as_slice()] {
                    bytes.extend((part.len() as i32).to_be_bytes());
                    bytes.extend(part);
                }
            }
            (Some(bytes), times(&every), of_all())
        }
        Kind::Set => {
            let keys: Vec<_> = cells.iter().map(|(path, _)| Some(path.to_vec())).collect();
            (Some(list(&keys)), times(&every), of_all())
        }
        Kind::List => {
            let values: Vec<_> = cells.iter().map(|(_, cell)| Some(cell.value.clone())).collect();
            (Some(list(&values)), times(&every), of_all())
        }
        Kind::Place => {
            let field = |number: u8| cells.iter().find(|(path, _)| *path == [number]).map(|(_, cell)| *cell);
            let fields = [field(0), field(1)];
            let value = place_bytes(fields.map(|cell| cell.map(|cell| cell.value.as_slice())));
            (Some(value), times(&fields), fields.map(|cell| cell.and_then(|cell| cell.expires)).to_vec())
        }
    }
}

/// The bytes of a list with these elements.
fn list(parts: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = (parts.len() as i32).to_be_bytes().to_vec();
    for part in parts {
        bytes.extend(part.as_ref().map_or(-1, |part| part.len() as i32).to_be_bytes());
        bytes.extend(part.iter().flatten());
    }
    bytes
}
