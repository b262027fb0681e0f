//! The long proof of a move: many rows of every kind go to three real nodes under a load of clients, while the server that carries the
//! move and the nodes are killed at random. Then `helenus move verify`, a comparison by CQL and one of files find no difference, and
//! everything that clients were answered is there, before the cut and after it.
//!
//! It runs by hand; the sizes are in the environment (these are the smallest):
//!
//!     tests/tools/cluster.sh start 3 /tmp/ring --port 9142
//!     HELENUS_RING=/tmp/ring MOVE_ROWS=50000 MOVE_WIDE=20000 MOVE_MIXED=5000 MOVE_KILLS=5 MOVE_SEED=1 \
//!         cargo test --release -p end-to-end --test long_move -- --ignored --nocapture
//!
//! | variable | what |
//! |---|---|
//! | `MOVE_ROWS` | small rows, 20 a partition |
//! | `MOVE_WIDE` | rows of one partition |
//! | `MOVE_MIXED` | rows with collections, user types, TTLs, static columns and deletions; there is a tenth as many counters |
//! | `MOVE_KILLS` | kills, of the server or of a node |
//! | `MOVE_PAUSE_MS` | time between two kills, on average |
//! | `MOVE_RATE` | requests a second of each of the four clients |
//! | `MOVE_SEED` | the seed of rows, writes and kills |
//!
//! It prints the progress, then a table of what was compared, and fails if anything differs.

mod changes;
mod compare;
mod dump;
mod kills;
mod load;
#[path = "../cluster/moving.rs"]
mod moving;
#[path = "../cluster/ring.rs"]
mod ring;
mod side;
mod state;
mod tables;

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use compare::{Sides, Tally};
use end_to_end::draw::Draw;
use end_to_end::{Cql, Server, binary, tool};
use kills::Watch;
use load::{Known, Shared, filled_counter};
use ring::Ring;
use serde_json::Value;
use side::{Side, now};
use tables::{KEYSPACE, SCHEMA, TABLES};
use tempfile::TempDir;

/// Seconds after which the short TTLs have passed.
const SHORT_TTLS: Duration = Duration::from_secs(30);
/// Partitions whose files are compared.
const SAMPLE: u32 = 40;

/// How much there is.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    rows: [u32; 3],
    counters: u32,
    kills: u32,
    pause_ms: u64,
    rate: u32,
    seed: u64,
}

impl Sizes {
    fn from_environment() -> Sizes {
        let number = |name: &str, default: u64| match std::env::var(name) {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")),
            Err(_) => default,
        };
        let small = |name: &str, default| u32::try_from(number(name, default)).expect("a number of rows");
        let mixed = small("MOVE_MIXED", 5_000);
        Sizes {
            rows: [small("MOVE_ROWS", 50_000), small("MOVE_WIDE", 20_000), mixed],
            counters: mixed / 10,
            kills: small("MOVE_KILLS", 5),
            pause_ms: number("MOVE_PAUSE_MS", 8_000),
            rate: small("MOVE_RATE", 100),
            seed: number("MOVE_SEED", 1),
        }
    }

    /// Chunks of a table, by its number.
    fn chunks(&self, table: usize) -> u32 {
        self.rows[table] / TABLES[table].rows
    }
}

#[test]
#[ignore = "takes minutes to hours, by the sizes in the environment"]
fn nothing_is_lost_or_doubled() {
    let sizes = Sizes::from_environment();
    println!("{sizes:?}");
    let began = Instant::now();
    let ring = Ring::start();
    let folder = TempDir::with_prefix("helenus-long-move-").expect("a temporary directory");
    let mut server = Server::start_in(folder, &[]);
    let data = server.data().to_str().expect("a path in UTF-8").to_owned();
    let target = ring.address(1);
    Cql::connect(&target).run(&format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"));
    let filled = fill(server.address(), sizes);
    let shared = Arc::new(Shared {
        address: RwLock::new(server.address().to_owned()),
        ends: AtomicBool::new(false),
        done: AtomicU64::new(0),
        sizes,
        filled,
    });
    let watch = Watch { began, data: &data, shared: &shared };
    watch.say("filled");
    let clients = load::begin(&shared);
    tool(&["move", "start", "--to", &target, "--tables", KEYSPACE, "--data", &data]);
    let kills = kills::kill_and_wait(&ring, &mut server, &watch);
    shared.ends.store(true, Ordering::Release);
    let known = clients.into_iter().map(|client| client.join().expect("a client"));
    let known = known.reduce(joined).expect("clients");
    watch.say("the clients have stopped");
    watch.pass(SHORT_TTLS);
    moving::wait_for_tail(&data);
    let (mut tallies, sides) = {
        let address = server.address().to_owned();
        (vec![verify(&data)], (address, target.clone()))
    };
    let sides = Sides { source: &sides.0, target: &sides.1, known: &known, sizes, filled };
    (0..TABLES.len()).for_each(|number| tallies.push(sides.table(number)));
    tallies.extend([sides.counters(), sides.conditions()]);
    watch.say("compared by CQL");
    tallies.push(files(&ring, &server, sizes));
    watch.say("compared files");
    let data_args = ["move", "cutover", "--pause", "10s", "--data", &data];
    watch.say(moving::until_done(&data_args).trim());
    server.kill();
    server.restart();
    watch.say("killed and started after the cut");
    let cut = server.address().to_owned();
    let sides = Sides { source: &cut, ..sides };
    tallies.push(sides.changed_chunks());
    for mut tally in [sides.counters(), sides.conditions()] {
        tally.what += ", by the gateway";
        tallies.push(tally);
    }
    report(&known, &tallies, kills);
    Cql::connect(&target).run(&format!("DROP KEYSPACE {KEYSPACE}"));
    let differing: u64 = tallies.iter().map(|tally| tally.differing).sum();
    assert_eq!(
        (differing, known.wrong.len()),
        (0, 0),
        "differences, and answers that are wrong; the data is in {data}"
    );
    watch.say("nothing is lost, nothing doubled");
}

/// Makes the tables and fills them. Returns the seconds of its begin and end.
fn fill(address: &str, sizes: Sizes) -> (i64, i64) {
    let begin = now();
    let cql = Cql::connect(address);
    cql.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    SCHEMA.iter().for_each(|text| cql.run(text));
    let side = Side::connect(address);
    for number in [0, 1] {
        side.fill_plain(&TABLES[number], sizes.chunks(number));
    }
    let mixed = (0..sizes.chunks(2)).map(|chunk| {
        let writes = TABLES[2].fill(chunk, sizes.seed);
        let texts: Vec<String> = writes.iter().map(|write| write.text(&TABLES[2], chunk)).collect();
        format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", texts.join("; "))
    });
    side.run_all(mixed);
    let counters = (0..sizes.counters as i32).map(|at| {
        let [a, b] = filled_counter((at / 10, at % 10));
        let (p, c) = (at / 10, at % 10);
        format!("UPDATE {KEYSPACE}.counts SET a = a + {a}, b = b + {b} WHERE p = {p} AND c = {c}")
    });
    side.run_all(counters);
    (begin, now())
}

/// What two clients know, who share nothing.
fn joined(mut one: Known, other: Known) -> Known {
    one.chunks.extend(other.chunks);
    one.counters.extend(other.counters);
    one.conditions.extend(other.conditions);
    one.wrong.extend(other.wrong);
    one.unanswered += other.unanswered;
    one.were_done += other.were_done;
    one.reads += other.reads;
    one
}

/// `helenus move verify`.
fn verify(data: &str) -> Tally {
    let began = Instant::now();
    let mut tally = Tally::new("helenus move verify");
    let output = Command::new(binary()).args(["move", "verify", "--json", "--data", data]).output();
    let output = output.expect("helenus runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report: Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    for table in report["tables"].as_array().into_iter().flatten() {
        let number = |name: &str| table[name].as_u64().unwrap_or(0);
        tally.rows += number("rows");
        tally.cells += number("cells");
        if number("differing") > 0 || number("unsettled") > 0 || !table["error"].is_null() {
            tally.differs(table.to_string());
            tally.differing += number("differing").saturating_sub(1);
        }
    }
    if !output.status.success() && tally.differing == 0 {
        tally.differs(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    tally.seconds = began.elapsed().as_secs_f64();
    tally
}

/// Compares the files of some partitions.
fn files(ring: &Ring, server: &Server, sizes: Sizes) -> Tally {
    let mut random = Draw::from_seed(sizes.seed);
    let chunks = sizes.chunks(2);
    let mut keys: Vec<u32> = (0..SAMPLE).map(|_| random.below(chunks as usize) as u32).collect();
    // Those that clients have changed most likely are the first ones of a small table.
    keys.extend(0..SAMPLE.min(chunks));
    keys.sort_unstable();
    keys.dedup();
    server.admin(&["flush"]);
    let folder = TempDir::with_prefix("helenus-long-move-files-").expect("a temporary directory");
    let here = dump::files(&server.tables().join(KEYSPACE), &folder.path().join("here").join(KEYSPACE));
    let mut there = Vec::new();
    for node in 1..=3 {
        ring.flush(node, KEYSPACE);
        let keyspace = ring.directory().join(format!("node{node}/data/{KEYSPACE}"));
        let into = folder.path().join(format!("node{node}")).join(KEYSPACE);
        there.extend(dump::files(&keyspace, &into));
    }
    dump::compare(&keys, &here, &there)
}

fn report(known: &Known, tallies: &[Tally], [server, nodes]: [u32; 2]) {
    println!(
        "\nkills: {server} of the server, {nodes} of a node; requests without an answer: {}",
        known.unanswered
    );
    println!(
        "of those that cannot be sent twice {} were done; reads of clients that were compared: {}; wrong answers: {}\n",
        known.were_done,
        known.reads,
        known.wrong.len()
    );
    println!("| compared | rows | cells | later lists | differences | seconds |\n|---|---|---|---|---|---|");
    for Tally { what, rows, cells, later_lists, differing, seconds, .. } in tallies {
        println!("| {what} | {rows} | {cells} | {later_lists} | {differing} | {seconds:.0} |");
    }
}
