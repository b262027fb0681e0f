//! Tests verbs of `helenus admin` that change a running server: clients, timeouts, log levels, expiring snapshots.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use end_to_end::raw::Raw;
use end_to_end::{Cql, Server, files, refused};
use serde_json::Value;

const KEYSPACE: &str = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn refused_verb(server: &Server, args: &[&str]) -> String {
    refused(&[&["admin"], args, &["--data", text(&server.data())]].concat())
}

#[test]
fn the_native_port_closes_and_opens_again_while_the_admin_socket_stays() {
    let server = Server::start();
    for round in 0..3 {
        let cql = Cql::connect(server.address());
        cql.run(&format!("CREATE KEYSPACE IF NOT EXISTS verbs_b {KEYSPACE}"));
        let mut raw = Raw::ready(server.address(), 5);
        server.admin(&["disablebinary"]);
        server.admin(&["disablebinary"]);
        assert!(
            raw.try_query("SELECT key FROM system.local").is_none(),
            "round {round}: its connection is closed"
        );
        assert!(TcpStream::connect(server.address()).is_err(), "round {round}: nobody listens");
        assert_eq!(server.admin(&["statusbinary"]), "not running\n");
        server.admin(&["enablebinary"]);
        server.admin(&["enablebinary"]);
        assert_eq!(server.admin(&["statusbinary"]), "running\n");
        Raw::ready(server.address(), 5).run("SELECT key FROM system.local");
    }
    server.admin(&["disablebinary"]);
    let taken = std::net::TcpListener::bind(server.address()).expect("the port is free");
    let told = refused_verb(&server, &["enablebinary"]);
    assert!(told.contains(server.address()), "{told}");
    drop(taken);
    server.admin(&["enablebinary"]);
    server.admin(&["drain"]);
    let told = refused_verb(&server, &["enablebinary"]);
    assert!(told.contains("start it again"), "{told}");
    assert_eq!(server.admin(&["statusbinary"]), "not running\n");
}

#[test]
fn connected_clients_are_shown_with_what_their_drivers_say() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    cql.rows("SELECT key FROM system.local");
    let raw = Raw::ready(server.address(), 4);
    let told = server.admin(&["clientstats"]);
    assert!(told.starts_with("Total connected clients: ") && told.contains("\nanonymous "), "{told}");
    let seen: Value = serde_json::from_str(&server.admin(&["clientstats", "--json"])).expect("JSON");
    let connections = seen["connections"].as_array().expect("connections");
    let versions: BTreeSet<u64> = connections.iter().filter_map(|one| one["version"].as_u64()).collect();
    assert!(versions.contains(&4), "{seen}");
    assert!(connections.iter().any(|one| one["options"]["DRIVER_NAME"].is_string()), "{seen}");
    let told = server.admin(&["clientstats", "--all"]);
    assert!(told.starts_with("Address "), "{told}");
    assert!(told.contains(connections[0]["address"].as_str().expect("an address")), "{told}");
    assert!(server.admin(&["clientstats", "--client-options"]).contains("CQL_VERSION="));
    drop(raw);
    let told = server.admin(&["clientstats", "--by-protocol"]);
    assert!(told.contains("4/v4             /127.0.0.1 "), "{told}");
    assert_eq!(server.admin(&["clientstats", "--clear-history"]), "Clearing connection history\n");
    assert_eq!(server.admin(&["clientstats", "--by-protocol"]), "Clients by protocol version\n\n");
}

#[test]
fn timeouts_and_the_level_of_the_log_hold_at_once_until_the_next_start() {
    let mut server = Server::start();
    assert_eq!(server.admin(&["gettimeout", "read"]), "Current timeout for type read: 5000 ms\n");
    assert_eq!(server.admin(&["gettimeout", "range"]), "Current timeout for type range: 10000 ms\n");
    assert_eq!(server.admin(&["gettimeout", "write"]), "Current timeout for type write: 2000 ms\n");
    server.admin(&["settimeout", "range", "10"]);
    assert_eq!(server.admin(&["gettimeout", "range"]), "Current timeout for type range: 10 ms\n");
    assert_eq!(server.admin(&["gettimeout", "read"]), "Current timeout for type read: 5000 ms\n");
    let shown = |server: &Server, name: &str| {
        let cql = Cql::connect(server.address());
        let rows = cql.rows(&format!("SELECT value FROM system_views.settings WHERE name = '{name}'"));
        rows.into_iter().flatten().next().flatten().and_then(|value| value.as_text().cloned())
    };
    assert_eq!(shown(&server, "range_request_timeout").as_deref(), Some("10ms"));
    // The timeout takes effect: a scan of many rows takes longer than that in a debug build.
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE verbs_t {KEYSPACE}"));
    cql.run("CREATE TABLE verbs_t.t (k int PRIMARY KEY, v blob)");
    let mut raw = Raw::ready(server.address(), 4);
    for batch in 0..60 {
        let rows = (0..500).map(|row| {
            format!("INSERT INTO verbs_t.t (k, v) VALUES ({}, 0x{})", batch * 500 + row, "ab".repeat(20))
        });
        raw.run(&format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", rows.collect::<Vec<_>>().join("; ")));
    }
    let scan = "SELECT count(*) FROM verbs_t.t WHERE v = 0x00 ALLOW FILTERING";
    let told = cql.refusal(scan);
    assert!(told.to_lowercase().contains("timeout") || told.contains("timed out"), "{told}");
    server.admin(&["settimeout", "range", "60000"]);
    cql.rows(scan);

    for (args, said) in [
        (&["gettimeout", "nope"][..], "Timeout type requires one of (read, range, write, counterwrite"),
        (&["settimeout", "read", "-1"], "timeout must be non-negative"),
        (&["settimeout", "read", "abc"], "abc is no number"),
        (&["settimeout", "read", "0"], "read_request_timeout"),
        (&["settimeout", "truncate", "1000"], "has no timeout here"),
        (&["settimeout", "internodeuser", "1000"], "no other node"),
        (&["settimeout", "misc", "1000"], "no other"),
        (&["settimeout", "counterwrite", "10"], "give write"),
        (&["scrub", "-n", "verbs_t"], "helenus sstable scrub"),
        (&["verify", "-t", "verbs_t"], "requires --extended-verify"),
        (&["import", "verbs_t", "t", "/nowhere", "-ri"], "indexes are built"),
        (&["toppartitions", "-i", "10000"], "counted all the time"),
        (&["toppartitions", "-t"], "non-existent scheduled sampling for keyspace: null"),
        (&["toppartitions", "-a", "CAS_CONTENTIONS"], "sampler is not available"),
        (&["upgradesstables", "-t", "1"], "is not built"),
        (&["compact", "-st", "1", "-et", "2", "verbs_t"], "compact the table"),
        (&["setlogginglevel", "org.apache.cassandra", "DEBUG"], "give ROOT"),
        (&["setlogginglevel", "\u{1b}[2Jx", "DEBUG"], "\\u{1b}"),
        (&["setlogginglevel", "cql", "DEBUG"], "no component"),
        (&["setlogginglevel", "ROOT", "LOUD"], "error, warn, info, debug or off"),
    ] {
        let told = refused_verb(&server, args);
        assert!(told.contains(said), "{args:?}: {told}");
    }
    let levels =
        |level: &str| format!("\n{:<50}{:>10}\n{:<50}{level:>10}\n", "Logger Name", "Log Level", "ROOT");
    assert_eq!(server.admin(&["getlogginglevels"]), levels("INFO"));
    server.admin(&["setlogginglevel", "ROOT", "DEBUG"]);
    assert_eq!(server.admin(&["getlogginglevels"]), levels("DEBUG"));
    server.admin(&["setlogginglevel"]);
    assert_eq!(server.admin(&["getlogginglevels"]), levels("INFO"));
    assert_eq!(server.admin(&["gettimeout", "range"]), "Current timeout for type range: 60000 ms\n");
    server.kill();
    server.restart();
    assert_eq!(server.admin(&["gettimeout", "range"]), "Current timeout for type range: 10000 ms\n");
}

#[test]
fn snapshots_with_a_ttl_expire_also_while_no_server_runs() {
    let mut server = Server::start();
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE verbs_s {KEYSPACE}"));
    cql.run("CREATE TABLE verbs_s.t (k int PRIMARY KEY)");
    cql.run("INSERT INTO verbs_s.t (k) VALUES (1)");
    let told = server.admin(&["snapshot", "-t", "kept", "--ttl", "2m", "verbs_s"]);
    assert!(told.contains("options {skipFlush=false, ttl=2m}"), "{told}");
    server.admin(&["snapshot", "-t", "stays", "verbs_s"]);
    for (ttl, said) in [
        ("30s", "ttl for snapshot must be at least 60 seconds"),
        ("5x", "time span"),
        ("9999999d", "68 years"),
    ] {
        let told = refused_verb(&server, &["snapshot", "-t", "no", "--ttl", ttl, "verbs_s"]);
        assert!(told.contains(said), "{ttl}: {told}");
    }
    let lines: Value = serde_json::from_str(&server.admin(&["listsnapshots", "--json"])).expect("JSON");
    let of = |name: &str| {
        let lines = lines.as_array().expect("lines");
        lines.iter().find(|line| line["name"] == name).cloned().expect("the snapshot")
    };
    assert!(of("stays")["expires_at"].is_null());
    let (created, expires) = (of("kept")["created_at"].clone(), of("kept")["expires_at"].clone());
    let told = server.admin(&["listsnapshots"]);
    assert!(
        told.contains(&format!(
            "{} {}",
            created.as_str().expect("a time"),
            expires.as_str().expect("a time")
        )),
        "{told}"
    );
    assert!(!server.admin(&["listsnapshots", "--no-ttl"]).contains("kept"));

    // The snapshot expires while the server is down, according to the manifest, which has Cassandra's format.
    let folder =
        files::table_folder(&server.data().join("data"), &cql, "verbs_s", "t").join("snapshots/kept");
    let over = r#"{"files": [], "created_at": "2020-01-01T00:00:00Z", "expires_at": "2020-01-01T00:02:00Z", "ephemeral": false}"#;
    server.kill();
    fs::write(folder.join("manifest.json"), over).expect("the manifest");
    server.restart();
    let begun = Instant::now();
    while folder.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the snapshot is still there");
        std::thread::yield_now();
    }
    assert!(folder.with_file_name("stays").exists());
    let told = server.admin(&["listsnapshots"]);
    assert!(told.contains("stays") && !told.contains("kept"), "{told}");
}

#[test]
fn folders_of_tables_are_shown_and_verbs_that_do_not_exist_say_why() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    cql.run(&format!("CREATE KEYSPACE verbs_p {KEYSPACE}"));
    cql.run("CREATE TABLE verbs_p.t (k int PRIMARY KEY)");
    let folder = files::table_folder(&server.data().join("data"), &cql, "verbs_p", "t");
    let told = server.admin(&["datapaths", "verbs_p.t"]);
    assert_eq!(told, format!("Keyspace: verbs_p\n\tTable: t\n\tPaths:\n\t\t{}\n\n", folder.display()));
    let told: Value =
        serde_json::from_str(&server.admin(&["datapaths", "verbs_p", "-F", "json"])).expect("JSON");
    assert_eq!(told["verbs_p"]["t"][0], text(&folder));
    assert!(
        refused_verb(&server, &["datapaths", "verbs_p.nope"]).contains("no keyspace or table verbs_p.nope")
    );
    for verb in ["autorepairstatus", "getautorepairconfig", "setautorepairconfig", "rangekeysample"] {
        let told = refused_verb(&server, &[verb, "-t", "FULL"]);
        assert!(told.contains(&format!("{verb}: ")) && !told.contains("unrecognized"), "{told}");
    }
    for verb in ["clientstats", "disablebinary", "getlogginglevels", "datapaths"] {
        let told = refused(&["admin", verb, "--data", "/nonexistent"]);
        assert!(told.contains("/nonexistent"), "{told}");
    }
}
