//! Sends random tables through all steps: Cassandra writes, Helenus imports, compacts and exports, Cassandra loads and
//! verifies. The rows must be the same at every step.
//!
//! The seed is printed. To run longer or with another seed, and with every target of an export instead of a random one:
//!
//!     ROUND_TRIPS=40 ROUND_TRIP_SEED=7 ROUND_TRIP_TARGETS=all cargo xtask e2e --test round_trips
//!
//! `COMPACTIONS=N` compares Data.db of N tables, byte for byte, after Cassandra's own compaction and after Helenus's
//! (docs/formats/compaction.md). A normal run compares a few.

use std::fs;
use std::path::{Path, PathBuf};

use conformance::generate::{Draw, GeneratedTable, statement, table};
use conformance::script::Action;
use end_to_end::{Cql, Oracle, Server, files, offline, tool};
use tempfile::TempDir;

const TARGETS: [&str; 4] = ["cassandra-5-bti", "cassandra-5", "cassandra-4", "scylla"];
/// Number of random statements for a table. About half of them are writes, and some of these are refused.
const STATEMENTS: usize = 300;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn make_keyspace(cql: &Cql, keyspace: &str) {
    cql.run(&format!("DROP KEYSPACE IF EXISTS {keyspace}"));
    cql.run(&format!(
        "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
}

/// Creates random tables and writes into them, with flushes in between. `more` is added to the options of each table.
fn fill(
    oracle: &Oracle,
    cql: &Cql,
    (keyspace, seed): (&str, u64),
    count: u64,
    more: &str,
) -> Vec<GeneratedTable> {
    make_keyspace(cql, keyspace);
    let mut draws: Vec<Draw> = (0..count).map(|number| Draw::new(seed, number)).collect();
    let mut tables = Vec::new();
    for (number, draw) in draws.iter_mut().enumerate() {
        let made = table(draw, &format!("{keyspace}.t{number}"));
        for create in &made.create {
            if create.starts_with("CREATE INDEX") {
                // Some statements are invalid on purpose.
                let _refused = cql.try_run(create);
                continue;
            }
            let is_table = create.starts_with("CREATE TABLE") && !more.is_empty();
            let joint = if create.contains(" WITH ") { " AND " } else { " WITH " };
            cql.run(&if is_table { format!("{create}{joint}{more}") } else { create.clone() });
        }
        tables.push(made);
    }
    for _ in 0..3 {
        for (draw, table) in draws.iter_mut().zip(&mut tables) {
            for _ in 0..STATEMENTS / 3 {
                let Action::Run(run) = statement(draw, table) else { continue };
                let is_write = ["INSERT", "UPDATE", "DELETE", "BEGIN"].contains(&run.verb().as_ref());
                if is_write && run.bound.is_empty() {
                    // Many statements are invalid, on purpose or by chance.
                    let _refused = cql.try_run(&run.text);
                }
            }
        }
        oracle.nodetool(&["flush", keyspace]);
    }
    tables
}

/// All rows of all tables as text, so that NaN compares as equal.
fn rows(cql: &Cql, tables: &[GeneratedTable]) -> Vec<String> {
    let of = |table: &GeneratedTable| {
        let rows = cql.rows(&format!("SELECT * FROM {}", table.name));
        rows.into_iter().map(|row| format!("{}: {row:?}", table.name)).collect::<Vec<_>>()
    };
    tables.iter().flat_map(of).collect()
}

fn assert_same(found: &[String], expected: &[String], what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

fn name_of(table: &GeneratedTable) -> &str {
    table.name.split_once('.').map_or(&*table.name, |(_, name)| name)
}

#[test]
fn random_tables_go_all_the_way_round_and_come_back_as_they_were() {
    let (count, seed) = (setting("ROUND_TRIPS", 3), setting("ROUND_TRIP_SEED", 20_261_122));
    println!("seed {seed}, {count} tables");
    let keyspace = format!("round_{seed}_{}", std::process::id());
    let oracle = Oracle::shared();
    let theirs = Cql::connect(oracle.address());
    let tables = fill(&oracle, &theirs, (&keyspace, seed), count, "");
    let expected = rows(&theirs, &tables);
    assert!(expected.len() as u64 > count, "{} rows are too few", expected.len());
    oracle.nodetool(&["snapshot", "-t", "round", &keyspace]);

    let server = Server::start();
    let (data, ours) = (oracle.data(), server.data());
    tool(&["import", text(&data), "--snapshot", "round", "--keyspace", &keyspace, "--data", text(&ours)]);
    let cql = Cql::connect(server.address());
    assert_same(&rows(&cql, &tables), &expected, &format!("imported, seed {seed}"));
    server.admin(&["compact", &keyspace]);
    assert_same(&rows(&cql, &tables), &expected, &format!("compacted, seed {seed}"));

    let scratch = TempDir::with_prefix("helenus-round-").expect("a temporary directory");
    let all = std::env::var("ROUND_TRIP_TARGETS").is_ok_and(|targets| targets == "all");
    let drawn = [TARGETS[seed as usize % TARGETS.len()]];
    for target in if all { &TARGETS[..] } else { &drawn[..] } {
        let out = scratch.path().join(target);
        tool(&["export", text(&out), &keyspace, "--for", target, "--data", text(&ours)]);
        for table in &tables {
            theirs.run(&format!("TRUNCATE {}", table.name));
        }
        for (number, table) in tables.iter().enumerate() {
            let folder = out.join(&keyspace).join(name_of(table));
            if files::tables(&folder).is_empty() {
                continue;
            }
            if all || number == 0 {
                offline::verify_as_oracle(&oracle, &keyspace, name_of(table), &folder);
            }
            oracle.import(&keyspace, name_of(table), &folder);
        }
        assert_same(&rows(&theirs, &tables), &expected, &format!("back by {target}, seed {seed}"));
    }
    theirs.run(&format!("DROP KEYSPACE {keyspace}"));
}

/// The only Data.db of a table's folder, if there is one.
fn data_of(folder: &Path) -> Option<PathBuf> {
    let found = files::tables(folder);
    assert!(found.len() < 2, "{found:?}");
    found.into_iter().next()
}

#[test]
fn a_compaction_of_cassandras_and_ours_make_the_same_bytes() {
    let count = setting("COMPACTIONS", 4);
    let seed = setting("ROUND_TRIP_SEED", 20_261_122);
    // The keyspace has a new name, because a node keeps snapshots of dropped tables, which an import would take too.
    let keyspace = format!("compacted_{seed}_{}", std::process::id());
    let oracle = Oracle::shared();
    let theirs = Cql::connect(oracle.address());
    let options =
        "compression = {'enabled': false} AND compaction = {'class': 'SizeTieredCompactionStrategy'}";
    let tables = fill(&oracle, &theirs, (&keyspace, seed), count, options);
    oracle.nodetool(&["snapshot", "-t", "before", &keyspace]);
    oracle.nodetool(&["compact", &keyspace]);

    let folder = TempDir::with_prefix("helenus-compact-").expect("a temporary directory");
    let yaml = folder.path().join("helenus.yaml");
    fs::write(&yaml, "gc_grace: obey\n").expect("write the settings");
    let yaml = text(&yaml).to_owned();
    let server = Server::start_in(folder, &["--config", &yaml]);
    let (data, ours) = (oracle.data(), server.data());
    tool(&["import", text(&data), "--snapshot", "before", "--keyspace", &keyspace, "--data", text(&ours)]);
    server.admin(&["compact", &keyspace]);
    let cql = Cql::connect(server.address());
    let (mut equal, mut compared) = (0, 0);
    for table in &tables {
        let their_data = data_of(&oracle.table_folder(&keyspace, name_of(table)));
        let our_data = data_of(&files::table_folder(&server.tables(), &cql, &keyspace, name_of(table)));
        let (Some(their_data), Some(our_data)) = (their_data, our_data) else { continue };
        compared += 1;
        let (a, b) = (fs::read(&their_data).expect("read"), fs::read(&our_data).expect("read"));
        if a == b {
            equal += 1;
            continue;
        }
        let at = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        println!("{}: {} and {} bytes, different from byte {at}", table.name, a.len(), b.len());
        let dumps = [&their_data, &our_data].map(|file| tool(&["sstable", "dump", text(file)]));
        for (theirs, ours) in dumps[0].lines().zip(dumps[1].lines()).filter(|(a, b)| a != b).take(2) {
            println!("  {theirs}\n  {ours}");
        }
        println!("  {}", table.create.join("; "));
    }
    println!("seed {seed}: {equal} of {compared} tables are equal byte for byte");
    // For a table without rows, either side may have no file.
    assert!(compared * 2 > count, "only {compared} of {count} tables have rows");
    assert_eq!(equal, compared, "seed {seed}");
    theirs.run(&format!("DROP KEYSPACE {keyspace}"));
}
