//! The way back from a cut: what clients write while a rollback compares both sides is here afterwards, however they write it, and a
//! target that is lost is done without.
//!
//! The target is a Helenus, which answers as a node of Cassandra does; `cluster` has real nodes.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::draw::{Draw, rounds};
use end_to_end::raw::{BATCH, EXECUTE, QUERY, RESULT, Raw, query};
use end_to_end::{Cql, Server, refused, tool};
use tempfile::TempDir;

#[path = "cluster/moving.rs"]
mod moving;

use moving::{until_done, wait_for_tail};

const PATIENCE: Duration = Duration::from_secs(120);
const CLIENTS: i32 = 3;
/// Partitions and rows of a client, few enough that they are written again and again.
const PARTITIONS: usize = 40;
const ROWS: usize = 5;

/// A server whose move to another has been cut over.
struct Moved {
    source: Server,
    target: Server,
    data: String,
}

impl Moved {
    fn begin() -> Moved {
        let folder = TempDir::with_prefix("helenus-back-").expect("a temporary directory");
        // A server that waits for its target has no socket yet that could tell a port.
        let listen = free_address();
        let source = Server::start_in(folder, &["--listen", &listen]);
        let target = Server::start();
        let data = source.data().to_str().expect("UTF-8").to_owned();
        let cql = Cql::connect(source.address());
        for text in [
            "CREATE KEYSPACE back WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE back.rows (k int, c int, v text, l list<int>, PRIMARY KEY (k, c))",
            "CREATE TABLE back.pairs (a int, b text, v text, PRIMARY KEY ((a, b)))",
            "CREATE TABLE back.counts (k int PRIMARY KEY, n counter)",
        ] {
            cql.run(text);
        }
        for k in 0..1_000 {
            cql.run(&format!("INSERT INTO back.rows (k, c, v) VALUES ({}, 0, 'before')", 10_000 + k));
        }
        let moved = Moved { source, target, data };
        moved.run(&["start", "--to", moved.target.address()]);
        moved.cut();
        moved
    }

    fn with_data<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [&["move"], args, &["--data", &self.data]].concat()
    }

    fn run(&self, args: &[&str]) -> String {
        tool(&self.with_data(args))
    }

    fn cut(&self) {
        wait_for_tail(&self.data);
        until_done(&self.with_data(&["cutover", "--pause", "5s"]));
    }
}

#[test]
fn every_kind_of_write_during_a_rollback_is_here_afterwards() {
    let moved = Moved::begin();
    let mut draw = Draw::new("kinds of writes", 38);
    let mut known = BTreeMap::new();
    for round in 0..rounds(2) {
        // After a write whose partition is not known all rows are read, which hides what the others miss.
        let kinds: Vec<Kind> = match round % 3 {
            0 => Kind::ONE_PARTITION.to_vec(),
            1 => Kind::ALL.to_vec(),
            _ => vec![*draw.one(&Kind::ALL)],
        };
        let seed = draw.below(1 << 30) as u64;
        let loads: Vec<Load> =
            (0..CLIENTS).map(|client| Load::begin(&moved, client, (&kinds, seed))).collect();
        loads.iter().for_each(|load| load.wait(50));
        let said = until_done(&moved.with_data(&["rollback", "--pause", "20s"]));
        assert!(said.contains("served here again") && !said.contains("differ still"), "{said}");
        loads.iter().for_each(|load| load.wait(20));
        let expected: Vec<Expected> = loads.into_iter().map(Load::end).collect();
        let here = Cql::connect(moved.source.address());
        for one in expected {
            one.check(&here, &mut known, &format!("round {round}, {kinds:?}, {said}"));
        }
        moved.cut();
        // The way there again has lost nothing either.
        let there = Cql::connect(moved.target.address());
        let rows = |cql: &Cql| {
            let mut rows: Vec<String> =
                cql.rows("SELECT k, c, v FROM back.rows").iter().map(|row| format!("{row:?}")).collect();
            rows.sort();
            rows
        };
        assert_eq!(rows(&there), rows(&here));
    }
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").to_string()
}

/// How a client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Prepared,
    PreparedWithNames,
    PreparedWithKey,
    SeveralKeys,
    KeyBesideLiteral,
    TwoColumns,
    Text,
    TextWithValues,
    Batch,
    BatchInOneText,
    Condition,
    WholePartition,
    Counter,
}

impl Kind {
    const ALL: [Kind; 13] = [
        Kind::Prepared,
        Kind::PreparedWithNames,
        Kind::PreparedWithKey,
        Kind::SeveralKeys,
        Kind::KeyBesideLiteral,
        Kind::TwoColumns,
        Kind::Text,
        Kind::TextWithValues,
        Kind::Batch,
        Kind::BatchInOneText,
        Kind::Condition,
        Kind::WholePartition,
        Kind::Counter,
    ];

    /// Those whose partition the server knows.
    const ONE_PARTITION: [Kind; 5] =
        [Kind::Prepared, Kind::TwoColumns, Kind::Batch, Kind::WholePartition, Kind::Counter];
}

/// A row of `rows`, or of `pairs` with -1 in place of `c`.
type Key = (i32, i32);

/// What a client was told to be written.
struct Expected {
    client: i32,
    rows: BTreeMap<Key, Option<String>>,
    counted: i64,
    /// Increments without an answer.
    unknown: i64,
}

impl Expected {
    /// `counts`: what clients have counted in the rounds before.
    fn check(&self, cql: &Cql, counts: &mut BTreeMap<i32, i64>, context: &str) {
        for ((k, c), expected) in &self.rows {
            let text = match c {
                -1 => format!("SELECT v FROM back.pairs WHERE a = {k} AND b = 'b{k}'"),
                c => format!("SELECT v FROM back.rows WHERE k = {k} AND c = {c}"),
            };
            let found = cql.rows(&text);
            let found = found.first().and_then(|row| row[0].as_ref()?.as_text().cloned());
            assert_eq!(&found, expected, "{text}: {context}");
        }
        let found = cql.rows(&format!("SELECT n FROM back.counts WHERE k = {}", self.client));
        let found = found.first().and_then(|row| row[0].as_ref()?.as_counter()).map_or(0, |count| count.0);
        let before = counts.get(&self.client).copied().unwrap_or(0);
        let range = before + self.counted..=before + self.counted + self.unknown;
        assert!(range.contains(&found), "{found} counted, acknowledged are {range:?}: {context}");
        counts.insert(self.client, found);
    }
}

/// A client that writes without a pause. After a lost connection it makes the same write again, but increments.
struct Load {
    thread: thread::JoinHandle<Expected>,
    ends: Arc<AtomicBool>,
    done: Arc<AtomicU32>,
}

impl Load {
    fn begin(moved: &Moved, client: i32, (kinds, seed): (&[Kind], u64)) -> Load {
        let (ends, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
        let (address, kinds) = (moved.source.address().to_owned(), kinds.to_vec());
        let (stop, count) = (Arc::clone(&ends), Arc::clone(&done));
        let thread = thread::spawn(move || {
            let mut draw = Draw::new("a client", seed + client as u64);
            let mut expected = Expected { client, rows: BTreeMap::new(), counted: 0, unknown: 0 };
            let began = Instant::now();
            let mut session = None;
            for number in 0.. {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                let write = Write::draw(&mut draw, client, (*draw_one(&kinds, number), number));
                loop {
                    assert!(began.elapsed() < PATIENCE, "the load goes on for too long");
                    let open = match session.take() {
                        Some(open) => Some(open),
                        None => Session::open(&address),
                    };
                    let Some(mut open) = open else { continue };
                    if write.run(&mut open) {
                        session = Some(open);
                        break;
                    }
                    if write.kind == Kind::Counter {
                        expected.unknown += 1;
                        break;
                    }
                }
                if write.kind == Kind::Counter {
                    expected.counted += i64::from(session.is_some());
                }
                write.note(&mut expected);
                count.fetch_add(1, Ordering::AcqRel);
            }
            expected
        });
        Load { thread, ends, done }
    }

    /// Waits for this number of further writes.
    fn wait(&self, count: u32) {
        let (from, began) = (self.done.load(Ordering::Acquire), Instant::now());
        while self.done.load(Ordering::Acquire) < from + count {
            assert!(began.elapsed() < PATIENCE && !self.thread.is_finished(), "the load does not go on");
            thread::yield_now();
        }
    }

    fn end(self) -> Expected {
        self.ends.store(true, Ordering::Release);
        self.thread.join().expect("the load")
    }
}

fn draw_one(kinds: &[Kind], number: usize) -> &Kind {
    &kinds[number % kinds.len()]
}

/// A connection with prepared statements.
struct Session {
    raw: Raw,
    insert: Vec<u8>,
    delete_several: Vec<u8>,
    of_pairs: Vec<u8>,
    delete_partition: Vec<u8>,
    count: Vec<u8>,
}

impl Session {
    /// `None` if the server is closing.
    fn open(address: &str) -> Option<Session> {
        let mut raw = Raw::try_ready(address, 4)?;
        let mut prepare = |text: &str| raw.try_prepare(text).map(|(id, _)| id);
        let insert = prepare("INSERT INTO back.rows (k, c, v) VALUES (?, ?, ?)")?;
        let delete_several = prepare("DELETE FROM back.rows WHERE k IN (?, ?) AND c = ?")?;
        let of_pairs = prepare("UPDATE back.pairs SET v = ? WHERE b = ? AND a = ?")?;
        let delete_partition = prepare("DELETE FROM back.rows WHERE k = ?")?;
        let count = prepare("UPDATE back.counts SET n = n + 1 WHERE k = ?")?;
        Some(Session { raw, insert, delete_several, of_pairs, delete_partition, count })
    }
}

/// A write that can be made again.
struct Write {
    kind: Kind,
    client: i32,
    k: i32,
    other: i32,
    c: i32,
    v: String,
}

impl Write {
    fn draw(draw: &mut Draw, client: i32, (kind, number): (Kind, usize)) -> Write {
        let key = |draw: &mut Draw| client * 1_000 + draw.below(PARTITIONS) as i32;
        let (k, other) = (key(draw), key(draw));
        Write { kind, client, k, other, c: draw.below(ROWS) as i32, v: format!("{client}.{number}") }
    }

    /// Makes it; `false` if there is no answer.
    fn run(&self, session: &mut Session) -> bool {
        let Write { k, other, c, v, .. } = self;
        let (key, row) = (k.to_be_bytes(), c.to_be_bytes());
        let full: [&[u8]; 3] = [&key, &row, v.as_bytes()];
        let text = format!("INSERT INTO back.rows (k, c, v) VALUES ({k}, {c}, '{v}')");
        let second = format!("INSERT INTO back.rows (k, c, v) VALUES ({other}, {c}, '{v}')");
        let Session { raw, insert, delete_several, of_pairs, delete_partition, count } = session;
        let answer = match self.kind {
            Kind::Prepared => raw.try_ask(EXECUTE, &execute(insert, &full)),
            Kind::PreparedWithNames => raw.try_ask(EXECUTE, &execute_named(insert, &["k", "c", "v"], &full)),
            Kind::PreparedWithKey => {
                let text = format!("INSERT INTO back.rows (k, c, v) VALUES ({k}, ?, ?)");
                raw.try_prepare(&text).and_then(|(id, _)| raw.try_ask(EXECUTE, &execute(&id, &full[1..])))
            }
            Kind::SeveralKeys => {
                raw.try_ask(EXECUTE, &execute(delete_several, &[&key, &other.to_be_bytes(), &row]))
            }
            Kind::KeyBesideLiteral => {
                let text = format!("DELETE FROM back.rows WHERE k IN ({other}, ?) AND c = ?");
                raw.try_prepare(&text).and_then(|(id, _)| raw.try_ask(EXECUTE, &execute(&id, &full[..2])))
            }
            Kind::TwoColumns => {
                raw.try_ask(EXECUTE, &execute(of_pairs, &[v.as_bytes(), format!("b{k}").as_bytes(), &key]))
            }
            Kind::Text => raw.try_query(&text),
            Kind::TextWithValues => {
                let values = full.map(Some);
                let text = "INSERT INTO back.rows (k, c, v) VALUES (?, ?, ?)";
                raw.try_ask(QUERY, &query(4, text, &values))
            }
            Kind::Batch => {
                let others: [&[u8]; 3] = [&other.to_be_bytes(), &row, v.as_bytes()];
                raw.try_ask(BATCH, &batch(insert, &[&full, &others]))
            }
            Kind::BatchInOneText => raw.try_query(&format!("BEGIN BATCH {text}; {second}; APPLY BATCH")),
            Kind::Condition => {
                let text =
                    format!("UPDATE back.rows SET v = '{v}' WHERE k = {k} AND c = {c} IF v != 'no such'");
                raw.try_query(&text)
            }
            Kind::WholePartition => raw.try_ask(EXECUTE, &execute(delete_partition, &[&key])),
            Kind::Counter => raw.try_ask(EXECUTE, &execute(count, &[&self.client.to_be_bytes()])),
        };
        answer.is_some_and(|answer| answer.opcode == RESULT)
    }

    /// Adds what it has written.
    fn note(&self, expected: &mut Expected) {
        let mut put = |k: i32, c: i32, v: Option<&String>| expected.rows.insert((k, c), v.cloned());
        match self.kind {
            Kind::SeveralKeys | Kind::KeyBesideLiteral => [self.k, self.other].map(|k| put(k, self.c, None)),
            Kind::TwoColumns => [put(self.k, -1, Some(&self.v)), None],
            Kind::Batch | Kind::BatchInOneText => [self.k, self.other].map(|k| put(k, self.c, Some(&self.v))),
            Kind::WholePartition => {
                (0..ROWS as i32).for_each(|c| drop(put(self.k, c, None)));
                [None, None]
            }
            Kind::Counter => [None, None],
            _ => [put(self.k, self.c, Some(&self.v)), None],
        };
    }
}

fn put_values(body: &mut Vec<u8>, values: &[&[u8]]) {
    body.extend_from_slice(&(values.len() as u16).to_be_bytes());
    for value in values {
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
    }
}

fn short_bytes(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    body.extend_from_slice(bytes);
}

/// EXECUTE of v4 at consistency ONE.
fn execute(id: &[u8], values: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    short_bytes(&mut body, id);
    body.extend_from_slice(&[0, 1, 0x01]);
    put_values(&mut body, values);
    body
}

/// The same with the names of the values.
fn execute_named(id: &[u8], names: &[&str], values: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    short_bytes(&mut body, id);
    body.extend_from_slice(&[0, 1, 0x41]);
    body.extend_from_slice(&(values.len() as u16).to_be_bytes());
    for (name, value) in names.iter().zip(values) {
        short_bytes(&mut body, name.as_bytes());
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
    }
    body
}

/// A logged batch of one prepared statement with several sets of values, in v4.
fn batch(id: &[u8], sets: &[&[&[u8]]]) -> Vec<u8> {
    let mut body = vec![0];
    body.extend_from_slice(&(sets.len() as u16).to_be_bytes());
    for values in sets {
        body.push(1);
        short_bytes(&mut body, id);
        put_values(&mut body, values);
    }
    body.extend_from_slice(&[0, 1, 0]);
    body
}

/// A rollback waits for its target as long as that takes; the end of the server waits for no rollback.
#[test]
fn a_server_stops_while_a_rollback_waits_for_a_target_that_is_silent() {
    let mut moved = Moved::begin();
    let target = i32::try_from(moved.target.process_id()).expect("a number");
    let target = rustix::process::Pid::from_raw(target).expect("not 0");
    rustix::process::kill_process(target, rustix::process::Signal::STOP).expect("a signal");
    let rollback: Vec<String> = moved.with_data(&["rollback"]).iter().map(|&word| word.to_owned()).collect();
    let asking = thread::spawn(move || refused(&rollback));
    while !refused(&moved.with_data(&["resume"])).contains("another request") {
        assert!(!asking.is_finished(), "{}", asking.join().expect("the tool's words"));
    }
    assert!(moved.source.stop().success());
    asking.join().expect("the tool has ended");
    rustix::process::kill_process(target, rustix::process::Signal::CONT).expect("a signal");
    // The truth is at the target still.
    moved.source.restart();
    let through = Cql::connect(moved.source.address());
    assert_eq!(through.rows("SELECT v FROM back.rows WHERE k = 10001").len(), 1);
}

#[test]
fn a_server_goes_on_without_a_target_that_is_lost() {
    let mut moved = Moved::begin();
    let both = ["rollback", "--lose-later-writes", "--pause", "1s"];
    assert!(refused(&moved.with_data(&both)).contains("cannot be used with"));
    let through = Cql::connect(moved.source.address());
    through.run("INSERT INTO back.rows (k, c, v) VALUES (1, 1, 'at the target')");
    drop(through);
    moved.target.kill();
    // Also after a restart, when the target was never seen.
    moved.source.kill();
    moved.source.restart();
    let told = refused(&moved.with_data(&["rollback"]));
    assert!(told.contains("the target") && told.contains("--lose-later-writes"), "{told}");
    let said = moved.run(&["rollback", "--lose-later-writes"]);
    assert!(said.contains("with the rows of the cut") && said.contains(moved.target.address()), "{said}");
    for is_restarted in [false, true] {
        if is_restarted {
            moved.source.kill();
            moved.source.restart();
        }
        let here = Cql::connect(moved.source.address());
        assert_eq!(here.rows("SELECT v FROM back.rows WHERE k = 10001").len(), 1);
        assert_eq!(here.rows("SELECT v FROM back.rows WHERE k = 1").len(), 0);
        here.run("INSERT INTO back.rows (k, c, v) VALUES (2, 2, 'here')");
        assert!(refused(&moved.with_data(&["status"])).contains("no move is under way"));
        assert!(refused(&moved.with_data(&["rollback", "--lose-later-writes"])).contains("no move"));
    }
}

#[test]
fn a_column_that_was_added_at_the_target_since_the_cut_is_not_lost_by_a_rollback() {
    let moved = Moved::begin();
    let through = Cql::connect(moved.source.address());
    through.run("ALTER TABLE back.pairs ADD extra int");
    through.run("INSERT INTO back.pairs (a, b, v, extra) VALUES (1, 'b', 'v', 7)");
    let said = refused(&moved.with_data(&["rollback"]));
    assert!(said.contains("back.pairs: the target alone has a column extra"), "{said}");
    through.run("ALTER TABLE back.pairs DROP extra");
    until_done(&moved.with_data(&["rollback", "--pause", "20s"]));
    assert_eq!(Cql::connect(moved.source.address()).rows("SELECT a FROM back.pairs").len(), 1);
}

#[test]
fn a_value_that_an_index_here_does_not_take_is_found_before_anything_is_written_here() {
    let moved = Moved::begin();
    until_done(&moved.with_data(&["rollback", "--pause", "20s"]));
    Cql::connect(moved.source.address()).run("CREATE INDEX of_v ON back.pairs (v)");
    let there = Cql::connect(moved.target.address());
    let began = Instant::now();
    while there.try_run("DROP INDEX back.of_v").is_err() {
        assert!(began.elapsed() < PATIENCE);
    }
    wait_for_tail(&moved.data);
    until_done(&moved.with_data(&["cutover", "--pause", "5s", "--accept-differences"]));
    let through = Cql::connect(moved.source.address());
    through.run("INSERT INTO back.rows (k, c, v) VALUES (1, 1, 'since the cut')");
    through.run(&format!("INSERT INTO back.pairs (a, b, v) VALUES (1, 'b', '{}')", "x".repeat(70_000)));
    let said = refused(&moved.with_data(&["rollback"]));
    assert!(said.contains("back.pairs: Cannot index value of size 70000"), "{said}");
    // Nothing was brought: the state would say so.
    let state = std::fs::read_to_string(std::path::Path::new(&moved.data).join("move/state.json"));
    assert!(state.expect("a state").contains("\"has_brought\":false"));
    through.run("DELETE FROM back.pairs WHERE a = 1 AND b = 'b'");
    until_done(&moved.with_data(&["rollback", "--pause", "20s"]));
    assert_eq!(Cql::connect(moved.source.address()).rows("SELECT v FROM back.rows WHERE k = 1").len(), 1);
}
