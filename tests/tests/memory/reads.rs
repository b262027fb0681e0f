//! Workloads that read values, collections and answers that are large compared to the limit.

use super::client::{Client, Tally};
use super::{MIB, TestServer, Workload, long, noise, short};

/// All workloads of this file.
pub const WORKLOADS: &[Workload] = &[
    short("counts", counts),
    short("unpaged", unpaged),
    long("collections", collections),
    long("list_by_index", list_by_index),
    short("pages", pages),
    long("aggregates", aggregates),
    long("ordered_in", ordered_in),
    long("distinct", distinct),
    long("json", json),
    long("functions", functions),
    long("index", index),
    long("sai", sai),
    long("ranges", ranges),
    long("mixed_cache", mixed_cache),
    long("tracing", tracing),
    long("explain_analyze", explain_analyze),
    long("virtual_tables", virtual_tables),
];

/// Fills a table `k.t` with `rows` rows of `bytes` each, in partitions of `a_partition` rows, mostly on disk.
pub fn fill(site: &TestServer, (rows, bytes, a_partition): (usize, usize, usize)) {
    let mut client = site.client();
    client.load("CREATE TABLE k.t (k int, c int, v blob, PRIMARY KEY (k, c))", &[]);
    for row in 0..rows {
        insert(&mut client, (row / a_partition, row), &noise(bytes, row as u64));
    }
    site.server.admin(&["flush"]);
}

/// Writes a row of `k.t`.
pub fn insert(client: &mut Client, (k, c): (usize, usize), value: &[u8]) {
    let (k, c) = ((k as u32).to_be_bytes(), (c as u32).to_be_bytes());
    client.load("INSERT INTO k.t (k, c, v) VALUES (?, ?, ?)", &[&k, &c, value]);
}

/// The first workload of the issue: clients that count values of 15 MiB.
fn counts(site: &TestServer) -> Tally {
    fill(site, (site.times(8, 20), 15 * MIB, 20));
    let times = site.times(1, 2);
    site.clients(24, |_, client| {
        (0..times).for_each(|_| _ = client.ask("SELECT count(v) FROM k.t WHERE k = 0", &[]))
    })
}

fn unpaged(site: &TestServer) -> Tally {
    let rows = site.times(4, 12);
    fill(site, (rows, 15 * MIB, 4));
    let times = site.times(1, 3);
    site.clients(site.times(8, 16), |number, client| {
        for turn in 0..times {
            let row = (number + turn) % rows;
            client.ask(&format!("SELECT v FROM k.t WHERE k = {} AND c = {row}", row / 4), &[]);
            client.ask(&format!("SELECT * FROM k.t WHERE k = {} LIMIT 2", row / 4), &[]);
            client.ask("SELECT v FROM k.t", &[]);
        }
    })
}

/// A map, a list and a set of many elements.
fn collections(site: &TestServer) -> Tally {
    let mut client = site.client();
    client.load("CREATE TABLE k.m (k int PRIMARY KEY, m map<int, blob>, l list<blob>, s set<blob>)", &[]);
    for k in 0..4_u32 {
        for part in 0..6_u64 {
            let mut elements = Vec::new();
            let count = 2000_u32;
            elements.extend_from_slice(&count.to_be_bytes());
            for at in 0..count {
                let key = part as u32 * count + at;
                elements.extend_from_slice(&[&[0, 0, 0, 4][..], &key.to_be_bytes()].concat());
                let value = noise(512, u64::from(key) << 8 | u64::from(k));
                elements.extend_from_slice(&[&512_u32.to_be_bytes()[..], &value].concat());
            }
            client.load("UPDATE k.m SET m = m + ? WHERE k = ?", &[&elements, &k.to_be_bytes()]);
            let mut elements = count.to_be_bytes().to_vec();
            for at in 0..count {
                let value = noise(256, u64::from(at) << 16 | part << 8 | u64::from(k));
                elements.extend_from_slice(&[&256_u32.to_be_bytes()[..], &value].concat());
            }
            client.load(
                "UPDATE k.m SET l = l + ?, s = s + ? WHERE k = ?",
                &[&elements, &elements, &k.to_be_bytes()],
            );
        }
    }
    site.server.admin(&["flush"]);
    let times = site.times(2, 6);
    site.clients(24, |number, client| {
        for turn in 0..times {
            let k = (number + turn) % 4;
            client.ask(&format!("SELECT * FROM k.m WHERE k = {k}"), &[]);
            client.ask("SELECT m FROM k.m", &[]);
            client.ask(&format!("SELECT m[1], count(l) FROM k.m WHERE k = {k}"), &[]);
        }
    })
}

fn list_by_index(site: &TestServer) -> Tally {
    let mut client = site.client();
    client.load("CREATE TABLE k.l (k int PRIMARY KEY, l list<blob>)", &[]);
    for k in 0..3_u32 {
        for part in 0..24 {
            let mut elements = 1_u32.to_be_bytes().to_vec();
            elements.extend_from_slice(&(MIB as u32 / 2).to_be_bytes());
            elements.extend_from_slice(&noise(MIB / 2, part));
            client.load("UPDATE k.l SET l = l + ? WHERE k = ?", &[&elements, &k.to_be_bytes()]);
        }
    }
    site.server.admin(&["flush"]);
    let times = site.times(3, 10);
    site.clients(24, |number, client| {
        for turn in 0..times {
            let text = format!("UPDATE k.l SET l[{}] = ? WHERE k = {}", turn % 24, number % 3);
            client.ask(&text, &[&noise(1 << 10, number as u64)]);
            client.ask(&format!("DELETE l[{}] FROM k.l WHERE k = {}", turn % 10, number % 3), &[]);
            client.ask(
                &format!("UPDATE k.l SET l = l - ? WHERE k = {}", number % 3),
                &[&[0, 0, 0, 1, 0, 0, 0, 1, 7]],
            );
        }
    })
}

fn pages(site: &TestServer) -> Tally {
    fill(site, (site.times(30, 120), MIB, site.times(10, 40)));
    site.clients(site.times(12, 24), |number, client| {
        client.ask_in_pages(&format!("SELECT v FROM k.t WHERE k = {}", number % 3), 5000);
        client.ask_in_pages("SELECT * FROM k.t", 5000);
    })
}

fn aggregates(site: &TestServer) -> Tally {
    fill(site, (24, 10 * MIB, 8));
    site.clients(16, |number, client| {
        client.ask(&format!("SELECT max(v), min(v) FROM k.t WHERE k = {}", number % 3), &[]);
        client.ask(&format!("SELECT c, max(v) FROM k.t WHERE k = {} GROUP BY k, c", number % 3), &[]);
        client.ask("SELECT k, max(v), count(v) FROM k.t GROUP BY k", &[]);
        client.ask_in_pages("SELECT k, c, min(v) FROM k.t GROUP BY k, c", 5000);
    })
}

fn ordered_in(site: &TestServer) -> Tally {
    fill(site, (60, MIB, 20));
    site.clients(16, |_, client| {
        client.ask("SELECT c, v FROM k.t WHERE k IN (0, 1, 2) ORDER BY c DESC", &[]);
        client.ask("SELECT c, v FROM k.t WHERE k IN (0, 1, 2) ORDER BY c DESC LIMIT 5", &[]);
        client.ask("SELECT c, v FROM k.t WHERE k IN (0, 1, 2) AND c IN (1, 2, 21, 22, 41, 42)", &[]);
        client.ask_in_pages("SELECT c, v FROM k.t WHERE k IN (2, 1, 0)", 5000);
    })
}

fn distinct(site: &TestServer) -> Tally {
    let mut client = site.client();
    client.load("CREATE TABLE k.d (k text, c int, s blob static, v blob, PRIMARY KEY (k, c))", &[]);
    for row in 0..40_u32 {
        let key = format!("{row}{}", "k".repeat(60_000));
        let text = "INSERT INTO k.d (k, c, s, v) VALUES (?, 1, ?, ?)";
        client.load(text, &[key.as_bytes(), &noise(2 * MIB, u64::from(row)), &noise(2 * MIB, 1 << 20)]);
    }
    site.server.admin(&["flush"]);
    site.clients(16, |_, client| {
        client.ask("SELECT DISTINCT k FROM k.d", &[]);
        client.ask("SELECT DISTINCT k, s FROM k.d LIMIT 12", &[]);
        client.ask_in_pages("SELECT DISTINCT k, s FROM k.d", 5000);
    })
}

fn json(site: &TestServer) -> Tally {
    fill(site, (20, 5 * MIB, 5));
    let times = site.times(1, 2);
    site.clients(16, |number, client| {
        for _ in 0..times {
            client.ask(&format!("SELECT JSON * FROM k.t WHERE k = {} LIMIT 2", number % 4), &[]);
            client.ask(&format!("SELECT toJson(v) FROM k.t WHERE k = {}", number % 4), &[]);
            let text = format!("{{\"k\": 9, \"c\": {number}, \"v\": \"0x{}\"}}", "ab".repeat(4 * MIB));
            client.ask("INSERT INTO k.t JSON ?", &[text.as_bytes()]);
        }
    })
}

fn functions(site: &TestServer) -> Tally {
    let mut client = site.client();
    client.load("CREATE TABLE k.f (k int, c int, v text, b blob, PRIMARY KEY (k, c))", &[]);
    for row in 0..12_u32 {
        let values: [&[u8]; 3] = [&row.to_be_bytes(), &vec![b'x'; 6 * MIB], &noise(6 * MIB, u64::from(row))];
        client.load("INSERT INTO k.f (k, c, v, b) VALUES (0, ?, ?, ?)", &values);
    }
    site.server.admin(&["flush"]);
    site.clients(16, |_, client| {
        client.ask("SELECT textAsBlob(v), blobAsText(textAsBlob(v)) FROM k.f WHERE k = 0 LIMIT 2", &[]);
        client.ask("SELECT blobAsText(textAsBlob(v)) FROM k.f WHERE k = 0", &[]);
        client.ask("SELECT count(b), mask_hash(v), writetime(b) FROM k.f WHERE k = 0", &[]);
        client.ask("SELECT c, mask_inner(v, 1, 1) FROM k.f WHERE k = 0 LIMIT 3", &[]);
    })
}

fn index(site: &TestServer) -> Tally {
    indexed(site, "CREATE INDEX ON k.i (n)")
}

fn sai(site: &TestServer) -> Tally {
    indexed(site, "CREATE INDEX ON k.i (n) USING 'sai'")
}

/// Rows of a mebibyte with an index, which is built for half of them afterwards, and reads through it.
fn indexed(site: &TestServer, create: &str) -> Tally {
    let mut client = site.client();
    client.load("CREATE TABLE k.i (k int, c int, n int, v blob, PRIMARY KEY (k, c))", &[]);
    for row in 0..120_u32 {
        if row == 60 {
            site.server.admin(&["flush"]);
            client.load(create, &[]);
        }
        let values: [&[u8]; 3] = [&row.to_be_bytes(), &(row % 3).to_be_bytes(), &noise(MIB, u64::from(row))];
        client.load("INSERT INTO k.i (k, c, n, v) VALUES (1, ?, ?, ?)", &values);
    }
    site.server.admin(&["flush"]);
    site.clients(16, |number, client| {
        client.ask(&format!("SELECT * FROM k.i WHERE n = {} LIMIT 20", number % 3), &[]);
        client.ask(&format!("SELECT count(v) FROM k.i WHERE n = {}", number % 3), &[]);
        client.ask_in_pages(&format!("SELECT * FROM k.i WHERE n = {}", number % 3), 5000);
    })
}

fn ranges(site: &TestServer) -> Tally {
    fill(site, (400, 300 << 10, 1));
    site.clients(24, |number, client| {
        client.ask_in_pages("SELECT * FROM k.t", if number % 2 == 0 { 10_000 } else { 7 });
        client.ask("SELECT count(*) FROM k.t", &[]);
    })
}

/// Single reads that fill the block cache, between scans and values that do not fit in it.
fn mixed_cache(site: &TestServer) -> Tally {
    fill(site, (300, 400 << 10, 10));
    let mut client = site.client();
    (0..3).for_each(|row| insert(&mut client, (1000, row), &noise(15 * MIB, row as u64)));
    site.server.admin(&["flush"]);
    let times = site.times(50, 200);
    site.clients(16, |number, client| {
        for turn in 0..times {
            let row = (number * 37 + turn * 11) % 300;
            client.ask(&format!("SELECT v FROM k.t WHERE k = {} AND c = {row}", row / 10), &[]);
            if turn % 25 == 24 {
                client.ask(&format!("SELECT v FROM k.t WHERE k = 1000 AND c = {}", turn % 3), &[]);
            }
        }
    })
}

fn tracing(site: &TestServer) -> Tally {
    fill(site, (12, 8 * MIB, 4));
    site.clients(16, |number, client| {
        for _ in 0..3 {
            client.ask_traced(&format!("SELECT * FROM k.t WHERE k = {} LIMIT 2", number % 3));
            client.ask_traced("SELECT count(v) FROM k.t");
        }
    })
}

fn explain_analyze(site: &TestServer) -> Tally {
    fill(site, (12, 8 * MIB, 4));
    site.clients(16, |number, client| {
        for _ in 0..3 {
            client.ask(&format!("EXPLAIN ANALYZE SELECT * FROM k.t WHERE k = {}", number % 3), &[]);
            client.ask("EXPLAIN ANALYZE SELECT max(v) FROM k.t", &[]);
        }
    })
}

fn virtual_tables(site: &TestServer) -> Tally {
    fill(site, (200, 64 << 10, 1));
    let times = site.times(5, 30);
    site.clients(24, |_, client| {
        for _ in 0..times {
            for table in
                ["settings", "clients", "sstable_tasks", "caches", "thread_pools", "local_read_latency"]
            {
                client.ask(&format!("SELECT * FROM system_views.{table}"), &[]);
            }
            client.ask("SELECT * FROM system_virtual_schema.columns", &[]);
        }
    })
}
