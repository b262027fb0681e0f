//! The tables that move, what they are filled with, and the writes that are drawn for them.

use end_to_end::draw::Draw;

use crate::changes::{Act, Change, Value, Write};
use crate::state::{Cell, Chunk, Row, Span};

/// The timestamp of the first row of a fill, microseconds.
const FIRST: i64 = 1_700_000_000_000_000;
/// Rows of a chunk of the wide partition.
const WIDE_CHUNK: u32 = 200;

/// What a column holds: map<text, int>, set<int>, list<text>, the type `place`, frozen<list<int>>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    Text,
    Map,
    Set,
    List,
    Place,
    Frozen,
}

pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub is_static: bool,
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_static: false }
}

/// A table whose key is (p int, c int).
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [Column],
    /// Rows of a chunk.
    pub rows: u32,
    /// Whether all chunks are parts of one partition.
    pub is_wide: bool,
}

pub const KEYSPACE: &str = "long_move";

pub const TABLES: [Table; 3] = [
    Table { name: "long_move.small", columns: &[column("v", Kind::Text)], rows: 20, is_wide: false },
    Table { name: "long_move.wide", columns: &[column("v", Kind::Text)], rows: WIDE_CHUNK, is_wide: true },
    Table {
        name: "long_move.mixed",
        columns: &[
            Column { name: "st", kind: Kind::Int, is_static: true },
            Column { name: "sm", kind: Kind::Map, is_static: true },
            column("a", Kind::Int),
            column("b", Kind::Text),
            column("m", Kind::Map),
            column("s", Kind::Set),
            column("l", Kind::List),
            column("u", Kind::Place),
            column("f", Kind::Frozen),
        ],
        rows: 10,
        is_wide: false,
    },
];

/// Statements that make everything, without the keyspace.
pub const SCHEMA: [&str; 6] = [
    "CREATE TYPE long_move.place (street text, number int)",
    "CREATE TABLE long_move.small (p int, c int, v text, PRIMARY KEY (p, c))",
    "CREATE TABLE long_move.wide (p int, c int, v text, PRIMARY KEY (p, c))",
    "CREATE TABLE long_move.mixed (p int, c int, st int static, sm map<text, int> static, a int, b text, m map<text, int>, s set<int>, \
     l list<text>, u place, f frozen<list<int>>, PRIMARY KEY (p, c))",
    "CREATE TABLE long_move.counts (p int, c int, a counter, b counter, PRIMARY KEY (p, c))",
    "CREATE TABLE long_move.conditions (p int, c int, v int, PRIMARY KEY (p, c))",
];

impl Table {
    /// The key of a row of a chunk.
    pub fn key(&self, chunk: u32, row: u32) -> (i32, i32) {
        if self.is_wide { (0, (chunk * self.rows + row) as i32) } else { (chunk as i32, row as i32) }
    }

    /// The condition for these rows of a chunk; without rows, for its partition.
    pub fn condition(&self, chunk: u32, rows: Option<(u32, u32)>) -> String {
        let (p, _) = self.key(chunk, 0);
        match rows {
            None => format!("p = {p}"),
            Some((from, to)) if to == from + 1 => format!("p = {p} AND c = {}", self.key(chunk, from).1),
            Some((from, to)) => {
                format!("p = {p} AND c >= {} AND c < {}", self.key(chunk, from).1, self.key(chunk, to).1)
            }
        }
    }

    /// The condition for a chunk.
    pub fn whole_chunk(&self, chunk: u32) -> String {
        self.condition(chunk, self.is_wide.then_some((0, self.rows)))
    }

    /// Columns of the SELECT that `Answer` describes, with TTLs in between.
    pub fn selection(&self) -> String {
        let columns = self
            .columns
            .iter()
            .map(|Column { name, .. }| format!(", {name}, WRITETIME({name}), TTL({name})"));
        format!("p, c{}", columns.collect::<String>())
    }

    /// The value and timestamp that fill a row of a table with one column.
    pub fn plain_row(&self, chunk: u32, row: u32) -> (String, i64) {
        let number = i64::from(chunk) * i64::from(self.rows) + i64::from(row);
        (format!("value of the row with the number {number:010}"), FIRST + number)
    }

    /// The writes that fill a chunk of a table with many columns.
    pub fn fill(&self, chunk: u32, seed: u64) -> Vec<Write> {
        let mut random = Draw::from_seed(seed ^ u64::from(chunk) << 20);
        let mut writes = Vec::new();
        for row in 0..self.rows {
            let count = 1 + random.below(5);
            let mut values: Vec<(usize, Value)> = Vec::new();
            for _ in 0..count {
                let at = 2 + random.below(self.columns.len() - 2);
                if values.iter().all(|(column, _)| *column != at) {
                    values.push((at, value(self.columns[at].kind, &mut random)));
                }
            }
            writes.push(Write { at: 0, ttl: ttl(&mut random), act: Act::Insert(row, values) });
        }
        for _ in 0..random.below(5) {
            writes.push(self.draw(&mut random));
        }
        for (number, write) in writes.iter_mut().enumerate() {
            write.at = FIRST + i64::from(chunk) * 1000 + number as i64 * 10;
        }
        writes
    }

    /// A chunk as it is after the fill, which took from a second to a second.
    pub fn filled(&self, chunk: u32, (seed, span): (u64, Span)) -> Chunk {
        let mut state = Chunk::default();
        if self.columns.len() > 1 {
            self.fill(chunk, seed).iter().for_each(|write| write.apply(&mut state, span));
            return state;
        }
        for row in 0..self.rows {
            let (value, at) = self.plain_row(chunk, row);
            let cell = Cell { value: value.into_bytes(), at, expires: None };
            let cells = [((0, Vec::new()), cell)].into_iter().collect();
            state.rows.insert(row, Row { marker: Some(None), cells });
        }
        state
    }

    /// A drawn write, without a timestamp.
    pub fn draw(&self, random: &mut Draw) -> Write {
        let row = random.below(self.rows as usize) as u32;
        let kind_of = |number: usize| self.columns[number].kind;
        let of_rows = |random: &mut Draw| {
            let first = self.columns.iter().filter(|column| column.is_static).count();
            first + random.below(self.columns.len() - first)
        };
        let (act, may_expire) = match random.below(40) {
            0..=1 => (Act::DeleteRow(row), false),
            2 => (Act::DeleteRange(row, (row + 1 + random.below(5) as u32).min(self.rows)), false),
            3 if random.below(8) == 0 => (Act::DeleteChunk, false),
            4..=6 => {
                let column = of_rows(random);
                (Act::Update(Some(row), vec![(column, Change::Null)]), false)
            }
            7..=9 if self.columns.iter().any(|column| column.is_static) => {
                let column = random.below(2);
                (Act::Update(None, vec![(column, change(kind_of(column), random))]), true)
            }
            10..=17 => {
                let column = of_rows(random);
                (Act::Insert(row, vec![(column, value(kind_of(column), random))]), true)
            }
            _ => {
                let column = of_rows(random);
                (Act::Update(Some(row), vec![(column, change(kind_of(column), random))]), true)
            }
        };
        Write { at: 0, ttl: if may_expire { ttl(random) } else { None }, act }
    }
}

/// Expiries of some writes: in a few seconds, or long after the end.
fn ttl(random: &mut Draw) -> Option<i64> {
    match random.below(12) {
        0 => Some(5 + random.below(15) as i64),
        1 | 2 => Some(80_000 + random.below(9_000) as i64),
        _ => None,
    }
}

fn value(kind: Kind, random: &mut Draw) -> Value {
    let number = random.below(1000) as i32;
    match kind {
        Kind::Int => Value::Int(number),
        Kind::Text => Value::Text(format!("text {number}")),
        Kind::Map => Value::Map(vec![(format!("k{}", number % 3), number), ("x".into(), 1)]),
        Kind::Set => Value::Set(vec![number % 5, 7, 10 + number]),
        Kind::List => Value::List(vec!["first".into(), format!("word {number}")]),
        Kind::Place => {
            let street = (number % 3 > 0).then(|| format!("street {number}"));
            Value::Place(street, (number % 3 < 2).then_some(number))
        }
        Kind::Frozen => Value::Frozen(vec![1, number]),
    }
}

fn change(kind: Kind, random: &mut Draw) -> Change {
    let number = random.below(1000) as i32;
    let key = format!("k{}", number % 4);
    match (kind, random.below(3)) {
        (Kind::Map, 0) => Change::Put(key, number),
        (Kind::Map, 1) => Change::Take(key),
        (Kind::Set, 0) => Change::Include(number % 5),
        (Kind::Set, 1) => Change::Exclude(number % 5),
        (Kind::List, 0) => Change::Append(format!("after {number}")),
        (Kind::List, 1) => Change::Prepend(format!("before {number}")),
        (Kind::Place, 0) => Change::Street(format!("road {number}")),
        (Kind::Place, 1) => Change::Number((number % 2 == 0).then_some(number)),
        _ => Change::Set(value(kind, random)),
    }
}

/// The bytes of a place, both fields of it.
pub fn place_bytes(fields: [Option<&[u8]>; 2]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        bytes.extend(field.map_or(-1, |field| field.len() as i32).to_be_bytes());
        bytes.extend(field.unwrap_or_default());
    }
    bytes
}
