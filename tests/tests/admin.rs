//! Tests `helenus admin`, `backup`, `restore`, `completions` and `man` of the real binary. The layouts are compared
//! with recorded output of a Cassandra's nodetool (`tests/fixtures/nodetool`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use end_to_end::{Cql, Oracle, Server, binary, files, refused, root, tool};
use scylla::value::CqlValue;
use serde_json::Value;
use tempfile::TempDir;

const KEYSPACE: &str = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

fn recorded(verb: &str) -> String {
    let path = root().join("tests/fixtures/nodetool").join(format!("{verb}.txt"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn scratch() -> TempDir {
    TempDir::with_prefix("helenus-admin-").expect("a temporary directory")
}

/// Creates the tables that nodetool's output was recorded for.
fn recorded_tables(cql: &Cql) {
    cql.run(&format!("CREATE KEYSPACE admin_a {KEYSPACE}"));
    cql.run("CREATE TABLE admin_a.t (k int, c int, v text, PRIMARY KEY (k, c))");
    cql.run("CREATE TABLE admin_a.lv (k int PRIMARY KEY, v text) WITH compaction = {'class': 'LeveledCompactionStrategy'}");
    cql.run("CREATE INDEX ix ON admin_a.t (v)");
    cql.run("INSERT INTO admin_a.t (k, c, v) VALUES (1, 1, 'a')");
    cql.run("INSERT INTO admin_a.t (k, c, v) VALUES (2, 1, 'b')");
    cql.run("INSERT INTO admin_a.lv (k, v) VALUES (2, 'b')");
    assert_eq!(cql.rows("SELECT * FROM admin_a.t WHERE k = 1").len(), 1);
    assert_eq!(cql.rows("SELECT * FROM admin_a.t").len(), 2);
}

/// The text before the first colon of each line, with its indent.
fn names(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim_end()).collect()
}

/// The words of each line before its first number.
fn first_words(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let end = words
            .iter()
            .position(|word| word.starts_with(|first: char| first.is_ascii_digit()) && *word != "15");
        words.get(..end.unwrap_or(words.len())).unwrap_or_default().join(" ")
    };
    text.lines().map(name).collect()
}

#[test]
fn verbs_print_what_nodetool_prints_in_its_layout() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    recorded_tables(&cql);
    server.admin(&["flush", "admin_a"]);
    let told = server.admin(&["snapshot", "-t", "s1", "admin_a"]);
    assert_eq!(told, recorded("snapshot"));

    let told = server.admin(&["status"]);
    let (ours, theirs): (Vec<&str>, String) = (told.lines().collect(), recorded("status"));
    let theirs: Vec<&str> = theirs.lines().collect();
    assert_eq!(ours.get(..4), theirs.get(..4), "{told}");
    // The layout for a node with several tokens (`Status.addNodesHeader`).
    let columns: Vec<&str> = ours[4].split_whitespace().collect();
    assert_eq!(columns.join(" "), "-- Address Load Tokens Owns (effective) Host ID Rack");
    assert!(ours[5].starts_with("UN  127.0.0.1  ") && ours[5].contains("100.0%"), "{told}");
    assert_eq!(ours[5].find("127.0.0.1"), ours[4].find("Address"), "{told}");

    for verb in ["info", "describecluster", "version"] {
        let (ours, theirs) = (server.admin(&[verb]), recorded(verb));
        let of_theirs: BTreeSet<&str> =
            names(&theirs).into_iter().filter(|name| !name.contains('-')).collect();
        let of_ours: BTreeSet<&str> = names(&ours).into_iter().collect();
        let missing: Vec<_> = of_theirs.difference(&of_ours).collect();
        assert!(missing.is_empty(), "{verb} has no {missing:?}:\n{ours}");
    }
    assert_eq!(server.admin(&["version"]), recorded("version"));

    let (told, theirs) = (server.admin(&["tablestats", "admin_a"]), recorded("tablestats"));
    let of_table = |text: &str, table: &str| -> Vec<String> {
        let from = text.find(&format!("{table}\n")).unwrap_or_else(|| panic!("no {table}: {text}"));
        let block = text[from..].split("\n\n").next().unwrap_or_default();
        names(block).into_iter().map(str::to_owned).collect()
    };
    for table in ["Table: lv", "Table: t", "Table (index): t.ix"] {
        assert_eq!(of_table(&told, table), of_table(&theirs, table), "{table}:\n{told}");
    }
    let head = |text: &str| {
        text.lines()
            .take(8)
            .map(|line| line.split(':').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(head(&told), head(&theirs), "{told}");
    assert_eq!(server.admin(&["cfstats", "admin_a.t"]).lines().next(), Some("Total number of tables: 1"));
    let json: Value =
        serde_json::from_str(&server.admin(&["tablestats", "-F", "json", "admin_a.t"])).expect("JSON");
    assert_eq!(json["admin_a"]["tables"]["t"]["sstable_count"], 1, "{json}");
    assert_eq!(json["admin_a"]["tables"]["t"]["local_write_count"], 2, "{json}");

    let (told, theirs) = (server.admin(&["tablehistograms", "admin_a", "t"]), recorded("tablehistograms"));
    let same: Vec<_> = told.lines().zip(theirs.lines()).take(3).collect();
    assert!(same.iter().all(|(ours, theirs)| ours.trim_end() == theirs.trim_end()), "{told}");
    let places = |text: &str| {
        text.lines()
            .skip(3)
            .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(places(&told), places(&theirs), "{told}");

    server.admin(&["compact", "admin_a", "t"]);
    let (told, theirs) = (server.admin(&["compactionstats"]), recorded("compactionstats"));
    assert_eq!(first_words(&told), first_words(&theirs), "{told}");
    let (told, theirs) = (server.admin(&["compactionhistory"]), recorded("compactionhistory"));
    let head = |text: &str| {
        text.lines()
            .take(2)
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
    };
    assert_eq!(head(&told), head(&theirs), "{told}");
    assert!(told.contains("admin_a") && told.contains("{compaction_type:Major compaction}"), "{told}");

    let (told, theirs) = (server.admin(&["listsnapshots"]), recorded("listsnapshots"));
    assert_eq!(head(&told), head(&theirs), "{told}");
    assert!(
        told.contains("\nTotal TrueDiskSpaceUsed: ")
            && told.lines().filter(|line| line.starts_with("s1 ")).count() == 2,
        "{told}"
    );

    for verb in ["getcompactionthroughput -d", "gettraceprobability"] {
        let args: Vec<&str> = verb.split(' ').collect();
        assert_eq!(server.admin(&args), recorded(args[0]));
    }
    let told = server.admin(&["statusautocompaction", "-a", "admin_a"]);
    assert_eq!(told.lines().next().map(str::trim_end), Some("Keyspace Table Status"), "{told}");
    let (told, theirs) = (server.admin(&["tpstats"]), recorded("tpstats"));
    assert_eq!(head(&told)[0], head(&theirs)[0]);
    for pool in ["ReadStage", "CompactionExecutor", "Native-Transport-Requests"] {
        assert!(told.contains(pool), "{told}");
    }
    let told = server.admin(&["describering", "admin_a"]);
    assert!(told.starts_with("Schema Version:") && told.contains("\tTokenRange(start_token:"), "{told}");
    let told = server.admin(&["ring"]);
    assert!(
        told.contains("Address         Rack        Status State   Load            Owns                Token"),
        "{told}"
    );
}

#[test]
fn verbs_do_what_they_say_and_refuse_in_a_sentence() {
    let mut server = Server::start();
    let cql = Cql::connect(server.address());
    recorded_tables(&cql);
    let data = server.data();
    let refused_verb = |args: &[&str]| refused(&[&["admin"], args, &["--data", text(&data)]].concat());
    for (args, said) in [
        (&["repair", "-pr", "admin_a"][..], "no other copy"),
        (&["decommission"], "no member of a cluster"),
        (&["gcstats"], "helenus admin memory"),
        (&["flush", "nope"], "Keyspace [nope] does not exist."),
        (&["flush", "admin_a", "nope"], "Unknown keyspace/cf pair (admin_a.nope)"),
        (&["tablestats", "nope"], "Unknown keyspace: nope"),
        (&["tablestats", "admin_a.nope"], "Unknown tables: [nope] in keyspace: admin_a"),
        (&["status", "nope"], "The keyspace nope, does not exist"),
        (&["-h", "10.0.0.9", "status"], "ssh 10.0.0.9"),
        (&["settraceprobability", "2"], "Trace probability must be between 0 and 1"),
        (&["clearsnapshot"], "Specify snapshot name or --all"),
        (&["snapshot", "-t", "../up"], "cannot be named"),
        (&["rebuild_index", "admin_a", "t", "nope"], "it has: ix"),
        (&["getsstables", "admin_a", "t", "word"], "word"),
    ] {
        let told = refused_verb(args);
        assert!(told.contains(said), "{args:?}: {told}");
    }
    let told = server.admin(&["-h", "127.0.0.1", "-p", "7199", "status"]);
    assert!(told.contains("UN"), "{told}");

    server.admin(&["flush", "admin_a"]);
    let files = server.admin(&["getsstables", "admin_a", "t", "1"]);
    assert!(files.trim_end().ends_with("-Data.db") && Path::new(files.trim_end()).exists(), "{files}");
    assert_eq!(server.admin(&["getsstables", "admin_a", "t", "77"]), "");
    assert_eq!(server.admin(&["getsstables", "--hex-format", "admin_a", "t", "00000001"]), files);
    assert_eq!(server.admin(&["getendpoints", "admin_a", "t", "1"]), "127.0.0.1\n");
    assert!(server.admin(&["verify", "admin_a"]).contains("2 of 2 SSTables sound"));
    assert!(server.admin(&["upgradesstables", "-a", "admin_a", "t"]).contains("in 1 compaction"));
    assert_ne!(server.admin(&["getsstables", "admin_a", "t", "1"]), files, "written anew");
    assert!(server.admin(&["cleanup", "admin_a"]).contains("nothing to remove"));
    server.admin(&["rebuild_index", "admin_a", "t", "ix"]);
    assert_eq!(cql.rows_once_indexed("SELECT k FROM admin_a.t WHERE v = 'b'").len(), 1);

    server.admin(&["setcompactionthroughput", "7"]);
    assert_eq!(server.admin(&["getcompactionthroughput"]), "Current compaction throughput: 7 MB/s\n");
    server.admin(&["disableautocompaction", "admin_a", "t"]);
    assert_eq!(server.admin(&["statusautocompaction", "admin_a"]), "partially running\n");
    server.admin(&["enableautocompaction", "admin_a"]);
    assert_eq!(server.admin(&["statusautocompaction", "admin_a"]), "running\n");

    server.admin(&["settraceprobability", "1"]);
    cql.rows("SELECT * FROM admin_a.t WHERE k = 2");
    server.admin(&["settraceprobability", "0"]);
    assert!(!cql.rows("SELECT session_id FROM system_traces.sessions").is_empty());
    assert_eq!(server.admin(&["gettraceprobability"]), "Current trace probability: 0.0\n");
    assert!(server.admin(&["toppartitions", "admin_a", "t"]).contains("Frequency of reads by partition:"));
    assert!(server.admin(&["memory"]).contains("block cache"));
    assert_eq!(server.admin(&["reloadsettings"]), "nothing has changed\n");

    let file = PathBuf::from(server.admin(&["getsstables", "admin_a", "t", "1"]).trim_end());
    let mut bytes = fs::read(&file).expect("the data");
    bytes[10] ^= 0x40;
    fs::write(&file, bytes).expect("damage it");
    let told = refused_verb(&["verify", "admin_a", "t"]);
    assert!(told.contains("1 SSTable damaged"), "{told}");

    assert_eq!(server.admin(&["statusbinary"]), "running\n");
    cql.run("INSERT INTO admin_a.lv (k, v) VALUES (3, 'c')");
    server.admin(&["drain"]);
    assert_eq!(server.admin(&["statusbinary"]), "not running\n");
    assert!(
        cql.try_run("INSERT INTO admin_a.lv (k, v) VALUES (4, 'd')").is_err(),
        "a drained server takes no write"
    );
    server.kill();
    server.restart();
    assert!(!server.head().iter().any(|line| line.contains("replayed")), "{:?}", server.head());
    assert_eq!(Cql::connect(server.address()).rows("SELECT * FROM admin_a.lv").len(), 2);
}

#[test]
fn settings_change_while_the_server_runs_and_those_that_cannot_are_named() {
    let scratch = scratch();
    let file = scratch.path().join("helenus.yaml");
    fs::write(&file, "").expect("a configuration");
    let server = Server::start_with(&["--config", text(&file)]);
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE admin_r {KEYSPACE}"));
    cql.run("CREATE TABLE admin_r.t (k int PRIMARY KEY, v int)");
    cql.rows("SELECT * FROM admin_r.t WHERE v = 1 ALLOW FILTERING");
    fs::write(
        &file,
        "allow_filtering_enabled: false\ntables_fail_threshold: 1\nread_request_timeout: 7s\nlog_level: debug\n\
         slow_query_log_timeout: 1ms\ncompaction_throughput: 9MiB/s\nwrite_request_timeout: 3s\n\
         disk_failure_policy: stop\nbatch_size_fail_threshold: 1KiB\nconcurrent_reads: 16\n",
    )
    .expect("another configuration");
    let told = server.admin(&["reloadsettings"]);
    assert_eq!(
        told,
        "taken over  log_level, slow_query_log_timeout, disk_failure_policy, compaction_throughput, read_request_timeout, \
         write_request_timeout, batch_size_fail_threshold, tables_fail_threshold, allow_filtering_enabled\n\
         not before the next start: concurrent_reads\n"
    );
    assert!(cql.refusal("SELECT * FROM admin_r.t WHERE v = 2 ALLOW FILTERING").contains("ALLOW FILTERING"));
    assert!(cql.refusal("CREATE TABLE admin_r.u (k int PRIMARY KEY)").contains("tables"));
    assert_eq!(server.admin(&["getcompactionthroughput"]), "Current compaction throughput: 9 MB/s\n");
    let shown = |name: &str| {
        let rows = cql.rows(&format!("SELECT value FROM system_views.settings WHERE name = '{name}'"));
        rows.into_iter()
            .flatten()
            .next()
            .flatten()
            .and_then(|value| value.as_text().cloned())
            .unwrap_or_default()
    };
    assert_eq!(
        (shown("read_request_timeout"), shown("concurrent_reads")),
        ("7000ms".to_owned(), "32".to_owned())
    );
    // A pending setting is reported again. A wrong file changes nothing.
    assert_eq!(server.admin(&["reloadsettings"]), "not before the next start: concurrent_reads\n");
    fs::write(&file, "tables_fail_threshold: many\n").expect("a wrong one");
    let told = refused(&["admin", "reloadsettings", "--data", text(&server.data())]);
    assert!(told.contains("tables_fail_threshold: many is not allowed"), "{told}");
    assert!(cql.refusal("CREATE TABLE admin_r.u (k int PRIMARY KEY)").contains("tables"));
    fs::write(&file, "").expect("the first again");
    server.admin(&["reloadsettings"]);
    cql.run("CREATE TABLE admin_r.u (k int PRIMARY KEY)");
    cql.rows("SELECT * FROM admin_r.t WHERE v = 1 ALLOW FILTERING");
}

#[test]
fn a_hang_up_has_the_settings_read_again_and_ends_nothing() {
    let scratch = scratch();
    let file = scratch.path().join("helenus.yaml");
    fs::write(&file, "").expect("a configuration");
    let mut server = Server::start_with(&["--config", text(&file)]);
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE admin_h {KEYSPACE}"));
    cql.run("CREATE TABLE admin_h.t (k int PRIMARY KEY, v int)");
    let process = i32::try_from(server.process_id()).expect("a number");
    let process = rustix::process::Pid::from_raw(process).expect("not 0");
    let hang_up = |content: &str, told: &str| {
        fs::write(&file, content).expect("a configuration");
        rustix::process::kill_process(process, rustix::process::Signal::HUP).expect("a signal");
        while !server.log().contains(told) {
            // Also if it has ended.
            assert_eq!(cql.rows("SELECT * FROM admin_h.t").len(), 0, "{}", server.log());
        }
    };
    hang_up("", "SIGHUP: nothing has changed");
    hang_up(
        "allow_filtering_enabled: false\nconcurrent_reads: 16\n",
        "SIGHUP: taken over: allow_filtering_enabled; not before the next start: concurrent_reads",
    );
    assert!(cql.refusal("SELECT * FROM admin_h.t WHERE v = 2 ALLOW FILTERING").contains("ALLOW FILTERING"));
    hang_up("tables_fail_threshold: many\n", "nothing has changed: ");
    assert!(server.log().contains("tables_fail_threshold: many is not allowed"), "{}", server.log());
    assert!(cql.refusal("SELECT * FROM admin_h.t WHERE v = 2 ALLOW FILTERING").contains("ALLOW FILTERING"));
    hang_up("log_level: debug\n", "SIGHUP: taken over: ");
    hang_up("log_level: info\n", "SIGHUP: taken over: log_level");
    cql.rows("SELECT * FROM admin_h.t WHERE v = 1 ALLOW FILTERING");
    assert!(server.stop().success(), "SIGTERM ends it as before");
}

#[test]
fn a_snapshot_of_all_keyspaces_has_the_system_s_without_schema_files() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE admin_all {KEYSPACE}"));
    cql.run("CREATE TABLE admin_all.t (k int PRIMARY KEY)");
    server.admin(&["snapshot", "--tag", "whole"]);
    let mut schema_files = Vec::new();
    for (keyspace, table) in
        [("admin_all", "t"), ("system_schema", "tables"), ("system_auth", "roles"), ("system", "local")]
    {
        let folder = files::table_folder(&server.tables(), &cql, keyspace, table).join("snapshots/whole");
        assert!(folder.join("manifest.json").exists(), "{keyspace}.{table}");
        if folder.join("schema.cql").exists() {
            schema_files.push(keyspace);
        }
    }
    assert_eq!(schema_files, ["admin_all"]);
    let listed = server.admin(&["listsnapshots"]);
    assert!(listed.contains("system_schema") && listed.contains("system_auth"), "{listed}");
}

#[test]
fn a_database_with_snapshots_of_the_system_s_tables_opens_again_and_is_no_node() {
    let mut server = Server::start();
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE admin_own {KEYSPACE}"));
    cql.run("CREATE TABLE admin_own.t (k int PRIMARY KEY)");
    cql.run("INSERT INTO admin_own.t (k) VALUES (1)");
    let is_there = |server: &Server| {
        let rows = Cql::connect(server.address()).rows("SELECT k FROM admin_own.t");
        assert_eq!(rows.len(), 1);
    };
    for verb in [
        &["snapshot", "--tag", "whole"][..],
        &["scrub"],
        &["snapshot", "-t", "own", "system"],
        &["scrub", "system"],
    ] {
        server.admin(verb);
        server.kill();
        server.restart();
        is_there(&server);
    }
    assert!(server.stop().success());
    let scratch = TempDir::with_prefix("helenus-own-").expect("a temporary directory");
    let exported = scratch.path().join("export");
    tool(&["export", text(&exported), "admin_own", "--data", text(&server.data())]);
    assert!(exported.join("admin_own").is_dir());
    let told = refused(&["serve", "--adopt", text(&server.data())]);
    assert!(told.contains("is a directory of Helenus already"), "{told}");
    server.restart();
    is_there(&server);
}

#[test]
fn a_snapshot_outlives_its_table_and_is_taken_by_helenus_and_by_cassandra() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE admin_s {KEYSPACE}"));
    cql.run("CREATE TYPE admin_s.place (street text, number int)");
    cql.run(
        "CREATE TABLE admin_s.t (k int, c int, s int static, p frozen<place>, gone int, PRIMARY KEY (k, c))",
    );
    cql.run("INSERT INTO admin_s.t (k, c, s, p, gone) VALUES (1, 1, 7, {street: 'a', number: 2}, 5)");
    cql.run("ALTER TABLE admin_s.t DROP gone");
    let folder = files::table_folder(&server.tables(), &cql, "admin_s", "t");
    server.admin(&["snapshot", "--tag", "one", "--table", "t", "admin_s"]);
    assert!(
        refused(&["admin", "snapshot", "-t", "one", "admin_s", "--data", text(&server.data())])
            .contains("already exists")
    );
    let snapshot = folder.join("snapshots/one");
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(snapshot.join("manifest.json")).expect("a manifest"))
            .expect("JSON");
    let listed = manifest["files"].as_array().expect("files");
    assert!(listed.len() == 1 && snapshot.join(listed[0].as_str().expect("a name")).exists(), "{manifest}");
    assert!(
        manifest["expires_at"].is_null()
            && manifest["created_at"].as_str().is_some_and(|at| at.ends_with('Z')),
        "{manifest}"
    );
    let before = cql.rows("SELECT JSON * FROM admin_s.t");
    cql.run("TRUNCATE admin_s.t");
    // The files are put back by hand, as scripts for nodetool do.
    for file in fs::read_dir(&snapshot).expect("the snapshot").flatten() {
        let name = file.file_name();
        if name.to_str().is_some_and(|name| name.starts_with("da-")) {
            fs::copy(file.path(), folder.join(name)).expect("copy a file back");
        }
    }
    assert!(server.admin(&["refresh", "admin_s", "t"]).contains("imported    1 SSTable,"));
    assert_eq!(cql.rows("SELECT JSON * FROM admin_s.t"), before);
    assert_eq!(files::tables(&folder).len(), 1, "what was put there is gone");
    cql.run("DROP TABLE admin_s.t");

    tool(&["import", text(&snapshot), "--data", text(&server.data())]);
    assert_eq!(cql.rows("SELECT JSON * FROM admin_s.t"), before);
    let oracle = Oracle::shared();
    let there = Cql::connect(oracle.address());
    there.run(&format!("CREATE KEYSPACE IF NOT EXISTS admin_s {KEYSPACE}"));
    there.run("DROP TABLE IF EXISTS admin_s.t");
    let schema = fs::read_to_string(snapshot.join("schema.cql")).expect("the schema");
    schema.split(';').filter(|one| !one.trim().is_empty()).for_each(|one| there.run(one));
    let copy = scratch();
    files::copy(&snapshot, copy.path());
    oracle.import("admin_s", "t", copy.path());
    assert_eq!(there.rows("SELECT JSON * FROM admin_s.t"), before);

    assert!(server.admin(&["listsnapshots"]).contains("one           admin_s"));
    server.admin(&["clearsnapshot", "--all", "--older-than", "1h"]);
    assert!(snapshot.exists(), "it is not an hour old");
    server.admin(&["clearsnapshot", "-t", "one", "admin_s"]);
    assert!(!folder.exists(), "nothing is left of the dropped table");
    assert_eq!(server.admin(&["listsnapshots"]), "Snapshot Details: \nThere are no snapshots\n");
}

/// Creates tables of every kind, with data.
fn everything(cql: &Cql) {
    cql.run(&format!("CREATE KEYSPACE shop {KEYSPACE}"));
    cql.run("CREATE TYPE shop.place (street text, number int)");
    cql.run("CREATE TABLE shop.orders (k int, c int, s text static, v text, p place, l list<frozen<place>>, gone int, PRIMARY KEY (k, c))");
    cql.run("CREATE INDEX orders_v_idx ON shop.orders (v)");
    cql.run("CREATE TABLE shop.counts (k int PRIMARY KEY, n counter)");
    cql.run("CREATE TABLE shop.nothing (k int PRIMARY KEY)");
    for k in 0..20 {
        cql.run(&format!(
            "INSERT INTO shop.orders (k, c, s, v, p, l, gone) VALUES ({k}, 1, 's{k}', 'v{k}', {{street: 'x', number: {k}}}, \
             [{{street: 'y', number: 1}}], 9) USING TIMESTAMP 1000"
        ));
        cql.run(&format!("UPDATE shop.counts SET n = n + {k} WHERE k = {k}"));
    }
    cql.run("INSERT INTO shop.orders (k, c, v) VALUES (3, 2, 'short') USING TTL 86400");
    cql.run("DELETE FROM shop.orders WHERE k = 4");
    cql.run("DELETE FROM shop.orders USING TIMESTAMP 2000 WHERE k = 5 AND c > 0");
    cql.run("ALTER TABLE shop.orders DROP gone");
    cql.run("UPDATE shop.counts SET n = n - 100 WHERE k = 7");
}

fn shown(cql: &Cql, keyspace: &str, orders: &str) -> Vec<Vec<Option<CqlValue>>> {
    let mut rows = cql.rows(&format!("SELECT JSON k, c, s, v, p, l, WRITETIME(v) FROM {keyspace}.{orders}"));
    rows.extend(cql.rows_once_indexed(&format!("SELECT k FROM {keyspace}.{orders} WHERE v = 'v6'")));
    let ttl = cql.rows(&format!("SELECT TTL(v) FROM {keyspace}.{orders} WHERE k = 3 AND c = 2"));
    assert!(matches!(ttl[0][0], Some(CqlValue::Int(left)) if left > 80_000 && left <= 86_400), "{ttl:?}");
    rows
}

#[test]
fn a_backup_brings_everything_back_under_any_name_and_refuses_what_is_not_what_it_was() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    everything(&cql);
    let scratch = scratch();
    let backup = scratch.path().join("monday");
    let told = tool(&["backup", text(&backup), "--data", text(&server.data())]);
    assert!(told.contains("backed up   shop.orders: 1 SSTable\n") && told.contains("3 tables"), "{told}");
    assert!(refused(&["backup", text(&backup), "--data", text(&server.data())]).contains("is not empty"));
    let (orders, counts) = (shown(&cql, "shop", "orders"), cql.rows("SELECT JSON * FROM shop.counts"));
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(backup.join("backup.json")).expect("a manifest"))
            .expect("JSON");
    assert!(manifest["files"].as_array().is_some_and(|files| files.len() > 10), "{manifest}");

    // Restores beside the existing data: into another keyspace, then another table.
    let data = server.data();
    let restore = |args: &[&str]| -> Vec<String> {
        let head = ["restore", text(&backup), "--data", text(&data)];
        head.iter().chain(args).map(|arg| (*arg).to_owned()).collect()
    };
    assert!(refused(&restore(&[])).contains("shop.orders is here and holds data"));
    let told = tool(&restore(&["--keyspace", "shop", "--as-keyspace", "shop2"]));
    assert!(told.contains("shop.counts as shop2.counts"), "{told}");
    assert_eq!(shown(&cql, "shop2", "orders"), orders);
    assert_eq!(cql.rows("SELECT JSON * FROM shop2.counts"), counts);
    tool(&restore(&["--keyspace", "shop", "--table", "orders", "--as-table", "orders2"]));
    assert_eq!(shown(&cql, "shop", "orders2"), orders);
    assert!(
        tool(&restore(&["--keyspace", "shop", "--as-keyspace", "shop2"])).contains("was there   shop.counts")
    );
    cql.run("UPDATE shop2.counts SET n = n + 1 WHERE k = 7");
    assert_eq!(
        cql.rows("SELECT n FROM shop2.counts WHERE k = 7"),
        vec![vec![Some(CqlValue::Counter(scylla::value::Counter(-92)))]]
    );

    // Restores into an empty server, and into one in memory, from the archive alone.
    let other = Server::start();
    let there = other.data();
    let args = ["restore", text(&backup), "--data", text(&there)];
    assert!(tool(&[&args[..], &["--dry-run"]].concat()).contains("to restore  shop.orders: 1 SSTable\n"));
    tool(&args);
    let there = Cql::connect(other.address());
    assert_eq!(shown(&there, "shop", "orders"), orders);
    assert_eq!(there.rows("SELECT JSON * FROM shop.counts"), counts);
    assert!(there.rows("SELECT * FROM shop.nothing").is_empty());
    // A dropped column stays dropped.
    there.run("ALTER TABLE shop.orders ADD gone int");
    assert_eq!(there.rows("SELECT gone FROM shop.orders WHERE k = 1 AND c = 1"), vec![vec![None]]);
    there.run("TRUNCATE shop.counts");
    tool(&[&args[..], &["--keyspace", "shop", "--table", "counts"]].concat());
    assert_eq!(there.rows("SELECT JSON * FROM shop.counts"), counts);

    // An archive, written by the running server and by plain tar, restored into another keyspace.
    let archive = scratch.path().join("monday.tar");
    let told = tool(&["backup", text(&archive), "--data", text(&server.data()), "shop", "counts"]);
    assert!(told.contains("backed up   1 table,"), "{told}");
    assert!(
        refused(&["backup", text(&archive), "--data", text(&server.data())]).contains("is there already")
    );
    let packed = scratch.path().join("packed.tar");
    let tar =
        Command::new("tar").arg("-C").arg(scratch.path()).arg("-cf").arg(&packed).arg("monday").status();
    assert!(tar.expect("run tar").success());
    let listed = Command::new("tar").arg("-tf").arg(&archive).output().expect("run tar");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.starts_with("schema.cql\n") && listed.ends_with("\nbackup.json\n"), "{listed}");
    for (file, keyspace) in [(&archive, "shop3"), (&packed, "shop4")] {
        let data = other.data();
        let restored =
            ["restore", text(file), "--data", text(&data), "--keyspace", "shop", "--table", "counts"];
        tool(&[&restored[..], &["--as-keyspace", keyspace]].concat());
        assert_eq!(there.rows(&format!("SELECT JSON * FROM {keyspace}.counts")), counts);
    }
    assert!(!other.data().join("restore/unpacked").exists(), "what was unpacked is gone");
    let mut bytes = fs::read(&archive).expect("the archive");
    let at = bytes.windows(4).position(|bytes| bytes == b"CREA").expect("the schema");
    bytes[at] = b'D';
    fs::write(&archive, &bytes).expect("damage it");
    let told = refused(&[
        "restore",
        text(&archive),
        "--data",
        text(&other.data()),
        "--keyspace",
        "shop",
        "--as-keyspace",
        "shop5",
    ]);
    assert!(told.contains("monday.tar: schema.cql: its content is not what was backed up"), "{told}");

    // Restores into a directory without a server.
    let alone = scratch.path().join("alone");
    tool(&["restore", text(&backup), "--data", text(&alone)]);

    // A flipped bit, a missing file, an additional file, or a missing manifest: the restore is refused, names the file,
    // and leaves nothing.
    let fresh = Server::start();
    let file = files::tables(&backup.join("shop/orders")).remove(0);
    let damaged = scratch.path().join("damaged");
    let try_with = |change: &dyn Fn(&Path)| {
        let _ = fs::remove_dir_all(&damaged);
        files::copy_all(&backup, &damaged);
        change(&damaged);
        let told = refused(&["restore", text(&damaged), "--data", text(&fresh.data())]);
        let tables = Cql::connect(fresh.address())
            .rows("SELECT * FROM system_schema.keyspaces WHERE keyspace_name = 'shop'");
        assert!(tables.is_empty(), "something was restored: {told}");
        told
    };
    let name = file.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
    let file = damaged.join("shop/orders").join(&name);
    let told = try_with(&|_| {
        let mut bytes = fs::read(&file).expect("the data");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).expect("damage it");
    });
    assert!(told.contains(&name) && told.contains("SHA-256"), "{told}");
    assert!(try_with(&|_| fs::remove_file(&file).expect("remove it")).contains("this file is missing"));
    assert!(
        try_with(&|folder| fs::write(folder.join("shop/orders/more"), "x").expect("write"))
            .contains("not in the manifest")
    );
    assert!(
        try_with(&|folder| fs::write(folder.join("schema.cql"), "CREATE").expect("write"))
            .contains("schema.cql")
    );
    assert!(
        try_with(&|folder| fs::remove_file(folder.join("backup.json")).expect("remove it"))
            .contains("there is no backup.json")
    );
}

#[test]
fn a_restore_that_is_killed_goes_on_where_it_was() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE shop {KEYSPACE}"));
    let tables: Vec<String> = (0..12).map(|number| format!("t{number:02}")).collect();
    for table in &tables {
        cql.run(&format!("CREATE TABLE shop.{table} (k int PRIMARY KEY, v text)"));
        for k in 0..5 {
            cql.run(&format!("INSERT INTO shop.{table} (k, v) VALUES ({k}, '{table}')"));
        }
    }
    let scratch = scratch();
    let backup = scratch.path().join("backup");
    tool(&["backup", text(&backup), "--data", text(&server.data())]);
    let mut cut = 0;
    // Kills the server when this number of tables has been restored.
    for done in [0, 1, 3, 6, 9, 11] {
        let mut target = Server::start();
        let mut restore = Command::new(binary());
        restore.args(["restore", text(&backup), "--copy", "--data"]).arg(target.data());
        restore.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut restore = restore.spawn().expect("start the restore");
        let journal = || {
            let entry = fs::read_dir(target.data().join("restore"))
                .ok()?
                .flatten()
                .find(|entry| text(&entry.path()).ends_with(".json"))?;
            fs::read_to_string(entry.path()).ok()
        };
        while restore.try_wait().expect("ask for its end").is_none() {
            if journal().is_some_and(|journal| journal.matches("true").count() >= done) {
                break;
            }
            std::thread::yield_now();
        }
        target.kill();
        let _ = restore.wait();
        target.restart();
        let told = tool(&["restore", text(&backup), "--data", text(&target.data())]);
        cut += usize::from(told.contains("restored    shop."));
        let there = Cql::connect(target.address());
        for table in &tables {
            assert_eq!(
                there.rows(&format!("SELECT * FROM shop.{table}")).len(),
                5,
                "{table}, killed at {done}:\n{told}"
            );
        }
        assert_eq!(told.matches("shop.").count(), tables.len(), "{told}");
    }
    assert!(cut >= 2, "only {cut} were cut in the middle");
}

#[test]
fn shells_and_man_know_every_command() {
    let bash = tool(&["completions", "bash"]);
    assert!(["tablestats", "restore", "--as-keyspace"].iter().all(|word| bash.contains(word)), "{bash}");
    let scratch = scratch();
    let script = scratch.path().join("helenus.bash");
    fs::write(&script, &bash).expect("write the script");
    let words = "COMP_WORDS=(helenus admin tablest); COMP_CWORD=2; _helenus helenus tablest admin; echo ${COMPREPLY[@]}";
    let run = Command::new("bash")
        .arg("-c")
        .arg(format!("source {}; {words}", script.display()))
        .output()
        .expect("run bash");
    assert_eq!(
        String::from_utf8_lossy(&run.stdout).trim(),
        "tablestats",
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    assert!(tool(&["completions", "zsh"]).starts_with("#compdef helenus"));
    assert!(tool(&["completions", "fish"]).contains("complete -c helenus"));
    let pages = scratch.path().join("man1");
    tool(&["man", text(&pages)]);
    for (page, words) in [
        ("helenus.1", &["backup", "Examples"][..]),
        ("helenus-serve.1", &["listen"]),
        ("helenus-restore.1", &["as\\-keyspace", "cut is ordered again"]),
        ("helenus-admin-tablestats.1", &["cfstats", "helenus admin tablestats"]),
    ] {
        let found = fs::read_to_string(pages.join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(found.starts_with(".ie") || found.contains(".TH "), "{page}: {found}");
        assert!(words.iter().all(|word| found.contains(word)), "{page} lacks one of {words:?}:\n{found}");
    }
    assert!(!pages.join("helenus-admin-repair.1").exists(), "what means nothing here has no page");
}
