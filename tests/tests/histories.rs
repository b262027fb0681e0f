//! Records histories of concurrent clients of the real binary, over sockets, and checks that one order of the
//! operations explains all answers.
//!
//! `HISTORIES_SECONDS=3600 HISTORIES_SEED=1` sets the duration and the first seed.

use std::time::{Duration, Instant};

use end_to_end::Server;
use end_to_end::raw::{QUERY, RESULT, Raw, Reply, frame, query};
use histories::partition::{Action, Cell, Kind, Partition, Request};
use histories::{Draw, Recorder, check};

const CLIENTS: u32 = 6;
const REQUESTS: usize = 40;
const INVALID: i32 = 0x2200;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Decodes the fields of an answer's body.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().expect("two bytes"))
    }

    fn text(&mut self) -> &'a [u8] {
        let length = usize::from(self.short());
        self.take(length)
    }

    fn value(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.int()).ok()?;
        Some(self.take(length))
    }
}

/// The rows of an answer, with the column types that histories use.
fn rows(reply: &Reply) -> Vec<Vec<Cell>> {
    const ROWS: i32 = 2;
    const LIST: u16 = 0x20;
    let mut fields = Fields(&reply.body);
    if fields.int() != ROWS {
        return Vec::new();
    }
    let (flags, columns) = (fields.int(), fields.int());
    if flags & 1 != 0 {
        let _table = (fields.text(), fields.text());
    }
    let types: Vec<u16> = (0..columns)
        .map(|_| {
            if flags & 1 == 0 {
                let _table = (fields.text(), fields.text());
            }
            let _name = fields.text();
            let ty = fields.short();
            if ty == LIST {
                let _of = fields.short();
            }
            ty
        })
        .collect();
    let count = fields.int();
    (0..count).map(|_| types.iter().map(|ty| cell(*ty, fields.value())).collect()).collect()
}

fn cell(ty: u16, value: Option<&[u8]>) -> Cell {
    let int = |bytes: &[u8]| i32::from_be_bytes(bytes.try_into().expect("four bytes"));
    match (ty, value) {
        (_, None) => Cell::Null,
        (0x04, Some(value)) => Cell::Flag(value == [1]),
        (0x05, Some(value)) => Cell::Counter(i64::from_be_bytes(value.try_into().expect("eight bytes"))),
        (0x20, Some(value)) => Cell::List(value[4..].chunks(8).map(|element| int(&element[4..])).collect()),
        (_, Some(value)) => Cell::Int(int(value)),
    }
}

/// The part of one client in a history.
fn client(address: &str, (kind, key): (Kind, i32), (number, seed): (u32, u64), recorder: &Recorder<Action>) {
    let mut raw = Raw::ready(address, 4);
    raw.run("USE h");
    let mut draw = Draw::new(seed ^ u64::from(number) << 32);
    let mut seen = Vec::new();
    for at in 0..REQUESTS {
        let fresh = 2 * (number as i32 + CLIENTS as i32 * at as i32);
        let request = Request::draw(kind, &mut draw, fresh, &seen);
        let text = request.text(kind, key);
        let bytes = frame(4, 0, 1, QUERY, &query(4, &text, &[]));
        let began = recorder.begin();
        raw.send(&bytes);
        let reply = raw.receive().unwrap_or_else(|| panic!("the server closed instead of answering {text}"));
        let action = match reply.opcode {
            RESULT => request.answered(kind, &rows(&reply)),
            _ if request.may_be_refused() && reply.error().0 == INVALID => request.refused(),
            _ => panic!("{text}: {:?}", reply.error()),
        };
        recorder.answered(number, began, action.clone());
        if let Action::Saw(state) = action {
            seen = state.values().collect();
        }
    }
}

/// Makes and checks histories for `seconds`. Returns their number, and the number of operations.
fn judge(server: &Server, seconds: u64) -> (u64, usize) {
    let first = number("HISTORIES_SEED", 1);
    let (began, mut count, mut operations) = (Instant::now(), 0, 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        for kind in Kind::ALL {
            let seed = first + count;
            let recorder = Recorder::default();
            std::thread::scope(|scope| {
                for number in 0..CLIENTS {
                    let (address, recorder) = (server.address(), &recorder);
                    scope.spawn(move || client(address, (kind, seed as i32), (number, seed), recorder));
                }
            });
            let history = recorder.into_history();
            operations += history.len();
            check(&Partition, &history)
                .unwrap_or_else(|found| panic!("{kind:?}, HISTORIES_SEED={seed}: {}", found.text));
            count += 1;
        }
    }
    (count, operations)
}

#[test]
fn what_concurrent_clients_are_told_has_one_order_in_every_sync_mode() {
    let seconds = number("HISTORIES_SECONDS", 12);
    for mode in ["periodic", "group", "batch"] {
        let server = Server::start_with(&["--sync", mode]);
        let mut raw = Raw::ready(server.address(), 4);
        raw.run("CREATE KEYSPACE h WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        raw.run("USE h");
        Kind::ALL.iter().for_each(|kind| raw.run(&kind.definition()));
        let (count, operations) = judge(&server, seconds.div_ceil(3));
        println!("{mode}: {count} histories of {operations} operations");
    }
}
