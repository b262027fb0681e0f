//! The pace of a move that is under way, and the end of a comparison, by `helenus move resume` and `helenus move verify --stop`.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use end_to_end::{Cql, Server, binary, refused, tool};
use serde_json::Value;

#[path = "cluster/moving.rs"]
mod moving;

use moving::{until_done, wait_for_tail};

const PATIENCE: Duration = Duration::from_secs(60);
/// So many rows take hours at one a second.
const ROWS: usize = 20_000;

fn fill(cql: &Cql, rows: usize) {
    cql.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TABLE k.t (a int, b int, PRIMARY KEY (a, b))");
    for begin in (0..rows).step_by(500) {
        let rows = (begin..(begin + 500).min(rows))
            .map(|row| format!("INSERT INTO k.t (a, b) VALUES ({}, {row})", begin % 7));
        cql.run(&format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", rows.collect::<Vec<_>>().join("; ")));
    }
}

#[test]
fn a_resume_changes_the_pace_and_keeps_what_it_does_not_name() {
    let (mut source, target) = (Server::start(), Server::start());
    let data = source.data().to_str().expect("UTF-8").to_owned();
    fill(&Cql::connect(source.address()), ROWS);
    let verb = |args: &[&str]| tool(&[&["move"], args, &["--data", &data]].concat());
    verb(&[
        "start",
        "--to",
        target.address(),
        "--rows-per-second",
        "1",
        "--target-p99",
        "70",
        "--ranges",
        "2",
    ]);
    let state = source.data().join("move/state.json");
    let pace = || -> Vec<u64> {
        let state: Value = serde_json::from_slice(&fs::read(&state).expect("a state")).expect("JSON");
        ["rows_per_second", "target_p99_ms", "ranges_at_once"]
            .map(|name| state["order"][name].as_u64().expect(name))
            .to_vec()
    };
    assert_eq!(pace(), [1, 70, 2]);
    verb(&["resume"]);
    assert_eq!(pace(), [1, 70, 2]);
    verb(&["resume", "--target-p99", "300"]);
    assert_eq!(pace(), [1, 300, 2]);
    verb(&["resume", "--ranges", "8"]);
    // A restart reads it from there.
    source.kill();
    source.restart();
    assert_eq!(pace(), [1, 300, 8]);
    // A cut that is refused because not all is there names the option that holds it back.
    let began = Instant::now();
    loop {
        let said = refused(&["move", "cutover", "--dry-run", "--data", &data]);
        if said.contains("helenus move resume --rows-per-second") {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{said}");
    }
    verb(&["resume", "--rows-per-second", "0"]);
    assert_eq!(pace(), [0, 300, 8]);
    wait_for_tail(&data);
    assert_eq!(Cql::connect(target.address()).rows("SELECT a FROM k.t").len(), ROWS);
    until_done(&["move", "cutover", "--dry-run", "--data", &data]);
}

#[test]
fn a_comparison_goes_on_without_its_command_until_it_is_stopped() {
    let (source, mut target) = (Server::start(), Server::start());
    let data = source.data().to_str().expect("UTF-8").to_owned();
    fill(&Cql::connect(source.address()), 50);
    let stop = ["move", "verify", "--stop", "--data", &data];
    tool(&["move", "start", "--to", target.address(), "--data", &data]);
    wait_for_tail(&data);
    assert!(refused(&stop).contains("nothing was compared yet"));
    for more in ["--repair", "--json", "--tables=k.t"] {
        assert!(refused(&[&stop[..], &[more]].concat()).contains("cannot be used with"), "{more}");
    }
    // Its reads are tried again for minutes.
    target.kill();
    let verify = || {
        let mut command = Command::new(binary());
        command
            .args(["move", "verify", "--repair", "--data", &data])
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command.spawn().expect("helenus runs")
    };
    let mut left = verify();
    let began = Instant::now();
    let holds_a_cut =
        || refused(&["move", "cutover", "--dry-run", "--data", &data]).contains("helenus move verify --stop");
    while !holds_a_cut() {
        assert!(began.elapsed() < PATIENCE, "the comparison does not begin");
    }
    left.kill().expect("it runs");
    left.wait().expect("it ends");
    assert!(holds_a_cut(), "it goes on without the command");
    assert_eq!(tool(&stop), "stopped\n");
    assert!(!holds_a_cut());
    // A command that follows it is told.
    let followed = verify();
    while !holds_a_cut() {
        assert!(began.elapsed() < PATIENCE, "the comparison does not begin");
    }
    assert_eq!(tool(&stop), "stopped\n");
    let output = followed.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("it was stopped"), "{said}");
    assert!(!holds_a_cut());
}
