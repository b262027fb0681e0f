//! Judges histories of concurrent clients: one order of the operations must explain all answers (`tests/histories`).
//!
//! Each client is a thread. All work on the same partition of a database on a simulated machine, and run statements as
//! the server does: first on the event loop, then again where they may wait. There are more threads than cores, so that
//! a thread is often stopped between the timestamp of its write and the memtable. `HISTORIES=10000 HISTORIES_SEED=1`
//! sets the number of histories of each kind, and the first seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_cql::CqlError;
use histories::partition::{Action, Kind, Partition, Request};
use histories::{Draw, Recorder, check};
use support::cells::cells;
use support::{KEYSPACE, Server};

const CLIENTS: u32 = 6;
const REQUESTS: usize = 30;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn server(seed: u64) -> Server {
    let server = Server::open(seed);
    server.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    Kind::ALL.iter().for_each(|kind| server.run(&kind.definition()));
    server
}

/// One client's part of a history.
fn client(server: &Server, (kind, key): (Kind, i32), number: u32, seed: u64, recorder: &Recorder<Action>) {
    let mut draw = Draw::new(seed ^ u64::from(number) << 32);
    let mut seen = Vec::new();
    for at in 0..REQUESTS {
        let fresh = 2 * (number as i32 + CLIENTS as i32 * at as i32);
        let request = Request::draw(kind, &mut draw, fresh, &seen);
        let text = request.text(kind, key);
        let began = recorder.begin();
        let action = match server.ask(&text) {
            Ok(answer) => request.answered(kind, &cells(&answer)),
            Err(CqlError::Invalid(_)) if request.may_be_refused() => request.refused(),
            Err(error) => panic!("{text}: {error}"),
        };
        if let Action::Saw(state) = &action {
            seen = state.values().collect();
        }
        recorder.answered(number, began, action);
    }
}

fn judge(kind: Kind, default: u64) {
    let (count, first) = (number("HISTORIES", default), number("HISTORIES_SEED", 1));
    let server = server(first);
    let mut operations = 0;
    for seed in first..first + count {
        let key = seed as i32;
        let recorder = Recorder::default();
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let (server, recorder) = (&server, &recorder);
                scope.spawn(move || client(server, (kind, key), number, seed, recorder));
            }
        });
        let history = recorder.into_history();
        operations += history.len();
        check(&Partition, &history)
            .unwrap_or_else(|found| panic!("{kind:?}, HISTORIES_SEED={seed}: {}", found.text));
    }
    println!("{count} histories of {kind:?} from seed {first}: {operations} operations");
    server.end();
}

#[test]
fn plain_and_conditional_writes_of_a_value_have_one_order() {
    judge(Kind::Register, 120);
}

#[test]
fn additions_and_changes_of_a_list_have_one_order() {
    judge(Kind::List, 120);
}

#[test]
fn rows_written_alone_and_by_batches_have_one_order() {
    judge(Kind::Rows, 120);
}

#[test]
fn additions_to_a_counter_have_one_order() {
    judge(Kind::Counter, 60);
}
