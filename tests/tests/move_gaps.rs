//! Changes that the tail of a move misses: what is deleted and written meanwhile is at the target afterwards as it is here, and a cut asks for
//! a comparison first. Statements are drawn; the program compares both sides by itself, not by `move verify`.
//!
//! The target is a Helenus, which answers as a node of Cassandra does.

use std::time::{Duration, Instant};

use end_to_end::draw::{Draw, rounds};
use end_to_end::{Cql, Server, refused, tool};
use serde_json::Value;

#[path = "cluster/moving.rs"]
mod moving;

use moving::{until_done, wait_for_tail};

const PATIENCE: Duration = Duration::from_secs(120);
const KEYS: usize = 6;

/// A server, a target and a move between them.
struct Moved {
    source: Server,
    target: Server,
    data: String,
}

impl Moved {
    fn begin(tables: &[&str]) -> Moved {
        let (source, target) = (Server::start(), Server::start());
        let data = source.data().to_str().expect("UTF-8").to_owned();
        let here = Cql::connect(source.address());
        here.run(
            "CREATE KEYSPACE gap WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        tables.iter().for_each(|text| here.run(text));
        for k in 0..KEYS {
            here.run(&format!("INSERT INTO gap.t (k, v) VALUES ({k}, 'before')"));
        }
        let moved = Moved { source, target, data };
        moved.run(&["start", "--to", moved.target.address()]);
        wait_for_tail(&moved.data);
        moved
    }

    fn with_data<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [&["move"], args, &["--data", &self.data]].concat()
    }

    fn run(&self, args: &[&str]) -> String {
        tool(&self.with_data(args))
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.run(&["status", "--json"])).expect("a status")
    }

    /// Goes on until no table is stopped any more.
    fn resume_until_tail(&self) {
        let began = Instant::now();
        loop {
            let status = self.status();
            let tables = status["tables"].as_array().expect("tables").clone();
            if tables.iter().any(|table| table["phase"] == "stopped") {
                self.run(&["resume"]);
            } else if tables.iter().all(|table| table["phase"] == "tail" && table["lag_s"] == 0.0) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{status}");
        }
    }
}

/// The rows of a table with their times.
fn rows(cql: &Cql, select: &str) -> Vec<String> {
    let mut rows: Vec<String> = cql.rows(select).iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

const T: &str = "CREATE TABLE gap.t (k int PRIMARY KEY, v text)";
const SELECT: &str = "SELECT k, v, WRITETIME(v) FROM gap.t";

/// Waits until both sides have the same rows: a change that is not sent yet passes, and a gap that was not seen yet stops the table.
fn assert_same(moved: &Moved, context: &str) {
    let (here, there) = (Cql::connect(moved.source.address()), Cql::connect(moved.target.address()));
    let began = Instant::now();
    loop {
        // The target's may have been dropped, and is made again.
        let is_there =
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'gap' AND table_name = 't'";
        let of_there = if there.rows(is_there).is_empty() { Vec::new() } else { rows(&there, SELECT) };
        let both = (rows(&here, SELECT), of_there);
        if both.0 == both.1 {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{context}: {both:#?}");
        moved.resume_until_tail();
    }
}

#[test]
fn what_the_tail_misses_is_at_the_target_and_what_was_truncated_is_not() {
    let moved = Moved::begin(&[T]);
    let here = Cql::connect(moved.source.address());
    let mut draw = Draw::new("gaps", 51);
    for round in 0..rounds(4) {
        let mut said = Vec::new();
        let mut run = |text: String| {
            here.run(&text);
            said.push(text);
        };
        let writes = |draw: &mut Draw, run: &mut dyn FnMut(String)| {
            for _ in 0..draw.below(4) {
                let k = draw.below(KEYS);
                run(match draw.below(4) {
                    0 => format!("DELETE FROM gap.t WHERE k = {k}"),
                    1 => "TRUNCATE gap.t".to_owned(),
                    _ => format!("INSERT INTO gap.t (k, v) VALUES ({k}, 'round {round}')"),
                });
            }
        };
        writes(&mut draw, &mut run);
        // Each kind of gap has its turn.
        match round % 4 {
            0 => {
                run("ALTER TABLE gap.t WITH cdc = false".to_owned());
                run("INSERT INTO gap.t (k, v) VALUES (100, 'in the gap')".to_owned());
                writes(&mut draw, &mut run);
                run("ALTER TABLE gap.t WITH cdc = true".to_owned());
            }
            1 => {
                run("ALTER TABLE gap.t WITH cdc = false".to_owned());
                run("TRUNCATE gap.t".to_owned());
                run("INSERT INTO gap.t (k, v) VALUES (101, 'in the gap')".to_owned());
            }
            2 => {
                run("DROP TABLE gap.t".to_owned());
                run(T.to_owned());
                writes(&mut draw, &mut run);
            }
            _ => {
                run("DROP TABLE gap.t".to_owned());
                run(T.to_owned());
                Cql::connect(moved.target.address()).run("DROP TABLE gap.t");
                writes(&mut draw, &mut run);
            }
        }
        moved.resume_until_tail();
        writes(&mut draw, &mut run);
        run("INSERT INTO gap.t (k, v) VALUES (102, 'after the gap')".to_owned());
        assert_same(&moved, &format!("round {round}: {}", said.join("; ")));
    }
    // What was missed is to be looked at before a cut.
    wait_for_tail(&moved.data);
    let told = refused(&moved.with_data(&["cutover", "--dry-run"]));
    assert!(told.contains("helenus move verify compares them"), "{told}");
    moved.run(&["verify"]);
    until_done(&moved.with_data(&["cutover", "--pause", "5s"]));
    let through = Cql::connect(moved.source.address());
    assert_eq!(rows(&through, SELECT), rows(&Cql::connect(moved.target.address()), SELECT));
}

#[test]
fn rows_that_the_target_had_before_the_move_are_not_truncated_unless_somebody_says_so() {
    let (source, target) = (Server::start(), Server::start());
    let data = source.data().to_str().expect("UTF-8").to_owned();
    let (here, there) = (Cql::connect(source.address()), Cql::connect(target.address()));
    for cql in [&here, &there] {
        cql.run(
            "CREATE KEYSPACE gap WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        cql.run(T);
    }
    here.run("INSERT INTO gap.t (k, v) VALUES (1, 'here')");
    there.run("INSERT INTO gap.t (k, v) VALUES (2, 'of another')");
    let moved = Moved { source, target, data };
    moved.run(&["start", "--to", moved.target.address()]);
    wait_for_tail(&moved.data);
    here.run("ALTER TABLE gap.t WITH cdc = false");
    here.run("ALTER TABLE gap.t WITH cdc = true");
    moved.resume_until_tail();
    assert_eq!(there.rows("SELECT k FROM gap.t").len(), 2);
    let told = refused(&moved.with_data(&["verify"]));
    assert!(told.contains("1 row differing"), "{told}");
    assert!(refused(&moved.with_data(&["cutover"])).contains("--accept-differences"));
    assert!(refused(&moved.with_data(&["resume", "--anew", "gap.other"])).contains("no table of the move"));
    moved.run(&["resume", "--anew", "gap.t"]);
    wait_for_tail(&moved.data);
    assert_same(&moved, "sent anew");
    moved.run(&["verify"]);
    moved.run(&["cutover", "--dry-run"]);
}

#[test]
fn a_table_that_is_made_during_the_move_is_taken_in_by_resume() {
    let moved = Moved::begin(&[T]);
    let here = Cql::connect(moved.source.address());
    here.run("CREATE TABLE gap.late (k int PRIMARY KEY, v text) WITH comment = 'made late'");
    here.run("CREATE INDEX late_v ON gap.late (v)");
    here.run("INSERT INTO gap.late (k, v) VALUES (1, 'x')");
    assert!(refused(&moved.with_data(&["cutover"])).contains("helenus move resume takes it in"));
    assert!(moved.run(&["resume"]).contains("taken in: 1"));
    wait_for_tail(&moved.data);
    let there = Cql::connect(moved.target.address());
    assert_eq!(there.rows_once_indexed("SELECT k FROM gap.late WHERE v = 'x'").len(), 1);
    until_done(&moved.with_data(&["cutover", "--pause", "5s"]));
    let through = Cql::connect(moved.source.address());
    assert_eq!(through.rows("SELECT k FROM gap.late WHERE v = 'x'").len(), 1);
}

#[test]
fn what_was_truncated_between_two_moves_asks_for_a_comparison_before_a_cut() {
    let moved = Moved::begin(&[T]);
    let here = Cql::connect(moved.source.address());
    moved.run(&["abort"]);
    here.run("TRUNCATE gap.t");
    here.run("INSERT INTO gap.t (k, v) VALUES (1, 'after')");
    moved.run(&["start", "--to", moved.target.address()]);
    wait_for_tail(&moved.data);
    let told = refused(&moved.with_data(&["cutover", "--dry-run"]));
    assert!(told.contains("helenus move verify"), "{told}");
    let told = refused(&moved.with_data(&["verify"]));
    assert!(told.contains("5 rows differing"), "{told}");
    moved.run(&["resume", "--anew", "gap.t"]);
    wait_for_tail(&moved.data);
    assert_same(&moved, "sent anew");
    moved.run(&["verify"]);
    moved.run(&["cutover", "--dry-run"]);
}

#[test]
fn a_table_made_during_the_move_that_the_target_does_not_take_stays_out_of_it() {
    let source = Server::start_with(&["--set", "dynamic_data_masking_enabled=true"]);
    let target = Server::start();
    let data = source.data().to_str().expect("UTF-8").to_owned();
    let here = Cql::connect(source.address());
    here.run("CREATE KEYSPACE gap WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    here.run(T);
    let moved = Moved { source, target, data };
    moved.run(&["start", "--to", moved.target.address()]);
    wait_for_tail(&moved.data);
    here.run("CREATE TABLE gap.masked (k int PRIMARY KEY, v text MASKED WITH DEFAULT)");
    let told = moved.run(&["resume"]);
    assert!(told.contains("taken in: 0") && told.contains("gap.masked: columns have masks"), "{told}");
    wait_for_tail(&moved.data);
    assert_eq!(moved.status()["tables"].as_array().expect("tables").len(), 1);
}
