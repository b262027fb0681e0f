//! Workloads that write, and those that read before they write.

use super::client::Tally;
use super::reads::{fill, insert};
use super::{MIB, TestServer, Workload, long, noise, short};
use end_to_end::raw::frame;

/// All workloads of this file.
pub const WORKLOADS: &[Workload] = &[
    long("conditions", conditions),
    long("before_write", before_write),
    long("counters", counters),
    short("batches", batches),
    long("load_and_flush", load_and_flush),
    long("prepared", prepared),
    long("range_deletions", range_deletions),
    long("long_literals", long_literals),
    long("many_updates", many_updates),
    long("wide_texts", wide_texts),
];

/// Conditions on values of several mebibytes.
fn conditions(site: &TestServer) -> Tally {
    fill(site, (6, 10 * MIB, 3));
    let times = site.times(1, 4);
    site.clients(16, |number, client| {
        let row = number % 6;
        let place = format!("WHERE k = {} AND c = {row}", row / 3);
        for _ in 0..times {
            // The condition is false, so the answer contains the value.
            client.ask(&format!("UPDATE k.t SET v = 0x00 {place} IF v = 0x01"), &[]);
            client.ask(
                &format!("INSERT INTO k.t (k, c, v) VALUES ({}, {row}, 0x00) IF NOT EXISTS", row / 3),
                &[],
            );
            let value = noise(6 * MIB, number as u64);
            client.ask(&format!("UPDATE k.t SET v = ? {place} IF v != ?"), &[&value, &value]);
        }
    })
}

/// Updates of lists and maps that need a read before the write.
fn before_write(site: &TestServer) -> Tally {
    let mut client = site.client();
    client.load("CREATE TABLE k.w (k int PRIMARY KEY, l list<blob>, m map<int, blob>)", &[]);
    let element = noise(MIB, 1);
    let list = [&1_u32.to_be_bytes()[..], &(MIB as u32).to_be_bytes(), &element].concat();
    for k in 0..4_u32 {
        (0..12).for_each(|_| client.load("UPDATE k.w SET l = l + ? WHERE k = ?", &[&list, &k.to_be_bytes()]));
    }
    site.server.admin(&["flush"]);
    site.clients(16, |number, client| {
        for turn in 0..4_usize {
            let k = number % 4;
            client.ask(&format!("UPDATE k.w SET l = ? + l WHERE k = {k}"), &[&list]);
            client.ask(&format!("UPDATE k.w SET l[{turn}] = ? WHERE k = {k}"), &[&element]);
            client.ask(&format!("UPDATE k.w SET m[{turn}] = ? WHERE k = {k} IF EXISTS"), &[&element]);
            client.ask(&format!("DELETE l[0] FROM k.w WHERE k = {k}"), &[]);
        }
    })
}

fn counters(site: &TestServer) -> Tally {
    site.client().load("CREATE TABLE k.n (k int, c text, n counter, PRIMARY KEY (k, c))", &[]);
    let times = site.times(10, 100);
    site.clients(16, |number, client| {
        for turn in 0..times {
            let name = format!("{}{}", turn % 7, "n".repeat(30_000));
            let add = format!("UPDATE k.n SET n = n + 1 WHERE k = {} AND c = '{name}';", number % 3);
            client.ask(&add, &[]);
            client.ask(&format!("BEGIN COUNTER BATCH {} APPLY BATCH", add.repeat(20)), &[]);
        }
    })
}

/// Batches of many values, up to the largest frame.
fn batches(site: &TestServer) -> Tally {
    site.client().load("CREATE TABLE k.t (k int, c int, v blob, PRIMARY KEY (k, c))", &[]);
    let times = site.times(2, 8);
    site.clients(16, |number, client| {
        for turn in 0..times {
            let parts = [14, 100, 1000][turn % 3];
            let value = noise(13 * MIB / parts, (number * 100 + turn) as u64);
            // BATCH: unlogged or logged, with `parts` statements of one value each.
            let mut body = vec![(turn % 2) as u8];
            body.extend_from_slice(&(parts as u16).to_be_bytes());
            for part in 0..parts {
                let text = format!("INSERT INTO k.t (k, c, v) VALUES ({number}, {part}, ?)");
                body.push(0);
                body.extend_from_slice(&(text.len() as u32).to_be_bytes());
                body.extend_from_slice(text.as_bytes());
                body.extend_from_slice(&[0, 1]);
                body.extend_from_slice(&(value.len() as u32).to_be_bytes());
                body.extend_from_slice(&value);
            }
            body.extend_from_slice(&[0, 1, 0]);
            client.send(&frame(4, 0, 1, 0x0D, &body));
            client.count();
        }
    })
}

/// Writes values of all sizes as fast as possible, while everything is flushed.
fn load_and_flush(site: &TestServer) -> Tally {
    site.client().load("CREATE TABLE k.t (k int, c int, v blob, PRIMARY KEY (k, c))", &[]);
    let times = site.times(20, 60);
    site.clients(12, |number, client| {
        for turn in 0..times {
            if number == 0 {
                site.server.admin(&["flush"]);
                client.tally.done += 1;
            } else {
                let bytes = [100, 10 << 10, 200 << 10, MIB, 12 * MIB][(number + turn) % 5];
                let value = noise(bytes, (number * 1000 + turn) as u64);
                let (k, c) = ((number as u32).to_be_bytes(), (turn as u32).to_be_bytes());
                client.ask("INSERT INTO k.t (k, c, v) VALUES (?, ?, ?)", &[&k, &c, &value]);
            }
        }
    })
}

/// Batches of deletions of ranges that lie in one another, all of one partition.
fn range_deletions(site: &TestServer) -> Tally {
    site.client().load("CREATE TABLE k.d (k int, c int, PRIMARY KEY (k, c))", &[]);
    let times = site.times(1, 4);
    site.clients(8, |number, client| {
        for turn in 0..times {
            let count = [2_000, 20_000, 100_000][(number + turn) % 3];
            let mut text = "BEGIN UNLOGGED BATCH ".to_owned();
            for at in 0..count {
                let (from, to) = (count - at, count + at);
                text += &format!("DELETE FROM k.d WHERE k = {number} AND c >= {from} AND c < {to};");
            }
            client.ask(&(text + "APPLY BATCH"), &[]);
        }
    })
}

/// Collections written as literals of very many elements.
fn long_literals(site: &TestServer) -> Tally {
    site.client()
        .load("CREATE TABLE k.l (k int PRIMARY KEY, l list<int>, s set<int>, f frozen<list<int>>)", &[]);
    let times = site.times(1, 4);
    site.clients(8, |number, client| {
        for turn in 0..times {
            let elements = "1,".repeat([50_000, 400_000, 1_500_000][(number + turn) % 3]) + "1";
            let (column, open, close) = [("l", '[', ']'), ("s", '{', '}'), ("f", '[', ']')][turn % 3];
            client.ask(
                &format!("INSERT INTO k.l (k, {column}) VALUES ({number}, {open}{elements}{close})"),
                &[],
            );
        }
    })
}

/// Statements of megabytes whose text is one short part over and over: JSON, definitions, assignments, conditions, terms.
fn wide_texts(site: &TestServer) -> Tally {
    site.client().load("CREATE TABLE k.w (k int PRIMARY KEY, v text, l list<int>, m map<int, int>)", &[]);
    let times = site.times(1, 7);
    site.clients(6, |number, client| {
        for turn in 0..times {
            let count = [50_000, 200_000, 600_000][number % 3];
            let joined = |part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<Vec<_>>().join(",");
            let text = match (number + turn) % 7 {
                0 => format!("INSERT INTO k.w JSON '{{\"k\":1,\"l\":[{}]}}'", joined(&|_| "1".into())),
                1 => format!(
                    "INSERT INTO k.w JSON '{{\"k\":1,\"m\":{{{}}}}}'",
                    joined(&|at| format!("\"{at}\":1"))
                ),
                2 => format!("SELECT {{{}}} FROM k.w", joined(&|_| "1".into())),
                3 => format!("CREATE TYPE k.ty (a int, {})", joined(&|at| format!("a{at} int"))),
                4 => format!("CREATE TABLE k.x (k int PRIMARY KEY, {})", joined(&|at| format!("a{at} int"))),
                5 => format!("UPDATE k.w SET {} WHERE k=1", joined(&|_| "m[1]=1".into())),
                _ => format!("UPDATE k.w SET v='a' WHERE k=1 IF {}v='a'", "v='a' AND ".repeat(count)),
            };
            client.ask(&text, &[]);
            client.ask("SELECT key FROM system.local", &[]);
        }
        // Types and tables of more columns than there may be.
        client.tally.errors.remove(&0x2200);
    })
}

/// Batches of as many short statements as a frame holds.
fn many_updates(site: &TestServer) -> Tally {
    site.client().load("CREATE TABLE k.u (k int, c int, v int, PRIMARY KEY (k, c))", &[]);
    let times = site.times(1, 3);
    site.clients(8, |number, client| {
        for turn in 0..times {
            let count = [5_000, 50_000, 200_000][(number + turn) % 3];
            let mut text = "BEGIN UNLOGGED BATCH ".to_owned();
            for at in 0..count {
                text += &format!("UPDATE k.u SET v=1 WHERE k={} AND c={at};", at % (turn * 1_000 + 1));
            }
            client.ask(&(text + "APPLY BATCH"), &[]);
        }
    })
}

/// An endless stream of prepared statements with long texts.
fn prepared(site: &TestServer) -> Tally {
    let mut client = site.client();
    client.load("CREATE TABLE k.t (k int, c int, v blob, PRIMARY KEY (k, c))", &[]);
    insert(&mut client, (1, 1), b"value");
    let times = site.times(2_500, 12_500);
    site.clients(8, |number, client| {
        for turn in 0..times {
            let name = format!("{number}_{turn}");
            client.prepare(&format!(
                "SELECT v AS a{name} FROM k.t WHERE k = ? AND c IN ({})",
                "1, ".repeat(300) + "1"
            ));
            if turn % 100 == 99 {
                let long = "?, ".repeat(10_000);
                client.prepare(&format!("SELECT v AS b{name} FROM k.t WHERE k = ? AND c IN ({long}?)"));
            }
        }
    })
}
