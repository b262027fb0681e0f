//! Sets the machine's clock wrong and right again while a database works on it.
//!
//! The clock walks forward beyond what files can hold, back to before 1970, and right again, beside writes, TTLs,
//! deletions, lists, changes of the schema, flushes, compactions, kills, power cuts and restarts. After each step these
//! must hold:
//! 1. The timestamps of acknowledged writes increase. None is further ahead of the clock than a write that was made
//!    while the clock was ahead.
//! 2. A row exists until its TTL has passed by the clock.
//! 3. A right clock refuses no write.
//! 4. `now()` returns the clock's time.
//!
//! More walks, or another seed: `CLOCK_WALKS=1000 CLOCK_SEED=7 CLOCK_KILLS=500 cargo test -p helenus-cql --test
//! clocks`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[path = "support/collected.rs"]
mod collected;

use collected::Collected;
use helenus_cql::backend::{Backend, Identity, Outcome, Request};
use helenus_cql::{CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions, TIME_OF_DAY_MAX_S};
use helenus_host::sim::{Machine, Survives};
use std::collections::BTreeMap;
use std::sync::Arc;

const SECOND_US: i64 = 1_000_000;
const HOUR_US: i64 = 3600 * SECOND_US;
const YEAR_US: i64 = 365 * 24 * HOUR_US;
const LATEST_US: i64 = TIME_OF_DAY_MAX_S * SECOND_US;
/// Timestamps that a step takes besides its own, microseconds.
const TAKEN_US: i64 = 50;
/// Those that a change of the schema takes.
const SCHEMA_US: i64 = 1000;
const KEYS: u64 = 6;
const STEPS: usize = 120;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn range(&mut self, from: i64, to: i64) -> i64 {
        from + self.below((to - from) as u64) as i64
    }
}

#[derive(Clone, Default)]
struct Row {
    value: i64,
    /// By the clock, seconds.
    expires_s: Option<i64>,
    list: Vec<i32>,
}

struct Walk {
    seed: u64,
    random: Random,
    machine: Machine,
    database: Arc<Database>,
    backend: Arc<LocalBackend>,
    /// How far the clock is from where it should be.
    wrong_us: i64,
    right_us: i64,
    last_us: i64,
    /// Timestamps that may have been taken since.
    taken_us: i64,
    /// The latest that the clock has said to a write since the clocks were reset.
    wrote_us: i64,
    /// The latest that the clock has said while it was right to the hour: what is over by then may be gone for good.
    over_s: i64,
    rows: BTreeMap<u64, Row>,
    columns: usize,
    told: Vec<String>,
}

impl Walk {
    fn new(seed: u64) -> Walk {
        let machine = Machine::new(seed);
        let (database, backend) = open(&machine);
        let right_us = machine.host().clock.wall_us();
        let mut walk = Walk {
            seed,
            random: Random(seed),
            machine,
            database,
            backend,
            wrong_us: 0,
            right_us,
            last_us: 0,
            taken_us: 0,
            wrote_us: 0,
            over_s: 0,
            rows: BTreeMap::new(),
            columns: 0,
            told: Vec::new(),
        };
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        walk.run(&format!("CREATE KEYSPACE k WITH replication = {replication}")).unwrap();
        walk.run("CREATE TABLE k.t (k bigint PRIMARY KEY, v bigint, l list<int>)").unwrap();
        walk.run("CREATE TABLE k.last (k bigint PRIMARY KEY, v bigint)").unwrap();
        walk
    }

    fn wall_us(&self) -> i64 {
        self.right_us + self.wrong_us
    }

    fn now_s(&self) -> i64 {
        self.wall_us().div_euclid(SECOND_US).clamp(0, TIME_OF_DAY_MAX_S)
    }

    fn fail(&self, what: &str) -> ! {
        let told = &self.told[self.told.len().saturating_sub(40)..];
        panic!("CLOCK_SEED={}: {what}\n{}", self.seed, told.join("\n"));
    }

    fn query(&self, text: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>, CqlError> {
        let mut out = Collected::default();
        let identity = Identity::default();
        match self.backend.query(text, &Request::plain(&identity, &[]), &mut out)?.outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => ticket.wait().unwrap(),
            _ => {}
        }
        Ok(out.into_rows())
    }

    fn run(&mut self, text: &str) -> Result<(), CqlError> {
        self.told.push(format!("{} us: {text}", self.wall_us()));
        let changes_schema = text.starts_with("CREATE") || text.starts_with("ALTER");
        if self.wall_us() <= LATEST_US {
            self.wrote_us = self.wrote_us.max(self.wall_us());
        }
        self.taken_us += if changes_schema { SCHEMA_US } else { TAKEN_US };
        self.query(text).map(|_| ())
    }

    /// Whether a write was taken; it has to be when the clock allows it.
    fn written(&mut self, text: &str, latest_us: i64) -> bool {
        let written = self.run(text);
        match (&written, self.wall_us() <= latest_us) {
            (Err(error), true) => self.fail(&format!("{text}: refused: {error}")),
            (Ok(()), false) => self.fail(&format!("{text}: taken, though the clock says too much")),
            _ => {}
        }
        written.is_ok()
    }

    fn number(&self, text: &str) -> Option<i64> {
        let rows = self.query(text).unwrap_or_else(|error| self.fail(&format!("{text}: {error}")));
        let value = rows.first()?.first()?.clone()?;
        Some(i64::from_be_bytes(value[..].try_into().unwrap()))
    }

    fn write(&mut self) {
        let key = self.random.below(KEYS);
        let value = self.random.range(0, 1 << 40);
        match self.random.below(8) {
            0 | 1 => {
                if self.written(&format!("DELETE FROM k.t WHERE k = {key}"), LATEST_US) {
                    self.rows.remove(&key);
                }
            }
            2 => {
                let element = value as i32 & 0xFFFF;
                if self.written(&format!("UPDATE k.t SET l = l + [{element}] WHERE k = {key}"), LATEST_US) {
                    self.rows.entry(key).or_default().list.push(element);
                }
            }
            3..6 => {
                let ttl_s = self.random.range(1, 5000);
                let text = format!("INSERT INTO k.t (k, v, l) VALUES ({key}, {value}, []) USING TTL {ttl_s}");
                let latest_us = LATEST_US + SECOND_US - ttl_s * SECOND_US - 1;
                if self.written(&text, latest_us.min(LATEST_US)) {
                    let expires_s = Some(self.now_s() + ttl_s);
                    self.rows.insert(key, Row { value, expires_s, list: Vec::new() });
                }
            }
            _ => {
                let text = format!("INSERT INTO k.t (k, v, l) VALUES ({key}, {value}, [])");
                if self.written(&text, LATEST_US) {
                    self.rows.insert(key, Row { value, expires_s: None, list: Vec::new() });
                }
            }
        }
        self.check_timestamp();
    }

    /// Writes a row whose timestamp is seen, and judges that.
    fn check_timestamp(&mut self) {
        if !self.written("INSERT INTO k.last (k, v) VALUES (0, 0)", LATEST_US) {
            return;
        }
        let Some(timestamp_us) = self.number("SELECT writetime(v) FROM k.last WHERE k = 0") else {
            self.fail("what was just written is not there")
        };
        let least_us = self.last_us.max(self.wrote_us);
        if timestamp_us <= self.last_us {
            self.fail(&format!("{timestamp_us} does not come after {}", self.last_us));
        }
        if timestamp_us > least_us + self.taken_us {
            self.fail(&format!("{timestamp_us} runs ahead of {least_us}"));
        }
        (self.last_us, self.taken_us) = (timestamp_us, 0);
    }

    fn check_rows(&mut self) {
        let now_s = self.now_s();
        if self.wrong_us <= 2 * HOUR_US {
            self.over_s = self.over_s.max(now_s);
        }
        for key in 0..KEYS {
            let row = self.rows.get(&key).cloned().unwrap_or_default();
            // A TTL ends within a second of its end.
            if row.expires_s.is_some_and(|expires_s| (expires_s - now_s).abs() <= 1) {
                continue;
            }
            let is_live = row.expires_s.is_none_or(|expires_s| now_s < expires_s);
            let value = (is_live && self.rows.contains_key(&key) && row.value != 0).then_some(row.value);
            let found = self.number(&format!("SELECT v FROM k.t WHERE k = {key}"));
            let may_be_gone = row.expires_s.is_some_and(|expires_s| expires_s <= self.over_s + 1);
            if found != value && !(may_be_gone && found.is_none()) {
                self.fail(&format!(
                    "{key} at {now_s} s: {found:?} instead of {value:?}, {:?}",
                    row.expires_s
                ));
            }
            let text = format!("SELECT l FROM k.t WHERE k = {key}");
            let rows = self.query(&text).unwrap_or_else(|error| self.fail(&format!("{text}: {error}")));
            let list = rows.first().and_then(|row| row[0].as_deref()).map(elements).unwrap_or_default();
            if list != row.list {
                self.fail(&format!("list of {key}: {list:?} instead of {:?}", row.list));
            }
        }
        let said = self.number("SELECT tounixtimestamp(now()) FROM system.local").unwrap();
        if (said - self.wall_us().div_euclid(1000)).abs() > 1001 {
            self.fail(&format!("now() is {said} ms"));
        }
    }

    fn set_clock(&mut self, wall_us: i64) {
        self.wrong_us = wall_us - self.right_us;
        self.machine.set_wall_us(wall_us);
        self.told.push(format!("the clock says {wall_us} us, wrong by {}", self.wrong_us));
    }

    fn jump(&mut self) {
        let right_us = self.right_us;
        let minutes_us = self.random.range(0, 50) * 60 * SECOND_US;
        let wall_us = match self.random.below(14) {
            0 => LATEST_US + 1 + self.random.range(0, 100 * YEAR_US),
            1 => 9_300_000_000 * SECOND_US + minutes_us, // 2264
            2 => LATEST_US - minutes_us,
            3 => right_us + self.random.range(2, 70) * YEAR_US,
            4 => right_us + 30 * 24 * HOUR_US,
            5 => 0,
            6 => -self.random.range(0, 100 * YEAR_US),
            7 => right_us - self.random.range(0, 40) * YEAR_US,
            8 => self.wall_us() - self.random.range(0, 3 * SECOND_US),
            9 => self.wall_us() + self.random.range(0, 2 * HOUR_US),
            _ => right_us,
        };
        self.set_clock(wall_us);
    }

    fn advance(&mut self) {
        let passed_us = self.random.range(0, 100 * SECOND_US);
        self.machine.advance(passed_us as u64 * 1000);
        self.right_us += passed_us;
        self.told.push(format!("{passed_us} us pass"));
    }

    /// Whether a start has no way to know that the clock is ahead: less than a year has passed by it since the last write, or
    /// the last write was by a clock that was ahead, too.
    fn would_believe(&self) -> bool {
        let was_ahead = self.last_us > self.right_us + HOUR_US;
        self.wrong_us > HOUR_US && (was_ahead || self.wall_us() - self.last_us <= 366 * 24 * HOUR_US)
    }

    fn restart(&mut self) {
        let machine = match self.random.below(3) {
            0 => {
                self.told.push("stopped".to_owned());
                self.database.close().unwrap();
                self.machine.crash_image(Survives::EverythingWritten)
            }
            1 => {
                self.told.push("killed".to_owned());
                self.machine.crash_image(Survives::EverythingWritten)
            }
            _ => {
                self.told.push("cut".to_owned());
                self.machine.crash()
            }
        };
        self.machine.end_tasks();
        self.machine = machine;
        (self.database, self.backend) = open(&self.machine);
    }

    fn change_schema(&mut self) {
        let column = self.columns;
        if self.written(&format!("ALTER TABLE k.t ADD c{column} int"), LATEST_US) {
            self.columns += 1;
        }
        for column in 0..self.columns {
            let text = format!("SELECT c{column} FROM k.t WHERE k = 0");
            if let Err(error) = self.query(&text) {
                self.fail(&format!("{text}: {error}"));
            }
        }
    }

    /// The way back: what was written later goes first, for it would hide what comes.
    fn reset(&mut self) {
        self.told.push("reset".to_owned());
        let reset = self.database.clock().reset();
        if reset.is_ok() != (self.wall_us() <= LATEST_US) {
            self.fail(&format!("the reset: {reset:?}"));
        }
        if reset.is_ok() {
            self.run("TRUNCATE k.t").unwrap();
            self.run("TRUNCATE k.last").unwrap();
            self.rows.clear();
            self.last_us = self.wall_us().max(0);
            self.wrote_us = self.last_us;
        }
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..3 => self.jump(),
            3 => self.set_clock(self.right_us),
            4..6 => self.advance(),
            6 if !self.would_believe() => self.restart(),
            7 => drop(self.database.flush_all().unwrap()),
            8 => {
                self.machine.run_until_idle();
            }
            9 => self.change_schema(),
            10 if self.random.below(4) == 0 => self.reset(),
            _ => self.write(),
        }
        self.check_rows();
    }
}

fn open(machine: &Machine) -> (Arc<Database>, Arc<LocalBackend>) {
    let mut options = DatabaseOptions::new("/db");
    // Whatever is over may go at once.
    options.compaction.purge.grace_s = 0;
    let (database, _) = Database::open(machine.host(), options).unwrap();
    let backend = LocalBackend::new(database.clone(), LocalOptions::default());
    (database, backend)
}

fn elements(list: &[u8]) -> Vec<i32> {
    let element = |chunk: &[u8]| i32::from_be_bytes(chunk[4..8].try_into().unwrap());
    list[4..].chunks(8).map(element).collect()
}

fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn timestamps_increase_and_ttls_end_by_the_clock_wherever_it_walks() {
    let (walks, seed) = (number_from("CLOCK_WALKS", 25), number_from("CLOCK_SEED", 1));
    for seed in seed..seed + walks {
        let mut walk = Walk::new(seed);
        for _ in 0..STEPS {
            walk.step();
        }
        walk.set_clock(walk.right_us);
        for _ in 0..10 {
            walk.write();
            walk.check_rows();
        }
        walk.machine.end_tasks();
    }
}

#[test]
fn quick_kills_do_not_put_the_clock_ahead() {
    let mut walk = Walk::new(3);
    for _ in 0..number_from("CLOCK_KILLS", 50) {
        walk.machine.advance(1_000_000);
        walk.right_us += 1000;
        walk.check_timestamp();
        let machine = walk.machine.crash_image(Survives::EverythingWritten);
        walk.machine.end_tasks();
        walk.machine = machine;
        (walk.database, walk.backend) = open(&walk.machine);
    }
    let ahead_us = walk.last_us - walk.wall_us();
    assert!(ahead_us.abs() <= 4 * SCHEMA_US, "{ahead_us} us ahead");
    walk.machine.end_tasks();
}
