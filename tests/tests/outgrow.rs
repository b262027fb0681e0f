//! Tests `helenus admin outgrow`: the server's own history, its trends, and the words made of them.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use end_to_end::{Cql, Server, refused, tool};
use serde_json::{Value, json};

const HOURS: u64 = 10 * 24;

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs()
}

/// The sample of an hour before now: data grew by 10 MiB an hour on a disk of 100 GiB.
fn sample(hours_ago: u64) -> Value {
    let data = (HOURS - hours_ago) * (10 << 20);
    json!({
        "time_s": now_s() - hours_ago * 3600, "data_bytes": data, "disk_free_bytes": (100_u64 << 30) - data,
        "disk_bytes": 100_u64 << 30, "cores": 2, "cores_busy": 0.25, "resident_bytes": 50_000_000,
        "refused_per_s": 0.0, "reads_per_s": 1000.0, "writes_per_s": 5000.0, "read_p99_us": 400, "write_p99_us": 200,
    })
}

#[test]
fn a_new_server_says_that_trends_come_later_and_shows_its_figures() {
    let server = Server::start();
    let cql = Cql::connect(server.address());
    cql.run("CREATE KEYSPACE o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TABLE o.t (k int PRIMARY KEY, v text)");
    cql.run("INSERT INTO o.t (k, v) VALUES (1, 'a')");
    let told = server.admin(&["outgrow"]);
    for expected in ["Trends are shown once there is a day of history", "disk", "CPU", "3 nodes", "copies"] {
        assert!(told.contains(expected), "`{expected}` is missing: {told}");
    }
    let memory = Server::start_with(&["--memory"]);
    let told = tool(&["admin", "outgrow", "--json", "--host", memory.address()]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let names: Vec<&str> = told["limits"]
        .as_array()
        .expect("limits")
        .iter()
        .filter_map(|limit| limit["what"].as_str())
        .collect();
    assert_eq!(names, ["CPU", "memory", "reads p99", "writes p99"]);
    assert_eq!(told["cluster"]["nodes"], 3);
}

#[test]
fn the_history_survives_a_restart_and_its_trend_is_told() {
    let mut server = Server::start();
    server.kill();
    let file = server.data().join("history.jsonl");
    let mut lines: Vec<String> = (1..=HOURS).rev().map(|hours_ago| sample(hours_ago).to_string()).collect();
    lines.insert(7, "{\"time_s\": half a li".to_owned());
    fs::write(&file, lines.join("\n")).expect("the history");
    server.restart();
    let told = server.admin(&["outgrow", "--days", "100000", "--replicas", "5", "--json"]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let hours = told["history_hours"].as_f64().expect("hours");
    assert!((HOURS as f64 - 1.0..HOURS as f64 + 2.0).contains(&hours), "{hours}");
    let disk = &told["limits"][0];
    assert_eq!(disk["what"], "disk");
    assert!(disk["trend"].as_str().is_some_and(|trend| trend.contains("MiB a day over 10 days")), "{disk}");
    assert!(told["cluster"]["nodes"].as_u64() >= Some(5), "{told}");
    // The present sample was written beside those of before, and the damaged line is gone.
    assert!(server.stop().success());
    let kept = fs::read_to_string(&file).expect("the history");
    assert_eq!(kept.lines().count() as u64, HOURS + 1);
    assert!(kept.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn wrong_options_say_what_is_allowed() {
    let server = Server::start();
    let data = server.data();
    let data = data.to_str().expect("a path in UTF-8");
    for (option, value, expected) in [
        ("--node-disk", "much", "a size such as"),
        ("--node-disk", "10", "at least 1GB"),
        ("--replicas", "0", "1..=100000"),
        ("--days", "soon", "--days"),
    ] {
        let told = refused(&["admin", "outgrow", option, value, "--data", data]);
        assert!(told.contains(expected), "{option} {value}: {told}");
    }
}
