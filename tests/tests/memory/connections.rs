//! Workloads of misbehaving clients, and of Thrift RPC.

use super::client::{Client, Tally};
use super::reads::fill;
use super::{MIB, TestServer, Workload, long, noise, short};
use end_to_end::raw::{QUERY, STARTUP, frame, query};
use helenus_wire::thrift::{
    Column, ColumnOrSuperColumn, ColumnParent, ConsistencyLevel, Field, Map, Method, Mutation,
    SlicePredicate, SliceRange, args, begin_call, end_message,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// All workloads of this file.
pub const WORKLOADS: &[Workload] = &[
    short("long_names", long_names),
    short("large_types", large_types),
    long("startup_options", startup_options),
    long("half_frames", half_frames),
    long("many_half_frames", many_half_frames),
    long("bombs", bombs),
    long("sessions", sessions),
    long("unread_answers", unread_answers),
    long("rpc_slices", rpc_slices),
    long("rpc_mutations", rpc_mutations),
    long("rpc_names", rpc_names),
];

/// Results whose columns have long names, each another: what is kept of their descriptions is kept by all event loops.
fn long_names(site: &TestServer) -> Tally {
    let times = site.times(12, 60);
    site.clients(4, |client_number, client| {
        for number in 0..times {
            let column =
                |at: usize| format!("key AS \"{:x<60000}\"", format!("{client_number}_{number}_{at}_"));
            let columns: Vec<String> = (0..30).map(column).collect();
            client.ask(&format!("SELECT {} FROM system.local", columns.join(", ")), &[]);
        }
    })
}

/// Results of a column whose type has many fields, named again and again, and prepared.
fn large_types(site: &TestServer) -> Tally {
    let mut first = site.client();
    let fields: Vec<String> = (0..200).map(|at| format!("a_field_of_a_type_{at} int")).collect();
    first.load(&format!("CREATE TYPE k.wide ({})", fields.join(", ")), &[]);
    first.load("CREATE TABLE k.typed (k int PRIMARY KEY, v frozen<wide>)", &[]);
    let times = site.times(6, 30);
    let sum = site.clients(8, |number, client| {
        for _ in 0..times {
            let columns = vec!["v"; 1_000 + 100 * number].join(", ");
            client.ask(&format!("SELECT {columns} FROM k.typed"), &[]);
        }
    });
    first.tally.add(sum);
    first.tally
}

/// Connections whose STARTUP has long options, of which none goes further.
fn startup_options(site: &TestServer) -> Tally {
    let option = |name: &str, value: &str| {
        let of = |text: &str| [&(text.len() as u16).to_be_bytes()[..], text.as_bytes()].concat();
        [of(name), of(value)].concat()
    };
    let long = "d".repeat(64_000);
    let options = [
        &3_u16.to_be_bytes()[..],
        &option("CQL_VERSION", "3.0.0"),
        &option("DRIVER_NAME", &long),
        &option("DRIVER_VERSION", &long),
    ];
    let startup = frame(4, 0, 1, STARTUP, &options.concat());
    let mut held = Vec::new();
    for _ in 0..site.times(300, 2000) {
        let mut socket = TcpStream::connect(site.server.address()).expect("connect");
        // It may be refused before all has been sent.
        let _is_all = socket.write_all(&startup);
        held.push(socket);
    }
    site.clients(4, |_, client| {
        (0..20).for_each(|_| _ = client.ask("SELECT * FROM system.local", &[]));
    })
}

/// Sends half of frames of the maximum size.
fn half_frames(site: &TestServer) -> Tally {
    let count = site.times(60, 300);
    let half = &frame(4, 0, 1, QUERY, &vec![b' '; 15 * MIB])[..7 * MIB];
    let mut held: Vec<Client> = Vec::new();
    for number in 0..count {
        let mut client = site.client();
        client.socket.set_write_timeout(Some(Duration::from_millis(20))).expect("a socket option");
        // Some send as much as the server accepts, others less than one read.
        client.send(if number % 3 == 0 { &half[..60_000] } else { half });
        held.push(client);
    }
    site.clients(4, |_, client| {
        (0..20).for_each(|_| _ = client.ask("SELECT * FROM system.local", &[]));
    })
}

/// Thousands of connections that each send less than one read of a frame, before and after STARTUP, and go no further.
fn many_half_frames(site: &TestServer) -> Tally {
    let count = site.times(500, 3000);
    let half = &frame(4, 0, 1, QUERY, &vec![b' '; 15 * MIB])[..60_000];
    let mut held = Vec::new();
    for number in 0..count {
        let mut socket = match number % 2 {
            0 => site.client().socket,
            _ => TcpStream::connect(site.server.address()).expect("connect"),
        };
        socket.set_write_timeout(Some(Duration::from_millis(20))).expect("a socket option");
        // The server may read a part only, or close connections that have not begun.
        let _is_all = socket.write_all(half);
        held.push(socket);
    }
    site.clients(4, |_, client| {
        (0..20).for_each(|_| _ = client.ask("SELECT * FROM system.local", &[]));
    })
}

/// Bodies that decompress to a thousand times their size, and answers that compress equally well.
fn bombs(site: &TestServer) -> Tally {
    fill(site, (8, 8 * MIB, 4));
    let times = site.times(3, 10);
    let mut sum = Tally::default();
    for algorithm in ["lz4", "snappy"] {
        let done = std::thread::scope(|scope| {
            let of_client = |number: usize| {
                move || {
                    let mut client = Client::compressed(site.server.address(), algorithm);
                    for _ in 0..times {
                        let body = query(4, &" ".repeat(15 * MIB), &[]);
                        client.send(&frame(4, 0x01, 1, QUERY, &compressed(algorithm, &body)));
                        client.count();
                        let text = format!("SELECT v FROM k.t WHERE k = {} LIMIT 1", number % 2);
                        client.send(&frame(4, 0, 1, QUERY, &query(4, &text, &[])));
                        client.count();
                    }
                    // A syntax error is expected, because the text is not a statement.
                    client.tally.errors.remove(&0x2000);
                    client.tally
                }
            };
            let clients: Vec<_> = (0..12).map(|number| scope.spawn(of_client(number))).collect();
            clients.into_iter().map(|client| client.join().expect("a client")).collect::<Vec<_>>()
        });
        done.into_iter().for_each(|tally| sum.add(tally));
    }
    sum
}

/// Compresses a body that ends with a run of one byte, as tightly as the format allows.
fn compressed(algorithm: &str, body: &[u8]) -> Vec<u8> {
    let literal = 64.min(body.len());
    let (head, rest) = body.split_at(literal);
    let mut out = Vec::new();
    if algorithm == "lz4" {
        // Four bytes of length, then one sequence with literals and a match at distance 1, then the last literals.
        out.extend_from_slice(&(body.len() as u32).to_be_bytes());
        let tail = 12;
        let matched = rest.len() - tail;
        out.push(0xFF);
        put_lz4_length(head.len() - 15, &mut out);
        out.extend_from_slice(head);
        out.extend_from_slice(&[1, 0]);
        put_lz4_length(matched - 4 - 15, &mut out);
        out.push((tail as u8) << 4);
        out.extend_from_slice(&rest[matched..]);
    } else {
        let mut length = body.len();
        while length >= 0x80 {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out.push(60 << 2);
        out.push(head.len() as u8 - 1);
        out.extend_from_slice(head);
        // Copies of up to 64 bytes at distance 1 (two-byte offset).
        let mut left = rest.len();
        while left > 0 {
            let part = left.min(64);
            out.extend_from_slice(&[((part - 1) as u8) << 2 | 2, 1, 0]);
            left -= part;
        }
    }
    out
}

fn put_lz4_length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 255 {
        out.push(255);
        length -= 255;
    }
    out.push(length as u8);
}

/// Many sessions, each of which has used a keyspace and run a query.
fn sessions(site: &TestServer) -> Tally {
    fill(site, (50, 10_000, 10));
    let count = site.times(400, 1000);
    let mut sum = Tally::default();
    let mut held: Vec<Client> = (0..count).map(|_| site.client()).collect();
    for (number, client) in held.iter_mut().enumerate() {
        client.ask("USE k", &[]);
        client.ask(&format!("SELECT * FROM t WHERE k = {}", number % 5), &[]);
        client.prepare("SELECT v FROM t WHERE k = ?");
    }
    held.into_iter().for_each(|client| sum.add(client.tally));
    sum
}

/// Sizes of values whose answers no client reads.
const SMALLER: [usize; 5] = [20_000, 60_000, 150_000, 400_000, 900_000];

/// Clients that request large answers and do not read them.
fn unread_answers(site: &TestServer) -> Tally {
    fill(site, (12, 10 * MIB, 4));
    let mut client = site.client();
    client.load("CREATE TABLE k.a (k int PRIMARY KEY, v blob)", &[]);
    for (k, bytes) in SMALLER.into_iter().enumerate() {
        client.load("INSERT INTO k.a (k, v) VALUES (?, ?)", &[&(k as u32).to_be_bytes(), &noise(bytes, 1)]);
    }
    // Answers that are made on an event loop.
    let _of_smaller: Vec<Client> = (0..site.times(60, 300))
        .map(|number| {
            let mut client = site.client();
            let text = format!("SELECT v FROM k.a WHERE k = {}", number % SMALLER.len());
            client.send(&frame(4, 0, 1, QUERY, &query(4, &text, &[])).repeat(100));
            client
        })
        .collect();
    let held: Vec<Client> = (0..24_usize)
        .map(|number| {
            let mut client = site.client();
            let text = format!("SELECT v FROM k.t WHERE k = {} LIMIT 1", number % 3);
            client.send(&frame(4, 0, 1, QUERY, &query(4, &text, &[])).repeat(10));
            client
        })
        .collect();
    let tally = site.clients(4, |_, client| {
        (0..200).for_each(|_| _ = client.ask("SELECT * FROM system.local", &[]));
    });
    // Some clients read all their answers in the end.
    let mut sum = tally;
    for mut client in held.into_iter().take(6) {
        (0..10).for_each(|_| _ = client.count());
        sum.add(client.tally);
    }
    sum
}

/// Sends a Thrift RPC call, and counts its answer.
fn call(socket: &mut TcpStream, method: Method, arguments: impl FnOnce(&mut Vec<u8>), tally: &mut Tally) {
    let mut message = Vec::new();
    let at = begin_call(method, 1, &mut message);
    arguments(&mut message);
    end_message(at, &mut message);
    let mut length = [0; 4];
    if socket.write_all(&message).is_err() || socket.read_exact(&mut length).is_err() {
        tally.closed += 1;
        return;
    }
    let mut left = u64::from(u32::from_be_bytes(length));
    let mut part = vec![0; 64 << 10];
    while left > 0 {
        let most = part.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match socket.read(&mut part[..most]) {
            Ok(count) if count > 0 => left -= count as u64,
            _ => {
                tally.closed += 1;
                return;
            }
        }
    }
    tally.done += 1;
}

fn rpc_clients(site: &TestServer, work: impl Fn(usize, &mut TcpStream, &mut Tally) + Sync) -> Tally {
    let compact = "CREATE TABLE k.cf (key blob, column1 blob, value blob, PRIMARY KEY (key, column1)) WITH COMPACT STORAGE";
    let mut client = site.client();
    client.load(compact, &[]);
    for row in 0..12_u8 {
        let values: [&[u8]; 3] = [&[row / 4], &[row], &noise(8 * MIB, u64::from(row))];
        client.load("INSERT INTO k.cf (key, column1, value) VALUES (?, ?, ?)", &values);
    }
    site.server.admin(&["flush"]);
    std::thread::scope(|scope| {
        let work = &work;
        let of_client = |number: usize| {
            move || {
                let mut tally = Tally::default();
                let mut socket = TcpStream::connect(&site.rpc).expect("connect");
                socket.set_read_timeout(Some(Duration::from_secs(120))).expect("a socket option");
                let keyspace = args::OfKeyspace { keyspace: "k" };
                call(&mut socket, Method::SetKeyspace, |out| keyspace.write(out), &mut tally);
                work(number, &mut socket, &mut tally);
                tally
            }
        };
        let clients: Vec<_> = (0..12).map(|number| scope.spawn(of_client(number))).collect();
        clients.into_iter().fold(Tally::default(), |mut sum, client| {
            sum.add(client.join().expect("a client"));
            sum
        })
    })
}

fn everything() -> SlicePredicate<'static> {
    let range = SliceRange { start: &[], finish: &[], reversed: false, count: 100 };
    SlicePredicate { column_names: None, slice_range: Some(range) }
}

fn family() -> ColumnParent<'static> {
    ColumnParent { column_family: "cf", super_column: None }
}

fn rpc_slices(site: &TestServer) -> Tally {
    let times = site.times(2, 6);
    rpc_clients(site, |number, socket, tally| {
        for _ in 0..times {
            let key = [(number % 3) as u8];
            let slice = args::GetSlice {
                key: &key,
                column_parent: family(),
                predicate: everything(),
                consistency_level: ConsistencyLevel::One,
            };
            call(socket, Method::GetSlice, |out| slice.write(out), tally);
            let slices = args::MultigetSlice {
                keys: vec![&[0], &[1], &[2]],
                column_parent: family(),
                predicate: everything(),
                consistency_level: ConsistencyLevel::One,
            };
            call(socket, Method::MultigetSlice, |out| slices.write(out), tally);
        }
    })
}

fn rpc_mutations(site: &TestServer) -> Tally {
    let times = site.times(2, 6);
    rpc_clients(site, |number, socket, tally| {
        let value = noise(MIB, number as u64);
        let names: Vec<[u8; 2]> = (0..12).map(|column| [column, number as u8]).collect();
        for _ in 0..times {
            let mutations: Vec<Mutation<'_>> = names
                .iter()
                .map(|name| {
                    let column = Column { name, value: Some(&value), timestamp: Some(1), ttl: None };
                    let held = ColumnOrSuperColumn {
                        column: Some(column),
                        super_column: None,
                        counter_column: None,
                        counter_super_column: None,
                    };
                    Mutation { column_or_supercolumn: Some(held), deletion: None }
                })
                .collect();
            let key = [(number % 3) as u8];
            let batch = args::BatchMutate {
                mutation_map: Map(vec![(&key[..], Map(vec![("cf", mutations)]))]),
                consistency_level: ConsistencyLevel::One,
            };
            call(socket, Method::BatchMutate, |out| batch.write(out), tally);
        }
    })
}

/// Lists of as many short keys and names as a message holds.
fn rpc_names(site: &TestServer) -> Tally {
    let times = site.times(1, 4);
    rpc_clients(site, |number, socket, tally| {
        for turn in 0..times {
            let count = [20_000_u32, 200_000, 1_000_000][(number + turn) % 3];
            let names: Vec<[u8; 4]> = (0..count).map(u32::to_be_bytes).collect();
            let of_names = SlicePredicate {
                column_names: Some(names.iter().map(|name| &name[..]).collect()),
                slice_range: None,
            };
            let slice = args::GetSlice {
                key: &[1],
                column_parent: family(),
                predicate: of_names,
                consistency_level: ConsistencyLevel::One,
            };
            call(socket, Method::GetSlice, |out| slice.write(out), tally);
            let slices = args::MultigetSlice {
                keys: names.iter().map(|name| &name[..]).collect(),
                column_parent: family(),
                predicate: everything(),
                consistency_level: ConsistencyLevel::One,
            };
            call(socket, Method::MultigetSlice, |out| slices.write(out), tally);
        }
    })
}
