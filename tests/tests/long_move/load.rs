//! The clients: each owns some chunks, counters and rows of conditions, knows what they must hold, and repeats what was not answered.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use end_to_end::Cql;
use end_to_end::draw::Draw;
use scylla::value::CqlValue;

use crate::Sizes;
use crate::changes::{Act, Write};
use crate::side::now;
use crate::state::{Chunk, Span};
use crate::tables::TABLES;

/// How many clients there are.
pub const CLIENTS: u32 = 4;
/// Chunks of each table that a client changes.
const CHUNKS: u32 = 150;
/// How long the server may be away.
const PATIENCE: Duration = Duration::from_secs(120);

type Key = (i32, i32);
type Rows = Vec<Vec<Option<CqlValue>>>;

/// What clients know and share.
pub struct Shared {
    pub address: RwLock<String>,
    pub ends: AtomicBool,
    pub done: AtomicU64,
    pub sizes: Sizes,
    /// The seconds in which the tables were filled.
    pub filled: Span,
}

/// What must be there.
#[derive(Default)]
pub struct Known {
    /// Changed chunks by table and number.
    pub chunks: HashMap<(usize, u32), Chunk>,
    /// Changed counters; none for a deleted row.
    pub counters: HashMap<Key, Option<[i64; 2]>>,
    pub conditions: HashMap<Key, Option<i32>>,
    /// Requests without an answer, and those of them that were found to be done.
    pub unanswered: u64,
    pub were_done: u64,
    pub reads: u64,
    /// What a client read and should not have.
    pub wrong: Vec<String>,
}

/// The value of a counter after the fill.
pub fn filled_counter((p, c): Key) -> [i64; 2] {
    [i64::from(p % 1000 + 1), i64::from(c * 3 + 1)]
}

pub fn begin(shared: &Arc<Shared>) -> Vec<JoinHandle<Known>> {
    let client = |number| {
        let shared = Arc::clone(shared);
        thread::spawn(move || Client::new(number, shared).run())
    };
    (0..CLIENTS).map(client).collect()
}

struct Client {
    number: u32,
    shared: Arc<Shared>,
    random: Draw,
    cql: Option<Cql>,
    known: Known,
    last: i64,
}

impl Client {
    fn new(number: u32, shared: Arc<Shared>) -> Self {
        let random = Draw::from_seed(shared.sizes.seed.wrapping_mul(1000) + u64::from(number));
        Client { number, shared, random, cql: None, known: Known::default(), last: 0 }
    }

    fn run(mut self) -> Known {
        let pace = Duration::from_secs(1) / self.shared.sizes.rate;
        let mut next = Instant::now();
        while !self.shared.ends.load(Ordering::Acquire) {
            match self.random.below(20) {
                0..=3 => self.change(0),
                4..=6 => self.change(1),
                7..=11 => self.change(2),
                12..=13 => self.count(),
                14..=15 => self.condition(),
                _ => self.look(),
            }
            self.shared.done.fetch_add(1, Ordering::AcqRel);
            // The load of an application has a rate.
            next = (next + pace).max(Instant::now() - Duration::from_secs(1));
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        self.known
    }

    /// Asks once. Without an answer the connection is given up.
    fn ask(&mut self, text: &str) -> Result<Rows, String> {
        let began = Instant::now();
        while self.cql.is_none() {
            let address = self.shared.address.read().expect("the address").clone();
            match Cql::connect_as(&address, ("", "")) {
                Ok(cql) => self.cql = Some(cql),
                Err(error) => {
                    assert!(began.elapsed() < PATIENCE, "client {}: {error}", self.number);
                    thread::sleep(Duration::from_millis(50));
                }
            }
        }
        let cql = self.cql.as_ref().expect("a session");
        let is_read = text.starts_with("SELECT") || text.contains(" IF ");
        let answer = if is_read { cql.try_rows(text) } else { cql.try_run(text).map(|()| Vec::new()) };
        if let Err(error) = &answer {
            assert!(!error.contains("yntax") && !error.contains("nvalid"), "{text}: {error}");
            self.cql = None;
            self.known.unanswered += u64::from(!text.starts_with("SELECT"));
        }
        answer
    }

    /// Asks until there is an answer.
    fn insist(&mut self, text: &str) -> Rows {
        let began = Instant::now();
        loop {
            match self.ask(text) {
                Ok(rows) => return rows,
                Err(error) => assert!(began.elapsed() < PATIENCE, "{text}: {error}"),
            }
        }
    }

    fn own_chunk(&mut self, table: usize) -> Option<u32> {
        let owned = self.shared.sizes.chunks(table) / CLIENTS;
        let hot = owned.min(CHUNKS);
        if hot == 0 {
            return None;
        }
        let at = self.random.below(hot as usize) as u32;
        Some(at * (owned / hot) * CLIENTS + self.number)
    }

    fn chunk(&mut self, table: usize, chunk: u32) -> &mut Chunk {
        let fill = (self.shared.sizes.seed, self.shared.filled);
        self.known.chunks.entry((table, chunk)).or_insert_with(|| TABLES[table].filled(chunk, fill))
    }

    fn change(&mut self, number: usize) {
        let Some(chunk) = self.own_chunk(number) else { return };
        let table = &TABLES[number];
        let write = Write { at: self.timestamp(), ..table.draw(&mut self.random) };
        let text = write.text(table, chunk);
        let begin = now();
        if write.is_repeatable() {
            self.insist(&text);
        } else if self.ask(&text).is_err() && !self.was_done((number, chunk), &write, begin) {
            return;
        }
        write.apply(self.chunk(number, chunk), (begin, now()));
    }

    /// Whether a write of a list that was not answered was done.
    fn was_done(&mut self, (number, chunk): (usize, u32), write: &Write, begin: i64) -> bool {
        let (Act::Insert(row, _) | Act::Update(Some(row), _)) = &write.act else { return true };
        let table = &TABLES[number];
        let key = table.condition(chunk, Some((*row, *row + 1)));
        let text = format!("SELECT l, WRITETIME(l) FROM {} WHERE {key}", table.name);
        let found = timed_words(&self.insist(&text));
        let list = |state: &Chunk| -> Vec<(String, i64)> {
            let cells = state.rows.get(row).map(|row| &row.cells);
            let list = cells.into_iter().flatten().filter(|((column, _), cell)| {
                table.columns[*column].name == "l" && cell.expires.is_none_or(|(from, _)| from > now())
            });
            list.map(|(_, cell)| (String::from_utf8_lossy(&cell.value).into_owned(), cell.at)).collect()
        };
        let state = self.chunk(number, chunk).clone();
        let mut after = state.clone();
        write.apply(&mut after, (begin, now()));
        let (before, after) = (list(&state), list(&after));
        if found != before && found != after {
            self.wrong(format!("{text}: {found:?}, not {before:?} or {after:?}"));
        }
        self.known.were_done += u64::from(found == after);
        found == after
    }

    fn count(&mut self) {
        let owned = self.shared.sizes.counters.div_ceil(10) / CLIENTS;
        if owned == 0 {
            return;
        }
        let p = self.random.below(owned.min(CHUNKS) as usize) as u32 * CLIENTS + self.number;
        let key = (p as i32, self.random.below(10) as i32);
        let before = self.known.counters.get(&key).copied().unwrap_or_else(|| Some(filled_counter(key)));
        let Some([a, b]) = before else { return };
        let row = format!("p = {} AND c = {}", key.0, key.1);
        if self.random.below(200) == 0 {
            // Nobody counts in it again.
            self.insist(&format!("DELETE FROM long_move.counts WHERE {row}"));
            self.known.counters.insert(key, None);
            return;
        }
        let by = [self.random.below(1000) as i64 - 300, self.random.below(2) as i64];
        let adds = format!("UPDATE long_move.counts SET a = a + {}, b = b + {} WHERE {row}", by[0], by[1]);
        let mut now_is = [a + by[0], b + by[1]];
        if self.ask(&adds).is_err() {
            let rows = self.insist(&format!("SELECT a, b FROM long_move.counts WHERE {row}"));
            let found = rows.first().map(|row| [counter(&row[0]), counter(&row[1])]);
            match found {
                Some(found) if found == now_is => self.known.were_done += 1,
                Some(found) if found == [a, b] => now_is = found,
                found => self.wrong(format!("counts {row}: {found:?}, not {:?} or {now_is:?}", [a, b])),
            }
        }
        self.known.counters.insert(key, Some(now_is));
    }

    fn condition(&mut self) {
        let key = (self.number as i32, self.random.below(40) as i32);
        let row = format!("p = {} AND c = {}", key.0, key.1);
        let before = self.known.conditions.get(&key).copied().flatten();
        let number = self.random.below(1000) as i32;
        let guess = if self.random.below(4) == 0 { number } else { before.unwrap_or(number) };
        let table = "long_move.conditions";
        let (text, after) = match self.random.below(5) {
            0..=1 => (
                format!(
                    "INSERT INTO {table} (p, c, v) VALUES ({}, {}, {number}) IF NOT EXISTS",
                    key.0, key.1
                ),
                before.or(Some(number)),
            ),
            2..=3 => (
                format!("UPDATE {table} SET v = {number} WHERE {row} IF v = {guess}"),
                if before == Some(guess) { Some(number) } else { before },
            ),
            _ => (format!("DELETE FROM {table} WHERE {row} IF EXISTS"), None),
        };
        let is_applied = match text.as_bytes()[0] {
            b'I' => before.is_none(),
            b'U' => before == Some(guess),
            _ => before.is_some(),
        };
        let after = match self.ask(&text) {
            Ok(rows) => {
                let said = rows.first().and_then(|row| row[0].clone());
                if said != Some(CqlValue::Boolean(is_applied)) {
                    self.wrong(format!("{text}: {rows:?}, before it was {before:?}"));
                }
                after
            }
            Err(_) => {
                let rows = self.insist(&format!("SELECT v FROM {table} WHERE {row}"));
                let found = rows.first().and_then(|row| integer(&row[0]));
                if found != before && found != after {
                    self.wrong(format!("{table} {row}: {found:?}, not {before:?} or {after:?}"));
                }
                self.known.were_done += u64::from(found != before);
                found
            }
        };
        self.known.conditions.insert(key, after);
    }

    /// Reads a chunk of its own and compares the number of its rows.
    fn look(&mut self) {
        let number = self.random.below(TABLES.len());
        let Some(chunk) = self.own_chunk(number) else { return };
        let table = &TABLES[number];
        let wanted = self.chunk(number, chunk).answers((table, chunk), now());
        let text = format!("SELECT c FROM {} WHERE {}", table.name, table.whole_chunk(chunk));
        let found: Vec<Option<i32>> = self.insist(&text).iter().map(|row| integer(&row[0])).collect();
        let Some(wanted) = wanted else { return };
        let c = |bytes: &Option<Vec<u8>>| Some(i32::from_be_bytes(bytes.as_deref()?.try_into().ok()?));
        let wanted: Vec<Option<i32>> = wanted.iter().map(|row| c(&row.bytes[1])).collect();
        if found != wanted {
            self.wrong(format!("{text}: rows {found:?}, not {wanted:?}"));
        }
        self.known.reads += 1;
    }

    fn wrong(&mut self, what: String) {
        println!("WRONG: {what}");
        self.known.wrong.push(what);
    }

    /// Microseconds, later than before by ten: a collection is deleted a microsecond before it is set.
    fn timestamp(&mut self) -> i64 {
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_micros() as i64;
        self.last = now.max(self.last + 10);
        self.last
    }
}

pub fn integer(value: &Option<CqlValue>) -> Option<i32> {
    if let Some(CqlValue::Int(number)) = value { Some(*number) } else { None }
}

pub fn counter(value: &Option<CqlValue>) -> i64 {
    if let Some(CqlValue::Counter(number)) = value { number.0 } else { 0 }
}

/// The texts of a list in the first row, with their timestamps.
fn timed_words(rows: &Rows) -> Vec<(String, i64)> {
    let list = |at: usize| match rows.first().and_then(|row| row[at].clone()) {
        Some(CqlValue::List(parts)) => parts,
        _ => Vec::new(),
    };
    let pair = |(word, at)| match (word, at) {
        (CqlValue::Text(word), CqlValue::BigInt(at)) => (word, at),
        (word, at) => panic!("{word:?} at {at:?}"),
    };
    list(0).into_iter().zip(list(1)).map(pair).collect()
}
