//! Tests that a refused write is never read, and that a row which was read does not vanish, whatever call of the disk
//! fails.
//!
//! Several clients work on a simulated machine in one thread. The seed draws the order of the steps: a request begins,
//! background work makes a step, the log is written out, tickets are checked. One call of the disk fails, once or from
//! then on. The answers are a history, of which a refused write is no part: neither while the server runs, nor after
//! the process has died and the server has started again. Only if the power is cut as well may a refused write appear,
//! and it then stays. `REFUSED_RUNS=100000 REFUSED_SEED=1` sets the number of runs, and the first seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_cql::CqlError;
use helenus_cql::backend::Backend;
use helenus_engine::{DatabaseOptions, Error, SyncMode, Ticket};
use helenus_host::sim::{Call, Fault, Machine, Survives};
use histories::partition::{Action, Kind, Partition, Request};
use histories::{Draw, Operation, Outcome, check};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use support::cells::cells;
use support::{KEYSPACE, Server};

const CALLS: [Call; 9] = [
    Call::Write,
    Call::Sync,
    Call::Allocate,
    Call::SyncDir,
    Call::Create,
    Call::Rename,
    Call::Open,
    Call::Remove,
    Call::SetSize,
];
const MODES: [SyncMode; 3] = [SyncMode::Group, SyncMode::Batch, SyncMode::Periodic { period_ms: 20 }];
const CLIENTS: u32 = 5;
const STEPS: usize = 150;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// A request whose answer waits.
struct Pending {
    kind: Kind,
    client: u32,
    began: u64,
    request: Request,
    action: Action,
    ticket: Ticket,
}

/// The history of one partition.
#[derive(Default)]
struct History {
    told: Vec<Operation<Action>>,
    /// Refused after they were begun; no part of the history as long as the machine goes on.
    refused: Vec<Operation<Action>>,
}

struct Run {
    what: String,
    time: u64,
    fresh: i32,
    pending: Vec<Pending>,
    histories: BTreeMap<&'static str, (Kind, History)>,
    /// Refusals that say that the log has failed.
    failures: u64,
}

impl Run {
    fn now(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    fn history(&mut self, kind: Kind) -> &mut History {
        &mut self.histories.entry(kind.table()).or_insert_with(|| (kind, History::default())).1
    }

    fn begin(&mut self, server: &Server, (kind, client): (Kind, u32), draw: &mut Draw) {
        self.fresh += 2;
        let seen: Vec<i32> = (1..4).map(|back| self.fresh - 2 * back).collect();
        let request = Request::draw(kind, draw, self.fresh, &seen);
        self.send(server, (kind, client), request);
    }

    fn send(&mut self, server: &Server, (kind, client): (Kind, u32), request: Request) {
        let began = self.now();
        match server.begin(&request.text(kind, 1)) {
            Ok((answer, ticket)) => {
                let action = request.clone().answered(kind, &cells(&answer));
                self.pending.push(Pending { kind, client, began, request, action, ticket });
                self.look();
            }
            Err(CqlError::Invalid(_)) if request.may_be_refused() => {
                let outcome = Outcome::Answered(self.now());
                let action = request.refused();
                self.history(kind).told.push(Operation { client, began, outcome, action });
            }
            // Nothing was done.
            Err(_) => {}
        }
    }

    /// Checks all tickets, as an event loop does when it is notified.
    fn look(&mut self) {
        for waiting in std::mem::take(&mut self.pending) {
            let Pending { kind, client, began, request, action, ticket } = waiting;
            match ticket.is_ready() {
                Ok(false) => {
                    self.pending.push(Pending { kind, client, began, request, action, ticket });
                }
                Ok(true) => {
                    let outcome = Outcome::Answered(self.now());
                    self.history(kind).told.push(Operation { client, began, outcome, action });
                }
                Err(Error::LogFailed { .. } | Error::Unlogged { .. }) => {
                    self.failures += 1;
                    self.leave_open(kind, (client, began), request, true);
                }
                Err(other) => panic!("{}: a ticket says {other}", self.what),
            }
        }
    }

    /// Notes a write of which its client was not told that it is there.
    fn leave_open(&mut self, kind: Kind, (client, began): (u32, u64), request: Request, is_refused: bool) {
        if request == Request::Read {
            return;
        }
        let operation = Operation { client, began, outcome: Outcome::Unknown, action: request.unanswered() };
        let history = self.history(kind);
        if is_refused { history.refused.push(operation) } else { history.told.push(operation) }
    }

    /// Empties a table.
    fn truncate(&mut self, server: &Server, kind: Kind) {
        if kind == Kind::Counter {
            return;
        }
        let began = self.now();
        let done = server.begin(&format!("TRUNCATE {}", kind.table()));
        let outcome = done.map_or(Outcome::Unknown, |_| Outcome::Answered(self.time + 1));
        self.time += 1;
        let action = Action::Did(Request::Delete, Some(true));
        let history = self.history(kind);
        history.told.push(Operation { client: 0, began, outcome, action });
    }

    /// Reads every partition. `must` says that each can be read.
    fn read_all(&mut self, server: &Server, must: bool) {
        for kind in Kind::ALL {
            let began = self.now();
            match server.ask(&Request::Read.text(kind, 1)) {
                Ok(answer) => {
                    let action = Request::Read.answered(kind, &cells(&answer));
                    let outcome = Outcome::Answered(self.now());
                    self.history(kind).told.push(Operation { client: 99, began, outcome, action });
                }
                Err(error) => assert!(!must, "{}: {} cannot be read: {error}", self.what, kind.table()),
            }
        }
    }

    fn judge(&self, with_refused: bool, when: &str) {
        for (table, (_, history)) in &self.histories {
            let mut all = history.told.clone();
            if with_refused {
                all.extend(history.refused.iter().cloned());
            }
            check(&Partition, &all)
                .unwrap_or_else(|found| panic!("{}, {when}, {table}: {}", self.what, found.text));
        }
    }

    /// Goes on with an image of the machine: reads, writes something, reads again.
    fn go_on(&self, image: Machine, options: &DatabaseOptions, with_refused: bool, when: &str) {
        let mut after = Run {
            what: self.what.clone(),
            time: self.time,
            fresh: self.fresh,
            pending: Vec::new(),
            histories: self
                .histories
                .iter()
                .map(|(table, (kind, history))| {
                    let History { told, refused } = history;
                    (*table, (*kind, History { told: told.clone(), refused: refused.clone() }))
                })
                .collect(),
            failures: 0,
        };
        let server = Server::over(image, options);
        after.read_all(&server, true);
        let mut draw = Draw::new(self.time);
        for kind in Kind::ALL {
            for client in 0..3 {
                after.begin(&server, (kind, client), &mut draw);
                server.backend().write_out().unwrap();
                while !after.pending.is_empty() && server.machine().step() {
                    after.look();
                }
            }
        }
        after.read_all(&server, true);
        // What was read is safe by now.
        after.look();
        assert!(after.pending.is_empty(), "{}, {when}: something is never answered", self.what);
        server.end();
        after.judge(with_refused, when);
    }
}

/// Returns how many were refused by a log that failed.
fn run_with_fault(seed: u64) -> u64 {
    let mut draw = Draw::new(seed);
    let call = CALLS[draw.below(CALLS.len() as u64) as usize];
    let mode = MODES[draw.below(3) as usize];
    let (nth, lasting) = (1 + draw.below(25), draw.below(3) == 0);
    let on_log = draw.below(4) > 0;
    let what = format!(
        "REFUSED_SEED={seed}: {call:?} number {nth} (of the log: {on_log}), lasting: {lasting}, {mode:?}"
    );
    let mut options = DatabaseOptions::new("/db");
    (options.sync, options.segment_bytes) = (Some(mode), 16 << 10);
    let server = Server::over(Machine::new(seed), &options);
    server.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    Kind::ALL.iter().for_each(|kind| server.run(&kind.definition()));
    server.run("CREATE INDEX ON several (v)");
    let machine = server.machine().clone();
    let mut fault =
        Fault::new(call, nth, if draw.below(2) == 0 { ErrorKind::Other } else { ErrorKind::StorageFull });
    if on_log {
        fault = fault.on("commitlog");
    }
    machine.fail(if lasting { fault.lasting() } else { fault });
    let mut run =
        Run { what, time: 0, fresh: 0, pending: Vec::new(), histories: BTreeMap::new(), failures: 0 };
    for step in 0..STEPS {
        let kind = Kind::ALL[draw.below(4) as usize];
        match draw.below(20) {
            0..12 => run.begin(&server, (kind, draw.below(u64::from(CLIENTS)) as u32), &mut draw),
            12..14 => drop(machine.step()),
            14..16 => {
                // A log that has failed says so at the tickets.
                let _told = server.backend().write_out();
            }
            16..18 => run.look(),
            18 if draw.below(4) == 0 => drop(server.backend().database().flush_all()),
            19 if draw.below(6) == 0 => run.truncate(&server, kind),
            _ => machine.advance(10_000_000),
        }
        if step == STEPS - 20 {
            machine.clear_faults();
        }
    }
    run.look();
    run.read_all(&server, false);
    // What was read is safe by now.
    run.look();
    for Pending { kind, client, began, request, .. } in std::mem::take(&mut run.pending) {
        run.leave_open(kind, (client, began), request, false);
    }
    run.judge(false, "while it runs");
    run.go_on(machine.crash_image(Survives::EverythingWritten), &options, false, "after the process died");
    if !matches!(mode, SyncMode::Periodic { .. }) {
        let survives = if draw.below(2) == 0 { Survives::OnlySynced } else { Survives::Torn { seed } };
        run.go_on(machine.crash_image(survives), &options, true, "after the machine was cut");
    }
    server.end();
    run.failures
}

#[test]
fn what_was_refused_is_never_read_and_what_was_read_stays() {
    let (runs, first) = (number("REFUSED_RUNS", 250), number("REFUSED_SEED", 1));
    let mut failures = 0;
    for seed in first..first + runs {
        failures += run_with_fault(seed);
    }
    println!("{runs} runs from seed {first}: {failures} answers held back for good");
    assert!(failures > runs / 10, "too few of the faults struck the log: {failures}");
}
