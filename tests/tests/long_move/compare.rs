//! Compares both sides with each other and with what the clients know: every row, each cell with its timestamp and expiry.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use crate::Sizes;
use crate::load::{CLIENTS, Known, filled_counter};
use crate::side::{ReadRow, Side, answer, now, parts};
use crate::state::{Answer, Span};
use crate::tables::{Kind, TABLES, Table};

/// Rows that are held of each side.
const ROWS_OF_RANGE: u32 = 40_000;
/// Ranges that are compared at a time.
const AT_A_TIME: u32 = 2;
/// Seconds by which expiries may differ: a TTL is sent as what is left.
const SLACK_S: i64 = 6;
/// Differences that are printed of a table.
const PRINTED: usize = 20;

/// What was compared.
#[derive(Default)]
pub struct Tally {
    pub what: String,
    pub rows: u64,
    pub cells: u64,
    pub differing: u64,
    /// Lists whose elements are later at the target.
    pub later_lists: u64,
    pub seconds: f64,
    pub examples: Vec<String>,
}

impl Tally {
    pub fn new(what: &str) -> Self {
        Tally { what: what.to_owned(), ..Tally::default() }
    }

    pub fn differs(&mut self, what: String) {
        self.differing += 1;
        if self.examples.len() < PRINTED {
            println!("DIFFERS: {what}");
            self.examples.push(what);
        }
    }

    fn add(&mut self, other: Tally) {
        self.rows += other.rows;
        self.cells += other.cells;
        self.differing += other.differing;
        self.later_lists += other.later_lists;
        self.examples.extend(other.examples);
    }
}

/// The addresses of both sides, and what must be there.
pub struct Sides<'a> {
    pub source: &'a str,
    pub target: &'a str,
    pub known: &'a Known,
    pub sizes: Sizes,
    pub filled: Span,
}

impl Sides<'_> {
    /// Compares all rows of a table.
    pub fn table(&self, number: usize) -> Tally {
        let (table, began) = (&TABLES[number], Instant::now());
        let mut all = Tally::new(table.name);
        let chunks = self.sizes.chunks(number);
        let seen: Vec<AtomicBool> = (0..chunks).map(|_| AtomicBool::new(false)).collect();
        let ranges = chunks.saturating_mul(table.rows) / ROWS_OF_RANGE + 1;
        let next = AtomicU32::new(0);
        let sum = Mutex::new(&mut all);
        thread::scope(|scope| {
            for _ in 0..AT_A_TIME {
                scope.spawn(|| {
                    let (source, target) = (Side::connect(self.source), Side::connect(self.target));
                    loop {
                        let range = next.fetch_add(1, Ordering::Relaxed);
                        if range >= ranges {
                            return;
                        }
                        let bounds = bounds(table, chunks, (range, ranges));
                        let text = format!("SELECT {} FROM {} WHERE {bounds}", table.selection(), table.name);
                        let page = if table.columns.len() > 1 { 1000 } else { 5000 };
                        let (here, there) = (source.read(&text, page), target.read(&text, page));
                        let tally =
                            self.range((number, &seen), by_chunk(table, here), by_chunk(table, there));
                        sum.lock().expect("the tally").add(tally);
                        if range % 50 == 49 {
                            println!("  {} {range} of {ranges} ranges compared", table.name);
                        }
                    }
                });
            }
        });
        for chunk in (0..chunks).filter(|chunk| !seen[*chunk as usize].load(Ordering::Relaxed)) {
            if self.wanted((number, chunk)).is_none_or(|rows| !rows.is_empty()) {
                all.differs(format!("{} chunk {chunk} is on no side", table.name));
            }
        }
        all.seconds = began.elapsed().as_secs_f64();
        all
    }

    fn wanted(&self, (number, chunk): (usize, u32)) -> Option<Vec<Answer>> {
        let table = &TABLES[number];
        match self.known.chunks.get(&(number, chunk)) {
            Some(state) => state.answers((table, chunk), now()),
            None => table.filled(chunk, (self.sizes.seed, self.filled)).answers((table, chunk), now()),
        }
    }

    fn range(&self, (number, seen): (usize, &[AtomicBool]), here: Chunks, mut there: Chunks) -> Tally {
        let table = &TABLES[number];
        let mut tally = Tally::default();
        for (chunk, here) in here {
            match seen.get(chunk as usize) {
                Some(seen) => seen.store(true, Ordering::Relaxed),
                None => tally.differs(format!("{} chunk {chunk} was never written", table.name)),
            }
            let other = there.remove(&chunk).unwrap_or_default();
            compare((table, chunk), (&here, &other), &mut tally);
            match self.wanted((number, chunk)) {
                Some(wanted) => {
                    let mut known = Tally::default();
                    compare((table, chunk), (&wanted, &here), &mut known);
                    for example in known.examples {
                        tally.differs(format!("from what was acknowledged: {example}"));
                    }
                }
                None => tally.differs(format!("{} chunk {chunk}: an expiry is in doubt", table.name)),
            }
        }
        for chunk in there.into_keys() {
            tally.differs(format!("{} chunk {chunk} is only at the target", table.name));
        }
        tally
    }

    /// Compares all counters.
    pub fn counters(&self) -> Tally {
        let began = Instant::now();
        let mut tally = Tally::new("long_move.counts");
        let [here, there] =
            [self.source, self.target].map(|side| four(side, "SELECT p, c, a, b FROM long_move.counts"));
        let keys = (0..self.sizes.counters as i32).map(|at| (at / 10, at % 10));
        let keys: BTreeSet<(i32, i32)> =
            keys.chain(here.keys().copied()).chain(there.keys().copied()).collect();
        for key in keys {
            let known = self.known.counters.get(&key).copied();
            let wanted = known.unwrap_or_else(|| Some(filled_counter(key)));
            let wanted = wanted.map(|[a, b]| (Some(a), Some(b)));
            tally.rows += 1;
            tally.cells += 2;
            let found = (here.get(&key).copied(), there.get(&key).copied());
            if found != (wanted, wanted) {
                tally.differs(format!("counts {key:?}: {found:?}, acknowledged are {wanted:?}"));
            }
        }
        tally.seconds = began.elapsed().as_secs_f64();
        tally
    }

    /// Compares the rows that were written under conditions.
    pub fn conditions(&self) -> Tally {
        let began = Instant::now();
        let mut tally = Tally::new("long_move.conditions");
        let text = "SELECT p, c, v, WRITETIME(v) FROM long_move.conditions";
        let [here, there] = [self.source, self.target].map(|side| four(side, text));
        for key in (0..CLIENTS as i32).flat_map(|p| (0..40).map(move |c| (p, c))) {
            let wanted = self.known.conditions.get(&key).copied().flatten();
            let (one, other) = (here.get(&key), there.get(&key));
            tally.rows += 1;
            tally.cells += 1;
            if one != other || one.and_then(|(value, _)| *value) != wanted.map(i64::from) {
                tally.differs(format!("conditions {key:?}: {one:?}, {other:?}, acknowledged is {wanted:?}"));
            }
        }
        tally.seconds = began.elapsed().as_secs_f64();
        tally
    }

    /// Reads what the clients changed, from the source's address alone.
    pub fn changed_chunks(&self) -> Tally {
        let began = Instant::now();
        let mut tally = Tally::new("changed rows, by the gateway");
        let side = Side::connect(self.source);
        for (number, chunk) in self.known.chunks.keys().copied() {
            let table = &TABLES[number];
            let text = format!(
                "SELECT {} FROM {} WHERE {}",
                table.selection(),
                table.name,
                table.whole_chunk(chunk)
            );
            let found: Vec<Answer> = side.read(&text, 1000).map(|row| answer(table, row)).collect();
            match self.wanted((number, chunk)) {
                Some(wanted) => compare((table, chunk), (&wanted, &found), &mut tally),
                None => tally.differs(format!("{} chunk {chunk}: an expiry is in doubt", table.name)),
            }
        }
        tally.seconds = began.elapsed().as_secs_f64();
        tally
    }
}

/// Two columns of numbers by key.
fn four(side: &str, text: &str) -> HashMap<(i32, i32), (Option<i64>, Option<i64>)> {
    let number = |bytes: &Option<Vec<u8>>| -> Option<i64> {
        let bytes = bytes.as_deref()?;
        match bytes.len() {
            4 => Some(i64::from(i32::from_be_bytes(bytes.try_into().ok()?))),
            _ => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
        }
    };
    let row = |ReadRow { cells, .. }: ReadRow| {
        let key = |at: usize| number(&cells[at]).expect("a key") as i32;
        ((key(0), key(1)), (number(&cells[2]), number(&cells[3])))
    };
    Side::connect(side).read(text, 5000).map(row).collect()
}

type Chunks = HashMap<u32, Vec<Answer>>;

fn by_chunk(table: &Table, rows: impl Iterator<Item = ReadRow>) -> Chunks {
    let mut all = Chunks::new();
    for row in rows {
        let answer = answer(table, row);
        let number = |at: usize| {
            let bytes = answer.bytes[at].as_deref().unwrap_or_default();
            bytes.try_into().map_or(0, u32::from_be_bytes)
        };
        let chunk = if table.is_wide { number(1) / table.rows } else { number(0) };
        all.entry(chunk).or_default().push(answer);
    }
    all
}

/// The condition for a range of tokens, or of rows of the one partition.
fn bounds(table: &Table, chunks: u32, (range, ranges): (u32, u32)) -> String {
    let part = |of: u64| (u128::from(of) * u128::from(range) / u128::from(ranges)) as u64;
    let next = |of: u64| (u128::from(of) * u128::from(range + 1) / u128::from(ranges)) as u64;
    if table.is_wide {
        let c = |chunk: u64| chunk * u64::from(table.rows);
        return format!("p = 0 AND c >= {} AND c < {}", c(part(chunks.into())), c(next(chunks.into())));
    }
    let token = |of: u64| (of ^ 1 << 63) as i64;
    format!("token(p) > {} AND token(p) <= {}", token(part(u64::MAX)), token(next(u64::MAX)))
}

fn compare((table, chunk): (&Table, u32), (here, there): (&[Answer], &[Answer]), tally: &mut Tally) {
    tally.rows += here.len() as u64;
    if here.len() != there.len() {
        let keys = |rows: &[Answer]| rows.iter().map(|row| row.bytes[1].clone()).collect::<Vec<_>>();
        return tally.differs(format!(
            "{} chunk {chunk}: rows {:?} and {:?}",
            table.name,
            keys(here),
            keys(there)
        ));
    }
    for (one, other) in here.iter().zip(there) {
        if one.bytes[..2] != other.bytes[..2] {
            let (one, other) = (&one.bytes[..2], &other.bytes[..2]);
            tally.differs(format!("{} chunk {chunk}: row {one:?} and {other:?}", table.name));
            continue;
        }
        for (number, column) in table.columns.iter().enumerate() {
            let at = 2 + 2 * number;
            tally.cells += one.expires[number].len() as u64;
            let same_times = one.bytes[at + 1] == other.bytes[at + 1];
            let is_later =
                !same_times && column.kind == Kind::List && later(&one.bytes[at + 1], &other.bytes[at + 1]);
            tally.later_lists += u64::from(is_later);
            let is_same = one.bytes[at] == other.bytes[at]
                && (same_times || is_later)
                && same_expiries(&one.expires[number], &other.expires[number]);
            if !is_same {
                let words = |row: &Answer| {
                    let text = row.bytes[at].as_deref().map(String::from_utf8_lossy);
                    format!("{text:?} at {:?} expires {:?}", row.bytes[at + 1], row.expires[number])
                };
                let key = &one.bytes[1];
                let text = format!("{} and {}", words(one), words(other));
                tally.differs(format!("{} chunk {chunk} row {key:?} {}: {text}", table.name, column.name));
            }
        }
    }
}

fn same_expiries(here: &[Option<Span>], there: &[Option<Span>]) -> bool {
    let at = |side: &[Option<Span>], number: usize| side.get(number).copied().flatten();
    (0..here.len().max(there.len())).all(|number| match (at(here, number), at(there, number)) {
        (None, None) => true,
        (Some(one), Some(other)) => one.0 <= other.1 + SLACK_S && other.0 <= one.1 + SLACK_S,
        _ => false,
    })
}

/// Whether the times of a list's elements are later there: a list that was sent again is as late as its newest element, which may have
/// expired since.
fn later(here: &Option<Vec<u8>>, there: &Option<Vec<u8>>) -> bool {
    let (Some(here), Some(there)) = (here, there) else { return false };
    let times = |bytes: &[u8]| -> Vec<i64> {
        let time = |part: Option<Vec<u8>>| part?.try_into().ok().map(i64::from_be_bytes);
        parts(bytes).into_iter().filter_map(time).collect()
    };
    let (here, there) = (times(here), times(there));
    here.len() == there.len()
        && here.iter().zip(&there).all(|(one, other)| one <= other && *other <= now() * 1_000_000)
}
