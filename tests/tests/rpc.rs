//! Tests Thrift RPC: real clients, the cassandra-cli scripts of three articles (`tests/texts/*.cli`), malformed calls.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{Calls, Client, Cql, Server, files, root};
use helenus_wire::thrift::{
    Column, ColumnParent, ConsistencyLevel, Method, SlicePredicate, SliceRange, args,
};
use serde_json::Value;

/// Starts a server with Thrift RPC, and returns its address.
fn server() -> (Server, String) {
    let server = Server::start_with(&["--rpc", "127.0.0.1:0"]);
    let address = Calls::address_of(&server);
    (server, address)
}

fn cli(address: &str, script: &Path) -> String {
    let output = Command::new(end_to_end::binary())
        .args(["cli", "--address", address, "-f"])
        .arg(script)
        .output()
        .expect("run helenus cli");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {errors}", script.display());
    String::from_utf8(output.stdout).expect("text")
}

fn text(name: &str) -> std::path::PathBuf {
    root().join("tests/texts").join(name)
}

#[test]
fn a_python_client_passes_framed_and_not_strict_and_not() {
    let (_server, address) = server();
    Client::Thrift.passes(&address, &[]);
}

#[test]
fn the_generated_java_client_and_hector_pass() {
    let (_server, address) = server();
    Client::ThriftJava.passes(&address, &[]);
}

#[test]
fn astyanax_passes() {
    let (_server, address) = server();
    Client::Astyanax.passes(&address, &[]);
}

#[test]
fn the_old_command_line_client_runs_the_texts_scripts_and_a_session_as_on_cassandra() {
    let (_server, address) = server();
    for name in ["reversed_comparators.cli", "query_plans.cli"] {
        let printed = Client::cassandra_cli(&address, &text(name));
        let made = printed.matches("schemas agree across the cluster").count();
        assert_eq!(made, if name.starts_with("rev") { 3 } else { 2 }, "{name}: {printed}");
        assert!(!printed.contains("=>"), "{name}: {printed}");
    }
    let printed = Client::cassandra_cli(&address, &text("mailings.cli"));
    assert!(printed.contains("=> (column=send_dates_2009-09-30, value=2245, timestamp="), "{printed}");
    let session = root().join("tests/drivers/cassandra-cli/session.cli");
    let expected =
        std::fs::read_to_string(session.with_extension("expected")).expect("what 3.11.19 had printed");
    let printed = comparable(&Client::cassandra_cli(&address, &session));
    for (at, (found, expected)) in printed.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {at} of\n{printed}");
    }
    assert_eq!(printed.lines().count(), expected.lines().count(), "{printed}");
}

/// The output of cassandra-cli without the parts that differ between runs: ids, times, addresses, and the default
/// length of chunks, which has grown between versions.
fn comparable(printed: &str) -> String {
    let is_id = |word: &str| word.len() == 36 && word.bytes().filter(|byte| *byte == b'-').count() == 4;
    let mut lines: Vec<String> = Vec::new();
    for line in printed.lines() {
        if line.starts_with("Elapsed time")
            || line.starts_with("Connected to")
            || line.contains("chunk_length_kb")
        {
            continue;
        }
        let mut line = line.to_owned();
        while let Some(at) = line.find("timestamp=1") {
            let digits = line[at + 10..].bytes().take_while(u8::is_ascii_digit).count();
            line.replace_range(at + 10..at + 10 + digits, "T");
        }
        let word = line.trim().trim_end_matches(": [127.0.0.1]").to_owned();
        lines.push(if is_id(&word) { line.replace(&word, "ID") } else { line });
    }
    lines.join("\n") + "\n"
}

#[test]
fn profile_and_stress_load_and_check_the_same_tables_over_both_doors() {
    let (server, rpc) = server();
    let run = |args: &[&str]| {
        let output = Command::new(end_to_end::binary()).args(args).output().expect("run helenus");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8(output.stdout).expect("text")
    };
    let data = server.data();
    let data = data.to_str().expect("a path in UTF-8");
    let rows = ["--rows", "small-row,no-col-index,ten-thousand", "--repeats", "5"];
    let told = run(&[&["profile", "--rpc", &rpc, "--server-data", data, "--json", "-"][..], &rows].concat());
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!((&told["reached"], told["cases"].as_array().map(Vec::len)), (&"rpc".into(), Some(18 * 3)));
    assert_eq!(told["settled"]["sstables"], 2);
    let both = run(&[&["profile", "--rpc", &rpc, "--cql", server.address()][..], &rows].concat());
    assert!(
        both.contains("A  CQL on") && both.contains("B  RPC on") && both.contains("over 54 lines"),
        "{both}"
    );

    let stress = |args: &[&str]| -> Value {
        let told = run(&[&["stress"], args, &["--json"]].concat());
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"))
    };
    let small = ["--rows", "2000", "--in-flight", "16"];
    for (kind, keyspace) in [
        (&["insert"][..], "single"),
        (&["read"], "single"),
        (&["insert", "--indexed"], "indexed"),
        (&["find"], "indexed"),
        (&["count"], "counters"),
        (&["load"], "single"),
        (&["slice"], "single"),
        (&["slice", "--reversed", "--limit", "7"], "single"),
        (&["names", "--names", "9", "--pages", "1"], "single"),
    ] {
        let reads = !["insert", "load"].contains(&kind[0]);
        let short = if reads { &["--duration", "0.2"][..] } else { &[] };
        for door in [["--rpc", &rpc], ["--host", server.address()]] {
            let told = stress(&[kind, &door, &small, &["--keyspace", keyspace], short].concat());
            assert!(told["operations"].as_u64() > Some(0), "{kind:?} {door:?}: {told}");
        }
    }
    let wide = stress(&["load", "--order", "desc", "--rpc", &rpc, "--rows", "2000", "--keyspace", "single"]);
    assert_eq!(wide["rows"], 2000);
    for reversed in [&["--reversed"][..], &[]] {
        let slice = ["slice", "--order", "desc", "--rpc", &rpc, "--rows", "2000", "--keyspace", "single"];
        stress(&[&slice[..], reversed, &["--duration", "0.2"]].concat());
    }
    for (door, keyspace) in
        [(["--rpc", &rpc], "mailings_rpc"), (["--host", server.address()], "mailings_cql")]
    {
        let users =
            ["--users", "3000", "--second-day", "1000", "--keyspace", keyspace, "--server-data", data];
        let told = stress(&[&["mailings", "--fresh"], &door[..], &users].concat());
        assert_eq!(told["slice"]["matches"], serde_json::json!([4, 1996, 1000]));
        assert!(told["settled"]["disk_bytes_after"].as_u64() > Some(0), "{told}");
        let again = stress(&[&["mailings", "--parts", "get,slice"], &door[..], &users[..6]].concat());
        assert_eq!(again["get"]["operations"], 2996, "{again}");
    }
}

#[test]
fn the_scripts_of_the_old_texts_run_as_they_stand() {
    let (_server, address) = server();
    for name in ["reversed_comparators.cli", "query_plans.cli"] {
        assert!(cli(&address, &text(name)).contains("Authenticated to keyspace"), "{name}");
    }
    let shown = cli(&address, &text("mailings.cli"));
    assert!(shown.contains("=> (name=send_dates_2009-09-30, value=2245"), "{shown}");
}

#[test]
fn garbage_closes_its_connection_and_no_other() {
    let (_server, address) = server();
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x7f, 0xff, 0xff, 0xff, 0x80], &[0, 0, 0, 2, 0x80, 0]] {
        let mut socket = TcpStream::connect(&address).expect("connect");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        socket.write_all(garbage).expect("write");
        let mut rest = Vec::new();
        let _reset_or_end = socket.read_to_end(&mut rest);
        // A length beyond the limit is answered with what is wrong.
        let text = String::from_utf8_lossy(&rest);
        assert!(
            rest.is_empty() || garbage.len() == 5 && text.contains("Frame of 2147483647 bytes"),
            "{text}"
        );
    }
    Client::Thrift.passes(&address, &["framed"]);
}

#[test]
fn an_unknown_call_and_missing_arguments_are_answered_with_the_protocols_own_exception() {
    let (_server, address) = server();
    let mut socket = TcpStream::connect(&address).expect("connect");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    for (name, expected) in
        [("nonsense", "Invalid method name: 'nonsense'"), ("get_slice", "Required field 'key'")]
    {
        let mut message = vec![0x80, 1, 0, 1];
        message.extend_from_slice(&(name.len() as u32).to_be_bytes());
        message.extend_from_slice(name.as_bytes());
        message.extend_from_slice(&[0, 0, 0, 9, 0]);
        let mut frame = (message.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(&message);
        socket.write_all(&frame).expect("write");
        let mut length = [0; 4];
        socket.read_exact(&mut length).expect("a frame");
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        socket.read_exact(&mut answer).expect("its message");
        assert_eq!(answer[..4], [0x80, 1, 0, 3], "an exception");
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains(expected), "{text}");
    }
}

/// Number of columns of a row in the families of the next test.
const COLUMNS: i64 = 700;

/// Writes rows with columns of all kinds in each family, most of them plain.
fn fill_families(cql: &Cql, calls: &mut Calls) {
    cql.run("CREATE KEYSPACE doors WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    for (family, columns) in [
        ("ascending", "n text, value blob, PRIMARY KEY (key, n)) WITH COMPACT STORAGE"),
        (
            "descending",
            "n text, value blob, PRIMARY KEY (key, n)) WITH COMPACT STORAGE AND CLUSTERING ORDER BY (n DESC)",
        ),
        ("composite", "n text, m bigint, value blob, PRIMARY KEY (key, n, m)) WITH COMPACT STORAGE"),
        ("declared", "n0100 blob, n0300 blob, PRIMARY KEY (key)) WITH COMPACT STORAGE"),
        ("counting", "n text, value counter, PRIMARY KEY (key, n)) WITH COMPACT STORAGE"),
    ] {
        cql.run(&format!("CREATE TABLE doors.{family} (key blob, {columns}"));
    }
    calls.answer(Method::SetKeyspace, &args::OfKeyspace { keyspace: "doors" });
    for column in 0..COLUMNS {
        let name = format!("n{column:04}");
        let value = "ab".repeat([5, 0, 16, 17, 60][column as usize % 5]);
        let mut using = format!("USING TIMESTAMP {}", 1_000 + column);
        if column % 97 == 3 {
            using += " AND TTL 864000";
        }
        for family in ["ascending", "descending"] {
            cql.run(&format!(
                "INSERT INTO doors.{family} (key, n, value) VALUES (0x01, '{name}', 0x{value}) {using}"
            ));
        }
        cql.run(&format!(
            "INSERT INTO doors.composite (key, n, m, value) VALUES (0x01, 'n{:03}', {column}, 0x{value}) {using}",
            column / 10
        ));
        cql.run(&format!(
            "UPDATE doors.counting SET value = value + {column} WHERE key = 0x01 AND n = '{name}'"
        ));
        let inserted = Column {
            name: name.as_bytes(),
            value: Some(value.as_bytes()),
            timestamp: Some(1_000 + column),
            ttl: None,
        };
        let column_parent = ColumnParent { column_family: "declared", super_column: None };
        let consistency_level = ConsistencyLevel::One;
        let insert = args::Insert { key: &[1], column_parent, column: inserted, consistency_level };
        calls.answer(Method::Insert, &insert);
    }
    for family in ["ascending", "descending", "composite"] {
        cql.run(&format!("DELETE FROM doors.{family} WHERE key = 0x01 AND n = 'n0055'"));
    }
}

/// The answers to all queries about these families, including those for a missing row.
fn asked(calls: &mut Calls) -> Vec<(String, Vec<u8>)> {
    let composite: [&[u8]; 2] = [b"\0\x04n005\0", b"\0\x04n040\x01"];
    let ranges: [[&[u8]; 2]; 4] = [[b"", b""], [b"n0050", b"n0400"], [b"n0400", b"n0050"], [b"n0301", b""]];
    let mut answers = Vec::new();
    for family in ["ascending", "descending", "composite", "declared", "counting"] {
        for range in ranges {
            for (reversed, count) in [(false, 10_000), (false, 100), (true, 100), (true, 10_000), (false, 1)]
            {
                let [start, finish] = match (family, range) {
                    ("composite", [_, b""]) => [&b""[..]; 2],
                    ("composite", [b"n0050", _]) => composite,
                    ("composite", [finish, start]) if finish > start => [composite[1], composite[0]],
                    (_, range) => range,
                };
                let is_backwards = !start.is_empty() && !finish.is_empty() && start > finish;
                if is_backwards != (reversed ^ (family == "descending")) && range[1] != b"" {
                    continue;
                }
                let slice_range = Some(SliceRange { start, finish, reversed, count });
                let predicate = SlicePredicate { column_names: None, slice_range };
                let column_parent = ColumnParent { column_family: family, super_column: None };
                let consistency_level = ConsistencyLevel::One;
                let one = args::GetSlice {
                    key: &[1],
                    column_parent: column_parent.clone(),
                    predicate: predicate.clone(),
                    consistency_level,
                };
                let keys: Vec<&[u8]> = vec![&[1], &[2]];
                let many = args::MultigetSlice { keys, column_parent, predicate, consistency_level };
                let call = format!("{family} {start:?} {finish:?} {reversed} {count}");
                for method in [Method::GetSlice, Method::GetCount] {
                    answers.push((format!("{method:?} {call}"), calls.answer(method, &one)));
                }
                for method in [Method::MultigetSlice, Method::MultigetCount] {
                    answers.push((format!("{method:?} {call}"), calls.answer(method, &many)));
                }
            }
        }
    }
    answers
}

#[test]
fn columns_are_answered_in_the_same_bytes_from_memory_and_from_files() {
    let (server, address) = server();
    let cql = Cql::connect(server.address());
    let mut calls = Calls::connect(&address);
    fill_families(&cql, &mut calls);
    let from_memory = asked(&mut calls);
    assert!(from_memory.len() > 200, "{} answers", from_memory.len());
    let longest = from_memory.iter().map(|(_, answer)| answer.len()).max();
    assert!(longest > Some(40_000), "no answer has all columns: {longest:?}");
    for settle in [&["flush"][..], &["compact", "doors"]] {
        server.admin(settle);
        let folder = files::table_folder(&server.tables(), &cql, "doors", "ascending");
        assert_eq!(files::tables(&folder).len(), 1, "{settle:?}");
        for ((call, from_memory), (_, from_files)) in from_memory.iter().zip(asked(&mut calls)) {
            assert!(*from_memory == from_files, "{call} after {settle:?}: other bytes");
        }
    }
}
