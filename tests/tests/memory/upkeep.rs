//! Workloads of background activities: compaction, imports, copies, and a schema of thousands of tables.

use super::client::Tally;
use super::reads::{fill, insert};
use super::{MIB, TestServer, Workload, long, noise};

/// All workloads of this file.
pub const WORKLOADS: &[Workload] = &[
    long("compaction", compaction),
    long("import", import),
    long("copies", copies),
    long("schema", schema),
    long("describe", describe),
    long("deep_partition", deep_partition),
];

/// Large rows in many SSTables, which are compacted while they are read.
fn compaction(site: &TestServer) -> Tally {
    fill(site, (6, 10 * MIB, 6));
    let mut client = site.client();
    for generation in 0..3 {
        (0..6)
            .for_each(|row| insert(&mut client, (0, row), &noise(10 * MIB, (generation * 10 + row) as u64)));
        site.server.admin(&["flush"]);
    }
    site.clients(8, |number, client| {
        if number == 0 {
            site.server.admin(&["compact"]);
            client.tally.done += 1;
        }
        (0..6).for_each(|row| _ = client.ask(&format!("SELECT v FROM k.t WHERE k = 0 AND c = {row}"), &[]));
    })
}

/// Export and import of large rows in large chunks.
fn import(site: &TestServer) -> Tally {
    let mut client = site.client();
    client.load(
        "CREATE TABLE k.t (k int, c int, v blob, PRIMARY KEY (k, c)) \
         WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 1024}",
        &[],
    );
    (0..30).for_each(|row| insert(&mut client, (row / 10, row), &noise(5 * MIB, row as u64)));
    let folder = site.server.data().parent().expect("a folder").join("exported");
    let folder = folder.to_str().expect("UTF-8").to_owned();
    let run = |args: &[&str]| {
        let data = site.server.data();
        let output = std::process::Command::new(end_to_end::binary())
            .args(args)
            .arg("--data")
            .arg(&data)
            .output()
            .expect("run helenus");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {errors}");
    };
    run(&["export", &folder, "k", "t"]);
    client.load("TRUNCATE k.t", &[]);
    run(&["import", &folder]);
    client.ask("SELECT count(v) FROM k.t", &[]);
    client.tally
}

/// Snapshots, a backup and a verification over the admin socket.
fn copies(site: &TestServer) -> Tally {
    fill(site, (30, 5 * MIB, 10));
    let target = site.server.data().parent().expect("a folder").join("backup.tar");
    for _ in 0..5 {
        site.server.admin(&["snapshot"]);
    }
    site.server.admin(&["verify"]);
    let output = std::process::Command::new(end_to_end::binary())
        .arg("backup")
        .arg(&target)
        .arg("--data")
        .arg(site.server.data())
        .output()
        .expect("run helenus backup");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    site.clients(4, |number, client| {
        client.ask(&format!("SELECT count(v) FROM k.t WHERE k = {}", number % 3), &[]);
    })
}

fn make_tables(site: &TestServer, count: usize) -> Tally {
    let mut client = site.client();
    for number in 0..count {
        let columns: String = (0..20).map(|column| format!(", column_{column} text")).collect();
        // A small limit has no memory for all of them.
        if !client.ask(&format!("CREATE TABLE k.table_{number} (k int PRIMARY KEY{columns})"), &[]) {
            break;
        }
        client.load(&format!("INSERT INTO k.table_{number} (k, column_1) VALUES (1, 'x')"), &[]);
    }
    client.tally
}

fn schema(site: &TestServer) -> Tally {
    let mut sum = make_tables(site, site.times(1000, 3000));
    sum.add(site.clients(8, |_, client| {
        client.ask_in_pages("SELECT * FROM system_schema.columns", 5000);
        client.ask("SELECT * FROM system_schema.tables", &[]);
    }));
    sum
}

fn describe(site: &TestServer) -> Tally {
    let mut sum = make_tables(site, site.times(500, 1000));
    sum.add(site.clients(12, |_, client| {
        client.ask("DESCRIBE KEYSPACE k", &[]);
        client.ask_in_pages("DESCRIBE FULL SCHEMA", 5000);
        client.ask("DESCRIBE TABLES", &[]);
    }));
    sum
}

/// A partition of very many small rows, counted, paged and read backwards.
fn deep_partition(site: &TestServer) -> Tally {
    let mut client = site.client();
    client.load("CREATE TABLE k.t (k int, c int, v blob, PRIMARY KEY (k, c))", &[]);
    let batches = site.times(200, 1000);
    for batch in 0..batches {
        let rows: String = (0..200)
            .map(|at| {
                format!("INSERT INTO k.t (k, c, v) VALUES (0, {}, 0x0102030405060708);", batch * 200 + at)
            })
            .collect();
        client.load(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH"), &[]);
    }
    site.clients(12, |_, client| {
        client.ask("SELECT count(*), max(c) FROM k.t WHERE k = 0", &[]);
        client.ask("SELECT c, max(v) FROM k.t WHERE k = 0 GROUP BY k, c", &[]);
        client.ask("SELECT * FROM k.t WHERE k = 0 ORDER BY c DESC", &[]);
        client.ask_in_pages("SELECT * FROM k.t WHERE k = 0", 50_000);
    })
}
