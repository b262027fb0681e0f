//! The feed of changes from outside: what `helenus changes` and `system_views.changes` show, folded into a model, must be
//! the table, whatever happened to the server meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use end_to_end::{Cql, Server, draw, refused, tool};
use scylla::value::CqlValue;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

const TABLE: &str = "CREATE TABLE feed.t (p int, c int, v text, n int, s text static, m map<text, int>, st set<text>, l list<int>, \
                     PRIMARY KEY (p, c)) WITH cdc = true";

/// A server with small segments and memtables, and a keyspace.
fn server(settings: &str) -> Server {
    let folder = TempDir::with_prefix("helenus-changes-").expect("a temporary directory");
    let config = folder.path().join("helenus.yaml");
    let all = format!(
        "commitlog_segment_size: 1MiB\nmemtable_heap_space: 1MiB\nmax_mutation_size: 256KiB\n{settings}"
    );
    fs::write(&config, all).expect("a file");
    let config = config.to_str().expect("a path in UTF-8").to_owned();
    let server = Server::start_in(folder, &["--config", &config]);
    cql(&server)
        .run("CREATE KEYSPACE feed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    server
}

fn cql(server: &Server) -> Cql {
    Cql::connect(server.address())
}

/// What `helenus changes` prints as JSON.
fn changes(server: &Server, args: &[&str]) -> Vec<Value> {
    let data = server.data();
    let data = data.to_str().expect("a path in UTF-8");
    let all: Vec<&str> =
        ["changes"].into_iter().chain(args.iter().copied()).chain(["--json", "--data", data]).collect();
    let lines = tool(&all);
    lines.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

fn refusal(server: &Server, args: &[&str]) -> String {
    let data = server.data();
    let data = data.to_str().expect("a path in UTF-8");
    refused(&["changes"].into_iter().chain(args.iter().copied()).chain(["--data", data]).collect::<Vec<_>>())
}

fn position(event: &Value) -> &str {
    event["position"].as_str().expect("a position")
}

/// The cells of a row or of the static row, by column and path, each with its timestamp; `None` is deleted.
#[derive(Clone, Default)]
struct Cells {
    cells: BTreeMap<(String, String), (i64, Option<Value>, Value)>,
    deleted: BTreeMap<String, i64>,
}

#[derive(Clone, Default)]
struct Row {
    live_us: Option<i64>,
    deleted_us: i64,
    cells: Cells,
}

#[derive(Clone, Default)]
struct Partition {
    deleted_us: i64,
    ranges: Vec<Value>,
    statics: Cells,
    rows: BTreeMap<i64, Row>,
}

/// A table made of its events.
#[derive(Clone, Default)]
struct Model(BTreeMap<i64, Partition>);

impl Cells {
    fn write(&mut self, event: &Value) {
        for cell in event["cells"].as_array().into_iter().flatten() {
            let column = cell["column"].as_str().expect("a column").to_owned();
            let path = cell["path"].as_str().map(str::to_owned).unwrap_or_default();
            let ts = cell["ts_us"].as_i64().expect("a timestamp");
            let value = (cell["deleted"] != json!(true)).then(|| cell["value"].clone());
            let new = (ts, value, cell["path"].clone());
            let old = self.cells.entry((column, path)).or_insert_with(|| new.clone());
            if old.0 <= ts {
                *old = new;
            }
        }
        for deletion in event["collections_deleted"].as_array().into_iter().flatten() {
            let ts = deletion["ts_us"].as_i64().expect("a timestamp");
            let old =
                self.deleted.entry(deletion["column"].as_str().expect("a column").to_owned()).or_insert(ts);
            *old = ts.max(*old);
        }
    }

    /// The live cells of a column: path and value.
    fn of(&self, column: &str, deleted_us: i64) -> Vec<(Value, Value)> {
        let deleted_us = self.deleted.get(column).copied().unwrap_or(i64::MIN).max(deleted_us);
        let cells = self.cells.iter().filter(|((of, _), (ts, ..))| of == column && *ts > deleted_us);
        cells.filter_map(|(_, (_, value, path))| Some((path.clone(), value.clone()?))).collect()
    }

    fn value(&self, column: &str, deleted_us: i64) -> Value {
        self.of(column, deleted_us).into_iter().next().map_or(Value::Null, |(_, value)| value)
    }
}

impl Model {
    fn fold(&mut self, event: &Value) {
        let number = |of: &Value| of.as_i64().expect("a number");
        match event["op"].as_str().expect("an operation") {
            "t" => self.0.clear(),
            "schema" if event["change"] != json!("altered") => self.0.clear(),
            "schema" | "import" => {}
            "d" if event["scope"] == json!("partition") => {
                let partition = self.0.entry(number(&event["key"]["p"])).or_default();
                partition.deleted_us = partition.deleted_us.max(number(&event["deletion"]["ts_us"]));
            }
            "d" if event["scope"] == json!("range") => {
                self.0.entry(number(&event["key"]["p"])).or_default().ranges.push(event.clone());
            }
            _ => {
                let partition = self.0.entry(number(&event["key"]["p"])).or_default();
                if event["static"] == json!(true) {
                    return partition.statics.write(event);
                }
                let row = partition.rows.entry(number(&event["key"]["c"])).or_default();
                if let Some(ts) = event["row"]["ts_us"].as_i64() {
                    row.live_us = row.live_us.max(Some(ts));
                }
                if let Some(ts) = event["deletion"]["ts_us"].as_i64() {
                    row.deleted_us = row.deleted_us.max(ts);
                }
                row.cells.write(event);
            }
        }
    }

    /// The rows as SELECT JSON answers.
    fn rows(&self) -> Vec<Value> {
        let mut rows = Vec::new();
        for (p, partition) in &self.0 {
            let s = partition.statics.value("s", partition.deleted_us);
            let before = rows.len();
            for (c, row) in &partition.rows {
                let covers = |range: &&Value| covers(range, *c);
                let ranges = partition
                    .ranges
                    .iter()
                    .filter(covers)
                    .filter_map(|range| range["deletion"]["ts_us"].as_i64());
                let deleted = ranges.chain([partition.deleted_us, row.deleted_us]).max().unwrap_or_default();
                let columns = ["v", "n", "m", "st", "l"].map(|column| row.cells.of(column, deleted));
                if row.live_us.is_none_or(|live| live <= deleted) && columns.iter().all(Vec::is_empty) {
                    continue;
                }
                let [v, n, m, st, l] = columns;
                let simple = |cells: Vec<(Value, Value)>| {
                    cells.into_iter().next().map_or(Value::Null, |(_, value)| value)
                };
                let m: serde_json::Map<String, Value> = m
                    .into_iter()
                    .map(|(path, value)| (path.as_str().expect("a key").to_owned(), value))
                    .collect();
                let st: Vec<Value> = st.into_iter().map(|(path, _)| path).collect();
                let mut l = l;
                l.sort_by_key(|(path, _)| time(path));
                let l: Vec<Value> = l.into_iter().map(|(_, value)| value).collect();
                let some = |is_empty: bool, value: Value| if is_empty { Value::Null } else { value };
                rows.push(json!({"p": p, "c": c, "s": s, "v": simple(v), "n": simple(n), "m": some(m.is_empty(), json!(m)),
                    "st": some(st.is_empty(), json!(st)), "l": some(l.is_empty(), json!(l))}));
            }
            if rows.len() == before && s != Value::Null {
                rows.push(json!({"p": p, "c": null, "s": s, "v": null, "n": null, "m": null, "st": null, "l": null}));
            }
        }
        rows
    }
}

/// The place of a list's element: the time of its path.
fn time(path: &Value) -> (u64, u128) {
    let id = Uuid::parse_str(path.as_str().expect("a path")).expect("a time UUID");
    let (seconds, nanoseconds) = id.get_timestamp().expect("a time").to_unix();
    (seconds * 10_000_000 + u64::from(nanoseconds) / 100, id.as_u128())
}

fn covers(range: &Value, c: i64) -> bool {
    let bound = |name: &str| range["range"][name]["c"].as_i64();
    let is_inclusive = |name: &str| range["range"][format!("{name}_inclusive")] == json!(true);
    let above = bound("start").is_none_or(|start| c > start || (c == start && is_inclusive("start")));
    let below = bound("end").is_none_or(|end| c < end || (c == end && is_inclusive("end")));
    above && below
}

/// The rows of the table, in the order of the model.
fn selected(cql: &Cql) -> Vec<Value> {
    let mut rows: Vec<Value> = cql
        .rows("SELECT JSON p, c, s, v, n, m, st, l FROM feed.t")
        .into_iter()
        .map(|row| match &row[..] {
            [Some(CqlValue::Text(json))] => serde_json::from_str(json).expect("JSON"),
            other => panic!("no JSON: {other:?}"),
        })
        .collect();
    rows.sort_by_key(|row| (row["p"].as_i64(), row["c"].as_i64()));
    rows
}

/// A write of any kind.
fn statement(draw: &mut draw::Draw, step: usize) -> String {
    let (p, c) = (draw.below(4), draw.below(6));
    let (key, other) = (["a", "b", "c"][draw.below(3)], draw.below(6));
    let of = format!("WHERE p = {p} AND c = {c}");
    let (low, high) = (c.min(other), c.max(other));
    match draw.below(22) {
        0..=3 => format!("INSERT INTO feed.t (p, c, v, n) VALUES ({p}, {c}, 'v{step}', {step})"),
        4 => format!("INSERT INTO feed.t (p, c, v) VALUES ({p}, {c}, '{}')", "x".repeat(30_000)),
        5 => format!(
            "INSERT INTO feed.t (p, c, v, m, st, l) VALUES ({p}, {c}, null, {{'{key}': {step}}}, {{'{key}', 'z'}}, [{step}, 1])"
        ),
        6 => format!("UPDATE feed.t USING TTL 86400 SET v = 'ttl{step}' {of}"),
        7 => format!("UPDATE feed.t SET m['{key}'] = {step} {of}"),
        8 => format!("DELETE m['{key}'] FROM feed.t {of}"),
        9 => format!("UPDATE feed.t SET st = st + {{'{key}'}}, n = {step} {of}"),
        10 => format!("UPDATE feed.t SET st = st - {{'{key}'}} {of}"),
        11 => format!("UPDATE feed.t SET l = l + [{step}] {of}"),
        12 => format!("UPDATE feed.t SET l = [{step}] + l {of}"),
        13 => format!("DELETE v, m FROM feed.t {of}"),
        14 => format!("DELETE FROM feed.t {of}"),
        15 => format!("DELETE FROM feed.t WHERE p = {p} AND c >= {low} AND c < {high}"),
        16 => format!("DELETE FROM feed.t WHERE p = {p} AND c > {low}"),
        17 => format!("DELETE FROM feed.t WHERE p = {p}"),
        18 => format!("UPDATE feed.t SET s = 's{step}' WHERE p = {p}"),
        19 => format!("DELETE s FROM feed.t WHERE p = {p}"),
        20 => format!("INSERT INTO feed.t (p, c, n) VALUES ({p}, {c}, {step}) IF NOT EXISTS"),
        _ => format!(
            "BEGIN BATCH INSERT INTO feed.t (p, c, n) VALUES ({p}, {c}, {step}); DELETE FROM feed.t WHERE p = {p} AND c = {other}; \
             UPDATE feed.t SET s = 'b{step}' WHERE p = {}; APPLY BATCH",
            (p + 1) % 4
        ),
    }
}

#[test]
fn folded_changes_are_the_table_across_kills_flushes_truncations_and_ddl() {
    let mut draw = draw::Draw::new("changes", 27);
    let mut server = server("");
    let mut session = cql(&server);
    session.run(TABLE);
    assert_eq!(changes(&server, &["feed.t", "--consumer", "all", "--from", "oldest"]).len(), 1);
    let (mut events, mut model) = (Vec::new(), Model::default());
    let mut from = "oldest".to_owned();
    for step in 0..draw::rounds(600) {
        session.run(&statement(&mut draw, step));
        match draw.below(120) {
            0 | 1 => {
                server.kill();
                server.restart();
                session = cql(&server);
            }
            2 => {
                server.stop();
                server.restart();
                session = cql(&server);
            }
            3..=5 => drop(server.admin(&["flush", "feed"])),
            6 => session.run("TRUNCATE feed.t"),
            7 => {
                session.run("ALTER TABLE feed.t ADD added int");
                session.run(&format!("INSERT INTO feed.t (p, c, added) VALUES (1, 1, {step})"));
                session.run("ALTER TABLE feed.t DROP added");
            }
            8 => {
                session.run("DROP TABLE feed.t");
                session.run(TABLE);
            }
            9..=20 => {
                let limit = (1 + draw.below(40)).to_string();
                let read = changes(&server, &["feed.t", "--from", &from, "--limit", &limit]);
                if let Some(last) = read.last() {
                    from = position(last).to_owned();
                }
                read.iter().for_each(|event| model.fold(event));
                events.extend(read);
            }
            _ => {}
        }
    }
    let rest = changes(&server, &["feed.t", "--from", &from]);
    rest.iter().for_each(|event| model.fold(event));
    events.extend(rest);
    assert!(events.windows(2).all(|pair| position(&pair[0]) < position(&pair[1])), "positions grow");
    assert_eq!(model.rows(), selected(&session));
    // A consumer that has acknowledged nothing reads all of it again.
    let again = changes(&server, &["feed.t", "--consumer", "all"]);
    assert!(again == events, "{} events again, {} before", again.len(), events.len());
    // So does CQL.
    let last = position(&events[0]);
    let rows = session.rows(&format!(
        "SELECT position, event FROM system_views.changes WHERE keyspace_name = 'feed' AND table_name = 't' AND position > '{last}'"
    ));
    let shown: Vec<Value> = rows
        .iter()
        .map(|row| match &row[..] {
            [Some(CqlValue::Text(at)), Some(CqlValue::Text(event))] => {
                let event: Value = serde_json::from_str(event).expect("JSON");
                assert_eq!(position(&event), at);
                event
            }
            other => panic!("no event: {other:?}"),
        })
        .collect();
    assert!(shown == events[1..], "{} events by CQL, {} before", shown.len(), events.len());
}

#[test]
fn the_events_before_a_restart_follow_after_it_although_nothing_is_written_since() {
    let mut draw = draw::Draw::new("changes after restarts", 9);
    let mut server = server("");
    cql(&server).run(TABLE);
    // It acknowledges nothing, so that the log is kept.
    assert_eq!(changes(&server, &["feed.t", "--consumer", "all", "--from", "oldest"]).len(), 1);
    let (mut from, mut written, mut seen) = ("oldest".to_owned(), Vec::new(), Vec::new());
    for round in 0..draw::rounds(12) {
        let session = cql(&server);
        for row in 0..draw.below(4) {
            let n = (round * 10 + row) as i64;
            session.run(&format!("INSERT INTO feed.t (p, c, n) VALUES (1, {n}, {n})"));
            written.push(n);
        }
        match draw.below(3) {
            0 => server.kill(),
            1 => drop(server.stop()),
            _ => {
                drop(server.admin(&["flush", "feed"]));
                server.kill();
            }
        }
        server.restart();
        let limit = (1 + draw.below(4)).to_string();
        // In two pieces, so that readers stand within segments.
        for more in [&["--limit", &limit][..], &[]] {
            let read = changes(&server, &[&["feed.t", "--from", &from], more].concat());
            seen.extend(read.iter().filter_map(|event| event["after"]["n"].as_i64()));
            if let Some(last) = read.last() {
                from = position(last).to_owned();
            }
        }
        assert_eq!(seen, written, "round {round}");
    }
}

/// Rows that come in as files have one event for all, behind the changes before and ahead of those after, also when the
/// server was killed since; who follows the feed reads the table anew then.
#[test]
fn an_import_and_a_restore_have_an_event_each() {
    let mut draw = draw::Draw::new("events of files", 3);
    for _ in 0..draw::rounds(3) {
        let mut server = server("");
        let mut session = cql(&server);
        session.run(TABLE);
        assert_eq!(changes(&server, &["feed.t", "--consumer", "all", "--from", "oldest"]).len(), 1);
        let (mut wanted, mut next) = (vec![("schema".to_owned(), 0)], 0);
        for _ in 0..4 {
            for _ in 0..draw.below(3) {
                session.run(&format!("INSERT INTO feed.t (p, c, n) VALUES (0, {next}, {next})"));
                wanted.push(("c".to_owned(), next));
                next += 1;
            }
            let rows: Vec<i64> = (0..1 + draw.below(5) as i64).map(|row| 1_000 + row).collect();
            let files = draw.below(2) as i64 + 1;
            let (data, scratch) = (server.data(), TempDir::new().expect("a temporary directory"));
            let data = data.to_str().expect("a path in UTF-8");
            // Another table's files: a new table with the same columns and options.
            session.run(&TABLE.replace("feed.t", "feed.other").replace(" WITH cdc = true", ""));
            for file in 0..files {
                for row in &rows {
                    session.run(&format!("INSERT INTO feed.other (p, c, n) VALUES ({file}, {row}, {row})"));
                }
                server.admin(&["flush", "feed", "other"]);
            }
            let backup = scratch.path().join("backup");
            let backup = backup.to_str().expect("a path in UTF-8");
            match draw.below(2) {
                0 => {
                    tool(&["backup", backup, "--data", data]);
                    session.run("TRUNCATE feed.t");
                    wanted.push(("t".to_owned(), 0));
                    let from_to = ["--keyspace", "feed", "--table", "other", "--as-table", "t"];
                    tool(&[&["restore", backup, "--data", data][..], &from_to].concat());
                }
                _ => {
                    let folder = server.tables().join("feed");
                    let folder = fs::read_dir(folder)
                        .expect("the keyspace")
                        .flatten()
                        .find(|entry| entry.file_name().to_string_lossy().starts_with("other-"));
                    let folder = folder.expect("a table's folder").path();
                    server.admin(&["import", "feed", "t", folder.to_str().expect("a path")]);
                }
            }
            wanted.push(("import".to_owned(), files));
            session.run("DROP TABLE feed.other");
            if draw.below(2) == 0 {
                server.kill();
                server.restart();
                session = cql(&server);
            }
            let seen = changes(&server, &["feed.t", "--from", "oldest"]);
            let seen: Vec<(String, i64)> = seen
                .iter()
                .map(|event| {
                    let op = event["op"].as_str().expect("an operation").to_owned();
                    let number = match &*op {
                        "import" => event["sstables"].as_i64(),
                        "c" => event["after"]["n"].as_i64(),
                        _ => Some(0),
                    };
                    (op, number.expect("a number"))
                })
                .collect();
            assert_eq!(seen, wanted);
            let anew = changes(&server, &["feed.t", "--from", "beginning"]);
            let mut model = Model::default();
            anew.iter().for_each(|event| model.fold(event));
            assert_eq!(model.rows(), selected(&session));
        }
    }
}

#[test]
fn counters_are_shown_with_their_new_value() {
    let server = server("");
    let session = cql(&server);
    session.run("CREATE TABLE feed.k (p int PRIMARY KEY, n counter) WITH cdc = true");
    for by in [5, -2, 40] {
        session.run(&format!("UPDATE feed.k SET n = n + {by} WHERE p = 1"));
    }
    let events = changes(&server, &["feed.k", "--from", "oldest"]);
    let values: Vec<_> = events.iter().skip(1).map(|event| event["after"]["n"].as_i64()).collect();
    assert_eq!(values, [Some(5), Some(3), Some(43)]);
}

/// Asks the HTTP port for a stream of events; returns the status and the lines behind the head.
fn stream(http: &str, path: &str, header: &str) -> (u16, impl Iterator<Item = String> + use<>) {
    let mut socket = TcpStream::connect(http).expect("the HTTP port");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
    write!(socket, "GET {path} HTTP/1.1\r\nHost: {http}\r\n{header}\r\n").expect("sent");
    let mut lines = BufReader::new(socket).lines().map(|line| line.expect("a line"));
    let status =
        lines.next().expect("a status line").split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = lines.skip_while(|line| !line.is_empty());
    (status.expect("a status"), body)
}

/// The next events of a stream: id and data.
fn next_events(lines: &mut impl Iterator<Item = String>, count: usize) -> Vec<(String, Value)> {
    let (mut found, mut id) = (Vec::new(), String::new());
    while found.len() < count {
        let line = lines.next().expect("more events");
        if let Some(text) = line.strip_prefix("id: ") {
            text.clone_into(&mut id);
        }
        if let Some(text) = line.strip_prefix("data: ") {
            found.push((id.clone(), serde_json::from_str(text).expect("JSON")));
        }
    }
    found
}

/// The reason for which the server ends a stream.
fn end_of(lines: &mut impl Iterator<Item = String>) -> String {
    assert!(lines.any(|line| line == "event: error"), "an end that says why");
    lines.find(|line| line.starts_with("data: ")).expect("the reason")
}

/// The address of the HTTP port.
fn http_of(server: &Server) -> String {
    let line = server.head().iter().find_map(|line| line.trim().strip_prefix("http "));
    line.expect("the HTTP port").split_whitespace().next().expect("an address").to_owned()
}

#[test]
fn events_come_over_http_as_they_happen_and_go_on_from_the_last_id() {
    let server = Server::start_with(&["--http", "127.0.0.1:0"]);
    let session = cql(&server);
    session
        .run("CREATE KEYSPACE feed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    session.run(TABLE);
    let http = http_of(&server);
    let (status, mut lines) = stream(&http, "/changes/feed/t?from=oldest", "");
    assert_eq!(status, 200);
    assert_eq!(next_events(&mut lines, 1)[0].1["op"], json!("schema"));
    for row in 0..3 {
        session.run(&format!("INSERT INTO feed.t (p, c) VALUES (1, {row})"));
    }
    let events = next_events(&mut lines, 3);
    drop(lines);
    assert!(events.iter().all(|(id, event)| id == position(event) && event["op"] == json!("c")));
    let header = format!("Last-Event-ID: {}\r\n", events[0].0);
    let (_, mut lines) = stream(&http, "/changes/feed/t", &header);
    assert_eq!(next_events(&mut lines, 2), events[1..]);
    for (path, wanted) in [
        ("/changes/feed", 400),
        ("/changes/feed/none", 400),
        ("/changes/feed/t?from=yesterday", 400),
        ("/changes/feed/t?to=now", 400),
        ("/changes/feed/%zz", 400),
    ] {
        assert_eq!(stream(&http, path, "").0, wanted, "{path}");
    }
}

#[test]
fn with_logins_changes_are_shown_to_who_may_read_the_table() {
    let folder = TempDir::with_prefix("helenus-changes-").expect("a temporary directory");
    let password = folder.path().join("password");
    fs::write(&password, "secret\n").expect("a file");
    let password = password.to_str().expect("a path in UTF-8").to_owned();
    let args = ["--http", "127.0.0.1:0", "--password-file", &password, "--authorizer", "CassandraAuthorizer"];
    let server = Server::start_in(folder, &args);
    let session = Cql::connect_as(server.address(), ("cassandra", "secret")).expect("a login");
    session
        .run("CREATE KEYSPACE feed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    session.run(TABLE);
    for role in ["reader", "other"] {
        session.run(&format!("CREATE ROLE {role} WITH PASSWORD = 'pw' AND LOGIN = true"));
    }
    session.run("GRANT SELECT ON TABLE feed.t TO reader");
    session.run("GRANT SELECT ON KEYSPACE system_views TO reader");
    let http = http_of(&server);
    let path = "/changes/feed/t?from=oldest";
    assert_eq!(stream(&http, path, "").0, 401);
    // other:pw, then reader:pw
    assert_eq!(stream(&http, path, "Authorization: Basic b3RoZXI6cHc=\r\n").0, 403);
    let (status, mut lines) = stream(&http, path, "Authorization: Basic cmVhZGVyOnB3\r\n");
    assert_eq!(status, 200);
    assert_eq!(next_events(&mut lines, 1)[0].1["change"], json!("created"));
    // The virtual table shows every table, so it asks for all of them.
    let select = "SELECT event FROM system_views.changes WHERE keyspace_name = 'feed' AND table_name = 't'";
    let reader = Cql::connect_as(server.address(), ("reader", "pw")).expect("a login");
    for text in [select, &format!("EXPLAIN {select}"), &format!("EXPLAIN ANALYZE {select}")] {
        let refused = reader.try_run(text).expect_err("the role may read one table");
        assert!(refused.contains("all keyspaces"), "{text}: {refused}");
    }
    assert_eq!(session.rows(select).len(), 1);
    // An open stream ends with the permission, and with the role.
    session.run("REVOKE SELECT ON TABLE feed.t FROM reader");
    session.run("INSERT INTO feed.t (p, c) VALUES (1, 1)");
    let reason = end_of(&mut lines);
    assert!(reason.contains("User reader has no SELECT permission"), "{reason}");
    session.run("GRANT SELECT ON TABLE feed.t TO other");
    let (status, mut lines) = stream(&http, path, "Authorization: Basic b3RoZXI6cHc=\r\n");
    assert_eq!(status, 200);
    session.run("DROP ROLE other");
    let reason = end_of(&mut lines);
    assert!(reason.contains("other"), "{reason}");
}

/// A table is its id: who makes one of the name of a dropped one does not read what was in that.
#[test]
fn an_event_asks_for_the_rights_to_the_table_and_the_masks_of_its_time() {
    let folder = TempDir::with_prefix("helenus-changes-").expect("a temporary directory");
    let password = folder.path().join("password");
    fs::write(&password, "secret\n").expect("a file");
    let config = folder.path().join("server.yaml");
    let text = format!(
        "password_file: {}\nauthorizer: CassandraAuthorizer\ndynamic_data_masking_enabled: true\n\
         audit_logging_options: {{enabled: true, logger: [{{class_name: FileAuditLogger}}]}}\n",
        password.display()
    );
    fs::write(&config, text).expect("a configuration");
    let config = config.to_str().expect("a path in UTF-8").to_owned();
    let mut server = Server::start_in(folder, &["--http", "127.0.0.1:0", "--config", &config]);
    let session = Cql::connect_as(server.address(), ("cassandra", "secret")).expect("a login");
    session
        .run("CREATE KEYSPACE feed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    for role in ["maker", "whole"] {
        session.run(&format!("CREATE ROLE {role} WITH PASSWORD = 'pw' AND LOGIN = true"));
    }
    session.run("GRANT CREATE ON KEYSPACE feed TO maker");
    session.run("GRANT SELECT ON ALL KEYSPACES TO whole");
    session.run("GRANT UNMASK ON ALL KEYSPACES TO whole");
    session.run("CREATE TABLE feed.t (p int PRIMARY KEY, v text) WITH cdc = true");
    session.run("INSERT INTO feed.t (p, v) VALUES (1, 'before the drop')");
    session.run("DROP TABLE feed.t");
    let maker = Cql::connect_as(server.address(), ("maker", "pw")).expect("a login");
    maker.run("CREATE TABLE feed.t (p int PRIMARY KEY, v text MASKED WITH DEFAULT) WITH cdc = true");
    maker.run("INSERT INTO feed.t (p, v) VALUES (2, 'under the mask')");
    maker.run("ALTER TABLE feed.t ALTER v DROP MASKED");
    maker.run("INSERT INTO feed.t (p, v) VALUES (3, 'without a mask')");
    let http = http_of(&server);
    // maker:pw, then whole:pw
    let (maker_login, whole_login) =
        ("Authorization: Basic bWFrZXI6cHc=\r\n", "Authorization: Basic d2hvbGU6cHc=\r\n");
    let (status, mut lines) = stream(&http, "/changes/feed/t?from=oldest", maker_login);
    let shown: String = lines.by_ref().take(20).collect();
    assert_eq!(status, 403, "{shown}");
    assert!(!shown.contains("before the drop"), "{shown}");
    let (status, mut lines) = stream(&http, "/changes/feed/t?from=oldest", whole_login);
    assert_eq!(status, 200);
    let events = next_events(&mut lines, 7);
    let values: Vec<&str> = events.iter().filter_map(|(_, event)| event["after"]["v"].as_str()).collect();
    assert_eq!(values, ["before the drop", "under the mask", "without a mask"], "{events:?}");
    // The maker has every right to the new table. Without UNMASK the events from before the mask went are refused.
    let made = events.iter().rposition(|(_, event)| event["change"] == "created").expect("created");
    let dropped = &events[made - 1].0;
    let path = format!("/changes/feed/t?from={dropped}");
    let (status, mut lines) = stream(&http, &path, maker_login);
    assert_eq!(status, 200);
    assert_eq!(next_events(&mut lines, 4)[1].1["after"]["v"], json!("under the mask"));
    session.run("REVOKE UNMASK ON feed.t FROM maker");
    let (status, _) = stream(&http, &path, maker_login);
    assert_eq!(status, 403);
    let altered = events.iter().rposition(|(_, event)| event["change"] == "altered").expect("altered");
    let path = format!("/changes/feed/t?from={}", events[altered].0);
    let (status, mut lines) = stream(&http, &path, maker_login);
    assert_eq!(status, 200);
    assert_eq!(next_events(&mut lines, 1)[0].1["after"]["v"], json!("without a mask"));
    server.stop();
    let log = fs::read_to_string(server.data().join("audit/audit.log")).expect("audit.log");
    let of_maker = |event: &str| {
        let is_one = |line: &&str| {
            line.contains(&format!("type:{event}"))
                && line.contains("GET /changes/")
                && line.contains("maker")
        };
        log.lines().filter(is_one).count()
    };
    assert_eq!((of_maker("UNAUTHORIZED_ATTEMPT"), of_maker("SELECT")), (2, 2), "{log}");
}

/// The kept segments.
fn kept(data: &Path) -> usize {
    let Ok(files) = fs::read_dir(data.join("changes")) else { return 0 };
    files.flatten().filter(|file| file.file_name().to_string_lossy().starts_with("kept-")).count()
}

/// Writes some segments full, and flushes them.
fn fill(server: &Server, session: &Cql, begin: usize) {
    for row in begin..begin + 60 {
        session.run(&format!("INSERT INTO feed.t (p, c, v) VALUES ({row}, 0, '{}')", "y".repeat(60_000)));
    }
    server.admin(&["flush"]);
    // The segments go with the flush after it.
    session.run("INSERT INTO feed.t (p, c) VALUES (0, 0)");
    server.admin(&["flush"]);
}

#[test]
fn the_log_is_kept_for_the_slowest_consumer_and_no_longer() {
    let server = server("");
    let session = cql(&server);
    session.run(TABLE);
    fill(&server, &session, 0);
    assert_eq!(kept(&server.data()), 0, "nobody consumes");
    for consumer in ["fast", "slow"] {
        assert!(changes(&server, &["feed.t", "--consumer", consumer, "--from", "now"]).is_empty());
    }
    fill(&server, &session, 100);
    let all = kept(&server.data());
    assert!(all >= 2, "{all}");
    let read = changes(&server, &["feed.t", "--consumer", "fast", "--ack-all"]);
    assert_eq!(read.len(), 61);
    assert!(changes(&server, &["feed.t", "--consumer", "fast"]).is_empty());
    assert_eq!(kept(&server.data()), all);
    let middle = position(&read[30]);
    changes(&server, &["feed.t", "--consumer", "slow", "--ack", middle]);
    assert!(kept(&server.data()) < all);
    assert_eq!(changes(&server, &["feed.t", "--consumer", "slow"]), read[31..]);
    let listed = changes(&server, &["--consumers"]);
    assert_eq!(listed[0].as_array().map(Vec::len), Some(2), "{listed:?}");
    changes(&server, &["feed.t", "--consumer", "slow", "--drop-consumer"]);
    assert_eq!(kept(&server.data()), 0);
    let refusal = refusal(&server, &["feed.t", "--consumer", "slow"]);
    assert!(refusal.contains("has no consumer 'slow'"), "{refusal}");
}

#[test]
fn a_consumer_beyond_the_limit_is_told_to_begin_anew_and_writes_go_on() {
    let mut server = server("cdc_total_space: 2MiB\n");
    let session = cql(&server);
    session.run(TABLE);
    changes(&server, &["feed.t", "--consumer", "late", "--from", "now"]);
    fill(&server, &session, 0);
    fill(&server, &session, 100);
    assert!(kept(&server.data()) <= 2);
    for _ in 0..2 {
        let refusal = refusal(&server, &["feed.t", "--consumer", "late"]);
        assert!(
            refusal.contains("are not kept any more") && refusal.contains("--from beginning"),
            "{refusal}"
        );
        server.kill();
        server.restart();
    }
    let session = cql(&server);
    let rows = changes(&server, &["feed.t", "--consumer", "late", "--from", "beginning", "--ack-all"]);
    assert_eq!(rows.len(), session.rows("SELECT p FROM feed.t").len());
    session.run("INSERT INTO feed.t (p, c) VALUES (1000, 1)");
    let next = changes(&server, &["feed.t", "--consumer", "late"]);
    assert_eq!(next.iter().map(|event| &event["key"]).collect::<Vec<_>>(), [&json!({"p": 1000, "c": 1})]);
}

#[test]
fn the_present_rows_come_first_and_the_changes_since_then_follow_from_any_position() {
    let server = server("");
    let session = cql(&server);
    session.run(&TABLE.replace(" WITH cdc = true", ""));
    let refusal = refusal(&server, &["feed.t"]);
    assert!(refusal.contains("ALTER TABLE feed.t WITH cdc = true"), "{refusal}");
    for row in 0..50 {
        session.run(&format!(
            "INSERT INTO feed.t (p, c, v, s, m) VALUES ({}, {row}, 'old', 'static', {{'a': 1}}) USING TIMESTAMP {}",
            row % 5,
            1000 + row
        ));
    }
    session.run("ALTER TABLE feed.t WITH cdc = true");
    let first = changes(&server, &["feed.t", "--from", "beginning", "--limit", "20"]);
    session.run("INSERT INTO feed.t (p, c, v) VALUES (0, 100, 'new')");
    let rest = changes(&server, &["feed.t", "--from", position(first.last().expect("rows"))]);
    let all: Vec<&Value> = first.iter().chain(&rest).collect();
    let (rows, then) = all.split_at(55);
    assert!(rows.iter().all(|event| event["op"] == json!("r") && event["source"]["snapshot"] == json!(true)));
    assert_eq!(rows.iter().filter(|event| event["static"] == json!(true)).count(), 5);
    let mut model = Model::default();
    rows.iter().chain(then).for_each(|event| model.fold(event));
    assert_eq!(model.rows(), selected(&session));
    // The row may have been among the rows too; its change follows in any case.
    let last = then.last().expect("the change");
    assert_eq!((&last["op"], &last["key"]), (&json!("c"), &json!({"p": 0, "c": 100})));
}

#[test]
fn bad_positions_are_refused_with_the_way_to_begin_anew() {
    let server = server("");
    let session = cql(&server);
    session.run(TABLE);
    let good = changes(&server, &["feed.t", "--from", "oldest"]).pop().expect("the schema event");
    let good = position(&good).to_owned();
    let other = format!("{:08x}{}", u32::from_str_radix(&good[..8], 16).expect("digits") ^ 1, &good[8..]);
    let late = format!("{}7fffffff00000014-000000", &good[..9]);
    for (from, text) in [
        ("yesterday", "is no position"),
        (&good[1..], "is no position"),
        (&other, "is of another database"),
        (&late, "is not in the log"),
    ] {
        let refusal = refusal(&server, &["feed.t", "--from", from]);
        assert!(refusal.contains(text), "{from}: {refusal}");
    }
    for (args, text) in [
        (&["feed.none"][..], "there is no table feed.none"),
        (&["feed"], "KEYSPACE.TABLE"),
        (&["feed.t", "--consumer", "a b", "--from", "now"], "cannot name a consumer"),
        (&["feed.t", "--consumer", "nobody"], "has no consumer 'nobody'"),
    ] {
        let refusal = refusal(&server, args);
        assert!(refusal.contains(text), "{args:?}: {refusal}");
    }
    let memory = Server::start_with(&["--memory"]);
    let session = cql(&memory);
    session
        .run("CREATE KEYSPACE feed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    session.run(TABLE);
    let refused = session
        .try_run("SELECT * FROM system_views.changes WHERE keyspace_name = 'feed' AND table_name = 't'");
    assert!(refused.unwrap_err().contains("a database in memory has none"));
}
