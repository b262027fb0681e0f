//! SELECT with bind markers: what drivers are told of them, and the same rows as with constants. Names, types, positions
//! and texts are those of Cassandra 5.0.9.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_cql::backend::BoundValue;
use helenus_model::types::{pack, put_value};
use support::Server;

fn server(seed: u64) -> Server {
    let server = Server::open(seed);
    let keyspace = support::KEYSPACE;
    for statement in [
        format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ),
        "CREATE TABLE w (k int, a int, b int, v text, m map<text, int>, PRIMARY KEY (k, a, b))".to_owned(),
        "CREATE TABLE p2 (a int, b text, v int, PRIMARY KEY ((a, b)))".to_owned(),
    ] {
        server.run(&statement);
    }
    for k in 0..3 {
        for a in 0..3 {
            for b in 0..3 {
                server.run(&format!(
                    "INSERT INTO w (k, a, b, v, m) VALUES ({k}, {a}, {b}, 'v{a}', {{'x': {b}}})"
                ));
            }
        }
    }
    server
}

#[test]
fn markers_are_described_as_in_cassandra() {
    let server = server(1);
    let described = |query: &str| {
        let statement = server.prepare(query);
        let markers = statement.markers.iter().map(|marker| format!("{} {}", marker.name, marker.ty));
        (markers.collect::<Vec<_>>().join(", "), statement.partition_key_markers.clone())
    };
    for (query, markers, key) in [
        ("SELECT * FROM w WHERE k = ?", "k int", &[0][..]),
        ("SELECT * FROM w WHERE k IN ?", "in(k) list<int>", &[]),
        ("SELECT * FROM w WHERE k IN (?, ?)", "k int, k int", &[1]),
        ("SELECT * FROM w WHERE k = ? AND (a, b) > ?", "k int, (a,b) frozen<tuple<int, int>>", &[0]),
        ("SELECT * FROM w WHERE k = ? AND (a, b) IN ?", "k int, in(a,b) list<frozen<tuple<int, int>>>", &[0]),
        ("SELECT * FROM w WHERE k = ? AND (a, b) = (?, ?)", "k int, a int, b int", &[0]),
        (
            "SELECT * FROM w WHERE token(k) > ? AND token(k) <= token(?)",
            "partition key token bigint, arg0(system.token) int",
            &[],
        ),
        (
            "SELECT * FROM w WHERE k = ? AND a > :lo AND a < :hi PER PARTITION LIMIT ? LIMIT ?",
            "k int, lo int, hi int, [per_partition_limit] int, [limit] int",
            &[0],
        ),
        (
            "SELECT token(?), (int)?, int_as_blob(?) FROM w WHERE k = :k",
            "[selection] int, [selection] int, [selection] int, k int",
            &[3],
        ),
        (
            "SELECT * FROM w WHERE m['x'] = ? AND m CONTAINS ? AND m CONTAINS KEY ? AND v = ? ALLOW FILTERING",
            "value(m) int, value(m) int, key(m) text, v text",
            &[],
        ),
        ("SELECT * FROM p2 WHERE b = ? AND a = ?", "b text, a int", &[1, 0]),
        ("SELECT * FROM p2 WHERE b = ? AND a IN (?, ?)", "b text, a int, a int", &[2, 0]),
    ] {
        assert_eq!(described(query), (markers.to_owned(), key.to_vec()), "{query}");
    }
    server.end();
}

fn int(value: i32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

fn list(values: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut out = Vec::new();
    pack(values.len(), values.iter().map(Option::as_deref), &mut out);
    out
}

fn tuple(values: &[i32]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|value| put_value(Some(&int(*value)), &mut out));
    out
}

#[test]
fn values_select_the_same_rows_as_constants() {
    let server = server(2);
    let cases: Vec<(&str, Vec<Vec<u8>>, &str)> = vec![
        ("k = ?", vec![int(1)], "k = 1"),
        ("k IN ?", vec![list(&[Some(int(2)), Some(int(0)), Some(int(2))])], "k IN (0, 2)"),
        ("k = ? AND a = ? AND b = ?", vec![int(1), int(2), int(0)], "k = 1 AND a = 2 AND b = 0"),
        ("k = ? AND a >= ? AND a < ?", vec![int(1), int(1), int(2)], "k = 1 AND a >= 1 AND a < 2"),
        ("k = ? AND (a, b) > ?", vec![int(1), tuple(&[1, 1])], "k = 1 AND (a, b) > (1, 1)"),
        ("k = ? AND (a, b) = ?", vec![int(1), tuple(&[1, 1])], "k = 1 AND a = 1 AND b = 1"),
        (
            "k = ? AND (a, b) IN ?",
            vec![int(1), list(&[Some(tuple(&[2, 1])), Some(tuple(&[0, 0]))])],
            "k = 1 AND (a, b) IN ((0, 0), (2, 1))",
        ),
        (
            "k = ? AND (a, b) IN (?, ?)",
            vec![int(1), tuple(&[2, 1]), tuple(&[0, 0])],
            "k = 1 AND (a, b) IN ((0, 0), (2, 1))",
        ),
        ("token(k) >= token(?)", vec![int(1)], "token(k) >= token(1)"),
        ("v = ? ALLOW FILTERING", vec![b"v1".to_vec()], "v = 'v1' ALLOW FILTERING"),
        (
            "v IN ? ALLOW FILTERING",
            vec![list(&[Some(b"v1".to_vec()), Some(b"v2".to_vec())])],
            "v IN ('v1', 'v2') ALLOW FILTERING",
        ),
        ("m[?] = ? ALLOW FILTERING", vec![b"x".to_vec(), int(2)], "m['x'] = 2 ALLOW FILTERING"),
        ("k = ? LIMIT ?", vec![int(1), int(4)], "k = 1 LIMIT 4"),
        (
            "k IN (?, ?) PER PARTITION LIMIT ?",
            vec![int(2), int(1), int(1)],
            "k IN (1, 2) PER PARTITION LIMIT 1",
        ),
    ];
    for (clause, values, constant) in cases {
        let values: Vec<BoundValue<'_>> = values.iter().map(|value| BoundValue::Bytes(value)).collect();
        let found = server.bound(&format!("SELECT * FROM w WHERE {clause}"), &values).expect("answered");
        let expected =
            server.select(&format!("SELECT * FROM w WHERE {constant}"), None).expect("answered").rows;
        assert!(!expected.is_empty(), "{constant}");
        assert_eq!(found, expected, "{clause}");
    }
    server.end();
}

#[test]
fn null_and_unset_are_refused_or_taken_as_in_cassandra() {
    use BoundValue::{Bytes, Null, Unset};
    let server = server(3);
    let one = int(1);
    let one = Bytes(&one);
    let with_null = list(&[Some(int(1)), None]);
    for (clause, values, text) in [
        ("k = ?", &[Unset][..], "Invalid unset value for column k"),
        ("k = ?", &[Null], "Invalid null value in condition for column k"),
        ("k IN ?", &[Unset], "Invalid unset value for column k"),
        ("k IN ?", &[Null], "Invalid null value for column k"),
        ("k = ? AND a = ?", &[one, Unset], "Invalid unset value for column a"),
        ("k = ? AND a > ?", &[one, Unset], "Invalid unset value for column a"),
        ("k = ? AND (a, b) > ?", &[one, Unset], "Invalid unset value for tuple (a,b)"),
        ("k = ? AND (a, b) IN ?", &[one, Unset], "Invalid unset value for in(a,b)"),
        ("k = ? AND (a, b) IN ?", &[one, Null], "Invalid null value for IN restriction"),
        ("k = ? AND (a, b) = (?, ?)", &[one, one, Unset], "Invalid unset value for tuple field number 1"),
        ("k = ? AND (a, b) = (?, ?)", &[one, one, Null], "Invalid null value for column b"),
        ("token(k) > ?", &[Null], "Invalid null token value"),
        ("v = ? ALLOW FILTERING", &[Unset], "Unsupported unset value for column v"),
        ("v = ? ALLOW FILTERING", &[Null], "Unsupported null value for column v"),
        ("v IN ? ALLOW FILTERING", &[Unset], "Invalid unset value for column v"),
        ("k = 1 LIMIT ?", &[Null], "Invalid null value of limit"),
        ("k = ? AND a IN ?", &[one, Null], "Invalid null value for column a"),
        ("k = ? AND a IN ?", &[one, Bytes(&with_null)], "Invalid null value in condition for column a"),
        ("m CONTAINS ? ALLOW FILTERING", &[Unset], "Unsupported unset value for column m"),
    ] {
        let found = server.bound(&format!("SELECT * FROM w WHERE {clause}"), values);
        assert_eq!(found.err().map(|error| error.to_string()).as_deref(), Some(text), "{clause}");
    }
    let whole = server.select("SELECT * FROM w", None).expect("answered").rows;
    assert_eq!(server.bound("SELECT * FROM w LIMIT ?", &[Unset]).expect("an unset limit is none"), whole);
    let above_null = server.bound("SELECT * FROM w WHERE k = ? AND a > ?", &[one, Null]).expect("answered");
    assert_eq!(above_null.len(), 9);
    server.end();
}
