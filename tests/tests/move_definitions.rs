//! Definitions go with a move whenever they are made: before it, between two, and while it runs, whatever ends it meanwhile. The program reads
//! `system_schema` of both sides and compares it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use end_to_end::draw::{Draw, rounds};
use end_to_end::{Cql, Server, refused, tool};

#[path = "cluster/moving.rs"]
mod moving;

use moving::{until_done, wait_for_tail};

const PATIENCE: Duration = Duration::from_secs(60);

/// What is compared; ids differ, and `cdc` is of the move.
const QUERIES: [&str; 6] = [
    "SELECT table_name, additional_write_policy, allow_auto_snapshot, bloom_filter_fp_chance, caching, comment, compaction, compression, \
     crc_check_chance, default_time_to_live, gc_grace_seconds, incremental_backups, max_index_interval, memtable, \
     memtable_flush_period_in_ms, min_index_interval, read_repair, speculative_retry FROM system_schema.tables WHERE keyspace_name = 'def'",
    "SELECT table_name, index_name, kind, options FROM system_schema.indexes WHERE keyspace_name = 'def'",
    "SELECT table_name, column_name, kind, type, position FROM system_schema.columns WHERE keyspace_name = 'def'",
    "SELECT type_name, field_names, field_types FROM system_schema.types WHERE keyspace_name = 'def'",
    "SELECT table_name, column_name, function_name FROM system_schema.column_masks WHERE keyspace_name = 'def'",
    "SELECT keyspace_name, durable_writes FROM system_schema.keyspaces WHERE keyspace_name = 'def'",
];

fn definitions(cql: &Cql) -> Vec<String> {
    let rows = QUERIES.iter().flat_map(|query| cql.rows(query));
    let sorted: BTreeSet<String> = rows.map(|row| format!("{row:?}")).collect();
    sorted.into_iter().collect()
}

/// The names of the indexes.
fn indexes(cql: &Cql) -> BTreeSet<String> {
    let rows = cql.rows("SELECT index_name FROM system_schema.indexes WHERE keyspace_name = 'def'");
    rows.iter().map(|row| format!("{row:?}")).collect()
}

/// A statement that changes a definition, not the columns.
fn change(draw: &mut Draw, number: usize) -> String {
    let table = *draw.one(&["def.a", "def.b", "def.\"Quoted\""]);
    let options = [
        format!("comment = 'a ''quoted'' text {number}\n    AND cdc = true'"),
        format!("default_time_to_live = {}", 10_000_000 + number),
        format!("gc_grace_seconds = {}", 1_000_000 + number),
        format!("bloom_filter_fp_chance = 0.0{}", 1 + number % 9),
        "compaction = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': 100}".to_owned(),
        "compression = {'class': 'ZstdCompressor', 'chunk_length_in_kb': 32}".to_owned(),
        "compression = {'enabled': false}".to_owned(),
        "caching = {'keys': 'NONE', 'rows_per_partition': 10}".to_owned(),
        "speculative_retry = '90p' AND additional_write_policy = 'NEVER'".to_owned(),
        "read_repair = 'NONE' AND memtable_flush_period_in_ms = 3600000".to_owned(),
    ];
    match draw.below(7) {
        0 => format!("CREATE INDEX i{number} ON {table} (n)"),
        1 => format!("CREATE INDEX i{number} ON {table} (keys(m))"),
        2 => format!(
            "CREATE CUSTOM INDEX i{number} ON {table} (s) USING 'StorageAttachedIndex' WITH OPTIONS = {{'case_sensitive': 'false'}}"
        ),
        3 => format!("ALTER TABLE {table} ALTER s {}", draw.one(&["MASKED WITH DEFAULT", "DROP MASKED"])),
        4 => format!("ALTER KEYSPACE def WITH durable_writes = {}", draw.one(&["true", "false"])),
        _ => format!("ALTER TABLE {table} WITH {}", draw.one(&options)),
    }
}

#[test]
fn whatever_is_defined_before_between_and_during_moves_is_defined_at_the_target() {
    let masks = ["--set", "dynamic_data_masking_enabled=true"];
    let (mut source, target) = (Server::start_with(&masks), Server::start_with(&masks));
    let data = source.data().to_str().expect("UTF-8").to_owned();
    let verb = |args: &[&str]| -> Vec<String> {
        [&["move"], args, &["--data", &data]].concat().into_iter().map(str::to_owned).collect()
    };
    let mut here = Cql::connect(source.address());
    here.run("CREATE KEYSPACE def WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    here.run("CREATE TYPE def.place (street text)");
    for name in ["a", "b", "\"Quoted\""] {
        here.run(&format!(
            "CREATE TABLE def.{name} (k int PRIMARY KEY, n int, s text, m map<text, int>, gone int, p frozen<place>)"
        ));
        here.run(&format!("ALTER TABLE def.{name} DROP gone"));
    }
    let mut draw = Draw::new("definitions", 51);
    let mut number = 0;
    let mut changes = |here: &Cql, draw: &mut Draw| {
        let mut said = Vec::new();
        for _ in 0..6 {
            number += 1;
            let text = change(draw, number);
            // A second index of a column is refused.
            if here.try_run(&text).is_ok() {
                said.push(text);
            }
            if draw.below(8) == 0 {
                let indexes =
                    here.rows("SELECT index_name FROM system_schema.indexes WHERE keyspace_name = 'def'");
                let name = indexes.first().and_then(|row| row[0].as_ref()?.as_text().cloned());
                if let Some(name) = name {
                    here.run(&format!("DROP INDEX def.{name}"));
                    said.push(format!("DROP INDEX def.{name}"));
                }
            }
        }
        said.join("; ")
    };
    let mut said = changes(&here, &mut draw);
    tool(&verb(&["start", "--to", target.address()]));
    for round in 0..rounds(5) {
        said.push_str("; ");
        said.push_str(&changes(&here, &mut draw));
        match draw.below(4) {
            0 => {
                // Anywhere between two statements at the target.
                source.kill();
                source.restart();
                here = Cql::connect(source.address());
            }
            1 => {
                // What only the aborted move has made is the operator's from then on: an index that is dropped here would stay there, and
                // refuse the next one of its column.
                let there = Cql::connect(target.address());
                let began = Instant::now();
                while indexes(&here) != indexes(&there) {
                    assert!(began.elapsed() < PATIENCE, "round {round}: {said}");
                }
                tool(&verb(&["abort"]));
                here.run(&format!("ALTER TABLE def.a WITH comment = 'between {round}'"));
                tool(&verb(&["start", "--to", target.address()]));
            }
            2 => drop(tool(&verb(&["resume"]))),
            _ => {}
        }
        wait_for_tail(&data);
        let there = Cql::connect(target.address());
        let began = Instant::now();
        loop {
            let (of_here, of_target) = (definitions(&here), definitions(&there));
            let lost: Vec<_> = of_here.iter().filter(|line| !of_target.contains(line)).collect();
            if lost.is_empty() {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "round {round}: {said}: {lost:#?}");
        }
    }
    // What an operator changes there is told, and refuses a cut where clients would see it.
    wait_for_tail(&data);
    let there = Cql::connect(target.address());
    there.run("ALTER TABLE def.b WITH comment = 'of the operator'");
    // It stays when something else of the table changes here.
    here.run("ALTER TABLE def.b WITH gc_grace_seconds = 4242");
    let of_b =
        "SELECT gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = 'def' AND table_name = 'b'";
    let began = Instant::now();
    while !format!("{:?}", there.rows(of_b)).contains("4242") {
        assert!(began.elapsed() < PATIENCE);
    }
    let told = tool(&verb(&["verify"]));
    assert!(told.contains("comment is") && told.contains("'of the operator' at the target"), "{told}");
    assert!(tool(&verb(&["cutover", "--dry-run"])).contains("'of the operator' at the target"));
    there.run("ALTER TABLE def.a WITH default_time_to_live = 5");
    let told = refused(&verb(&["verify"]));
    assert!(told.contains("1 difference"), "{told}");
    let told = refused(&verb(&["cutover", "--dry-run"]));
    assert!(told.contains("default_time_to_live is") && told.contains("--accept-differences"), "{told}");
    until_done(&verb(&["cutover", "--accept-differences", "--pause", "5s"]));
}

/// The statements of a move are sent one by one, so `kill -9` falls between any two of them.
#[test]
fn what_is_left_of_a_tables_definition_is_made_by_the_next_start() {
    let (source, target) = (Server::start(), Server::start());
    let data = source.data().to_str().expect("UTF-8").to_owned();
    let (here, there) = (Cql::connect(source.address()), Cql::connect(target.address()));
    for cql in [&here, &there] {
        cql.run(
            "CREATE KEYSPACE def WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        cql.run("CREATE TABLE def.a (k int PRIMARY KEY, n int, gone int)");
        cql.run("CREATE TYPE def.place (street text)");
    }
    // The type of an added field is made before it is added.
    here.run("CREATE TYPE def.zone (name text)");
    here.run("ALTER TYPE def.place ADD zone frozen<zone>");
    // As a move leaves it that has come as far as the table.
    here.run("ALTER TABLE def.a DROP gone");
    here.run("CREATE INDEX of_n ON def.a (n)");
    here.run("ALTER TABLE def.a WITH default_time_to_live = 777 AND comment = 'c'");
    let start = ["move", "start", "--to", target.address(), "--data", &data];
    let plan = tool(&["move", "plan", "--to", target.address(), "--data", &data]);
    for part in ["CREATE INDEX IF NOT EXISTS of_n", "WITH default_time_to_live = 777", "DROP gone"] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    tool(&start);
    wait_for_tail(&data);
    assert_eq!(definitions(&here), definitions(&there));
}

/// Values of user types are stored by the positions of their fields.
#[test]
fn a_type_with_other_fields_at_the_target_refuses_the_move() {
    let (source, target) = (Server::start(), Server::start());
    let data = source.data().to_str().expect("UTF-8").to_owned();
    for (server, fields) in [(&source, "street text, number text"), (&target, "number text, street text")] {
        let cql = Cql::connect(server.address());
        cql.run(
            "CREATE KEYSPACE def WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        cql.run(&format!("CREATE TYPE def.place ({fields})"));
        cql.run("CREATE TABLE def.a (k int PRIMARY KEY, p frozen<place>)");
    }
    let said = refused(&["move", "start", "--to", target.address(), "--data", &data]);
    assert!(
        said.contains("def.place is (street text, number text) here and (number text, street text)"),
        "{said}"
    );
}

/// Problems are of a table, of a type, or of a keyspace: the tables that have none go.
#[test]
fn what_cannot_go_leaves_out_the_tables_that_need_it_alone() {
    let (source, target) = (Server::start(), Server::start());
    let data = source.data().to_str().expect("UTF-8").to_owned();
    let (here, there) = (Cql::connect(source.address()), Cql::connect(target.address()));
    for (cql, fields) in [(&here, "street text, number text"), (&there, "number text, street text")] {
        cql.run(
            "CREATE KEYSPACE def WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        cql.run(&format!("CREATE TYPE def.place ({fields})"));
        cql.run("CREATE TYPE def.home (at frozen<place>)");
    }
    here.run("CREATE KEYSPACE far WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    // One node has no majority of it.
    there.run("CREATE KEYSPACE far WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 5}");
    here.run("CREATE TABLE far.t (k int PRIMARY KEY)");
    for (table, column) in [
        ("direct", "p frozen<place>"),
        ("listed", "p list<frozen<place>>"),
        ("nested", "p map<text, frozen<home>>"),
        ("free", "p text"),
        ("columns", "p text"),
    ] {
        here.run(&format!("CREATE TABLE def.{table} (k int PRIMARY KEY, {column})"));
    }
    there.run("CREATE TABLE def.columns (k int PRIMARY KEY, p int)");
    let plan: serde_json::Value =
        serde_json::from_str(&tool(&["move", "plan", "--to", target.address(), "--data", &data, "--json"]))
            .expect("a plan");
    let left_out: Vec<&String> = plan["left_out"].as_object().expect("tables").keys().collect();
    assert_eq!(left_out, ["def.columns", "def.direct", "def.listed", "def.nested", "far.t"], "{plan}");
    assert!(!plan["to_make"].to_string().contains("def.direct"), "{plan}");
    let said = tool(&["move", "start", "--to", target.address(), "--data", &data]);
    assert!(said.contains("the move of 1 table has begun"), "{said}");
    for part in
        ["def.nested: the type def.place is", "far.t: keyspace far has 5 copies", "def.columns: column p is"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    // The type that is wrong there is none of this table's.
    wait_for_tail(&data);
}

/// What only the target has would be lost by a rollback, which is refused for it.
#[test]
fn what_a_rollback_would_lose_refuses_the_cut_unless_no_way_back_is_wanted() {
    let (source, target) = (Server::start(), Server::start());
    let data = source.data().to_str().expect("UTF-8").to_owned();
    let (here, there) = (Cql::connect(source.address()), Cql::connect(target.address()));
    here.run("CREATE KEYSPACE def WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    for text in [
        "CREATE TYPE def.place (street text)",
        "CREATE TYPE def.unused (n int)",
        "CREATE TABLE def.a (k int PRIMARY KEY, p list<frozen<place>>)",
        "CREATE TABLE def.b (k int PRIMARY KEY, n int)",
    ] {
        here.run(text);
    }
    let verb = |args: &[&str]| -> Vec<String> {
        [&["move"], args, &["--data", &data]].concat().into_iter().map(str::to_owned).collect()
    };
    tool(&verb(&["start", "--to", target.address()]));
    wait_for_tail(&data);
    there.run("ALTER TYPE def.unused ADD other int");
    tool(&verb(&["verify"]));
    until_done(&verb(&["cutover", "--dry-run"]));
    let dry = |more: &[&str]| verb(&[&["cutover", "--dry-run", "--pause", "5s"], more].concat());
    for (alter, told, undo) in [
        (
            "ALTER TABLE def.b ADD extra int",
            "def.b: the target alone has a column extra",
            Some("ALTER TABLE def.b DROP extra"),
        ),
        ("ALTER TYPE def.place ADD zip text", "the type def.place has a field zip at the target alone", None),
        ("DROP TABLE def.b", "def.b: the target has lost the table", None),
    ] {
        there.run(alter);
        // The rows of a lost table cannot be compared either.
        refused(&verb(&["verify"]));
        assert!(tool(&verb(&["status"])).contains(told), "{alter}: {}", tool(&verb(&["status"])));
        let said = refused(&dry(&[]));
        assert!(said.contains(told) && said.contains("--accept-differences"), "{alter}: {said}");
        if alter.starts_with("ALTER") {
            let said = refused(&dry(&["--accept-differences"]));
            assert!(said.contains(told) && said.contains("--rollback-within 0"), "{alter}: {said}");
            let said = until_done(&dry(&["--accept-differences", "--rollback-within", "0s"]));
            assert!(said.contains("could be cut over") && said.contains(told), "{alter}: {said}");
        }
        if let Some(undo) = undo {
            there.run(undo);
            tool(&verb(&["verify"]));
        }
    }
}

/// The same on the way here: a type that is here keeps its fields, and those of the cluster must fit.
#[test]
fn a_type_with_other_fields_here_refuses_a_pull() {
    let (here, cluster) = (Server::start(), Server::start());
    let data = here.data().to_str().expect("UTF-8").to_owned();
    for (server, fields, unused) in
        [(&here, "street text", "a int"), (&cluster, "street text, number text", "b int")]
    {
        let cql = Cql::connect(server.address());
        cql.run(
            "CREATE KEYSPACE def WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        cql.run(&format!("CREATE TYPE def.place ({fields})"));
        cql.run(&format!("CREATE TYPE def.unused ({unused})"));
        cql.run("CREATE TYPE def.home (at frozen<place>)");
    }
    let there = Cql::connect(cluster.address());
    there.run("CREATE TABLE def.a (k int PRIMARY KEY, p frozen<list<frozen<home>>>)");
    there.run("INSERT INTO def.a (k, p) VALUES (1, [{at: {street: 's', number: '7'}}])");
    let pull = ["pull", cluster.address(), "--tables", "def.a", "--data", &data];
    let said = refused(&pull);
    assert!(said.contains("def.place is (street text) here and (street text, number text)"), "{said}");
    let cql = Cql::connect(here.address());
    assert_eq!(
        cql.rows("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'def'").len(),
        0,
        "nothing is half done"
    );
    cql.run("ALTER TYPE def.place ADD number text");
    tool(&pull);
    assert!(format!("{:?}", cql.rows("SELECT p FROM def.a")).contains('7'));
}

/// An operator's column with the name of one that was dropped here, and an index of the operator's own, stay at the target: whatever is
/// dropped here later, and after a restart.
#[test]
fn what_an_operator_has_made_at_the_target_stays_there() {
    let (mut source, target) = (Server::start(), Server::start());
    let data = source.data().to_str().expect("UTF-8").to_owned();
    let (mut here, there) = (Cql::connect(source.address()), Cql::connect(target.address()));
    here.run("CREATE KEYSPACE def WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    here.run("CREATE TABLE def.a (k int PRIMARY KEY, n int, s text, gone int)");
    here.run("INSERT INTO def.a (k, n, s) VALUES (1, 1, 'x')");
    here.run("ALTER TABLE def.a DROP gone");
    tool(&["move", "start", "--to", target.address(), "--data", &data]);
    wait_for_tail(&data);
    there.run("ALTER TABLE def.a ADD gone int");
    there.run("UPDATE def.a SET gone = 5 WHERE k = 1");
    there.run("CREATE INDEX own ON def.a (s)");
    here.run("CREATE INDEX own ON def.a (n)");
    let lists_own =
        || refused(&["move", "cutover", "--dry-run", "--data", &data]).contains("the index own is");
    let begin = Instant::now();
    while !lists_own() {
        assert!(begin.elapsed() < PATIENCE, "the difference is not told");
    }
    source.kill();
    source.restart();
    here = Cql::connect(source.address());
    wait_for_tail(&data);
    here.run("DROP INDEX def.own");
    // What is carried for the comment would be carried for the index too.
    here.run("ALTER TABLE def.a WITH comment = 'later'");
    let comment = "SELECT comment FROM system_schema.tables WHERE keyspace_name = 'def' AND table_name = 'a'";
    let begin = Instant::now();
    while !format!("{:?}", there.rows(comment)).contains("later") {
        assert!(begin.elapsed() < PATIENCE, "the comment does not come");
    }
    assert_eq!(there.rows("SELECT k FROM def.a WHERE s = 'x'").len(), 1, "by the operator's index");
    assert!(format!("{:?}", there.rows("SELECT gone FROM def.a")).contains('5'), "the operator's column");
}
