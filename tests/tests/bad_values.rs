//! Sends invalid values: the answer is InvalidRequest with the column's name, and nothing is written.

use end_to_end::Server;
use end_to_end::raw::{RESULT, Raw};

const INVALID: i32 = 0x2200;

fn scene() -> (Server, Raw) {
    let server = Server::start_with(&["--memory"]);
    let mut client = Raw::ready(server.address(), 4);
    client.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    client.run(
        "CREATE TABLE k.t (key text, name text, number int, big bigint, flag boolean, id uuid, at timestamp, words list<text>, \
         PRIMARY KEY (key, name))",
    );
    client.run("CREATE TABLE k.n (number_key int PRIMARY KEY, v int)");
    (server, client)
}

/// The text of the refusal of a query with these values.
fn refused(client: &mut Raw, query: &str, values: &[Option<&[u8]>]) -> String {
    let (code, text) = client.query_with(query, values).error();
    assert_eq!(code, INVALID, "{query}: {text}");
    text
}

#[test]
fn constants_and_values_of_the_wrong_type_name_their_column() {
    let (_server, mut client) = scene();
    let mut refused = |query: &str, values: &[Option<&[u8]>]| refused(&mut client, query, values);
    for (column, value) in [
        ("number", "'a'"),
        ("big", "'a'"),
        ("flag", "1"),
        ("id", "'no'"),
        ("at", "'yesterday'"),
        ("words", "{'a': 1}"),
        ("name", "1"),
        ("key", "1"),
    ] {
        let query = match column {
            "name" => "INSERT INTO k.t (key, name) VALUES ('k', 1)".to_owned(),
            "key" => "INSERT INTO k.t (key, name) VALUES (1, 'n')".to_owned(),
            _ => format!("INSERT INTO k.t (key, name, {column}) VALUES ('k', 'n', {value})"),
        };
        let text = refused(&query, &[]);
        assert!(text.contains(column), "{column} is not named: {text}");
    }
    let wrong: [(&str, &[u8]); 5] =
        [("number", &[1, 2, 3]), ("big", &[1]), ("flag", &[1, 2]), ("id", &[0; 15]), ("name", &[0xFF, 0xFE])];
    for (column, bytes) in wrong {
        let text = if column == "name" {
            refused("INSERT INTO k.t (key, name) VALUES ('k', ?)", &[Some(bytes)])
        } else {
            refused(&format!("INSERT INTO k.t (key, name, {column}) VALUES ('k', 'n', ?)"), &[Some(bytes)])
        };
        assert!(text.contains(column), "{column} is not named: {text}");
    }
    assert_eq!(&client.query("SELECT * FROM k.t").body[..4], [0, 0, 0, 2]);
    assert_eq!(client.query("SELECT count(*) FROM k.t").body.last_chunk(), Some(&0_u64.to_be_bytes()));
}

#[test]
fn keys_that_are_empty_null_or_64_kib_long_are_refused() {
    let (_server, mut client) = scene();
    let mut refused = |query: &str, values: &[Option<&[u8]>]| refused(&mut client, query, values);
    let long = vec![b'x'; 1 << 16];
    let insert = "INSERT INTO k.t (key, name, number) VALUES (?, ?, 1)";
    let text = refused(insert, &[Some(b""), Some(b"n")]);
    assert!(text.contains("Key may not be empty"), "{text}");
    let text = refused(insert, &[None, Some(b"n")]);
    assert!(text.contains("Invalid null value in condition for column key"), "{text}");
    let text = refused(insert, &[Some(b"k"), None]);
    assert!(text.contains("Invalid null value in condition for column name"), "{text}");
    let text = refused(insert, &[Some(&long), Some(b"n")]);
    assert!(text.contains("Key length of 65536 is longer than maximum of 65535"), "{text}");
    let text = refused(insert, &[Some(b"k"), Some(&long)]);
    assert!(text.contains("Key length of 65536 is longer than maximum of 65535"), "{text}");
    let text = refused("SELECT * FROM k.t WHERE key = ?", &[Some(b"")]);
    assert!(text.contains("Key may not be empty"), "{text}");
    let text = refused("INSERT INTO k.n (number_key, v) VALUES (?, 1)", &[Some(&[1, 2])]);
    assert!(text.contains("number_key"), "{text}");
    // The greatest valid values: a key of 65,535 bytes, and an empty clustering value.
    let reply = client.query_with(insert, &[Some(&long[1..]), Some(b"")]);
    assert_eq!(reply.opcode, RESULT, "{:?}", reply.error());
}

#[test]
fn a_paging_state_that_nobody_gave_is_a_protocol_error() {
    let (server, _) = scene();
    let mut client = Raw::ready(server.address(), 4);
    let mut body = end_to_end::raw::query(4, "SELECT * FROM k.t", &[]);
    // The flags are the last byte; the page size and the paging state follow.
    *body.last_mut().expect("flags") = 0x04 | 0x08;
    body.extend_from_slice(&10_u32.to_be_bytes());
    body.extend_from_slice(&7_u32.to_be_bytes());
    body.extend_from_slice(b"garbage");
    client.send(&end_to_end::raw::frame(4, 0, 1, end_to_end::raw::QUERY, &body));
    let reply = client.receive().expect("an answer");
    assert_eq!(reply.error(), (0x000A, "Invalid value for the paging state".to_owned()));
}
