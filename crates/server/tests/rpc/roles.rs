//! What a role may have in flight, and the end of its sessions.

use std::io::{Read, Write};

use helenus_wire::thrift::{Compression, Method, Nothing, args};

use crate::server::{
    WithLogins, answer_of, audit, call, name_and_number, numbered, statement, text_of_files,
};

#[test]
fn the_session_of_a_role_that_may_not_log_in_any_more_ends_with_the_answer_that_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let with_logins = WithLogins::start(directory.path(), |_| {});
    for end in ["ALTER ROLE bob WITH LOGIN = false", "DROP ROLE bob"] {
        with_logins.own("ALTER ROLE bob WITH LOGIN = true");
        let mut client = with_logins.bob();
        client.write_all(&call(Method::DescribeVersion, &Nothing {})).unwrap();
        answer_of(&mut client);
        with_logins.own(end);
        // The first is refused; those behind it are not answered, on a thread or here.
        let calls = [Method::DescribeVersion, Method::DescribeKeyspaces, Method::DescribeVersion];
        let calls: Vec<u8> =
            (1..).zip(calls).flat_map(|(number, method)| numbered(method, number, &Nothing {})).collect();
        client.write_all(&calls).unwrap();
        let refusal = answer_of(&mut client);
        assert_eq!(name_and_number(&refusal), ("describe_version".to_owned(), 1));
        let mut more = Vec::new();
        let _reset = client.read_to_end(&mut more);
        assert!(more.is_empty(), "{:?} after {end}", String::from_utf8_lossy(&more));
    }
}

/// Writes that wait for the log are in flight, as are calls that wait for a thread.
#[test]
fn calls_that_wait_count_for_their_role_and_give_their_places_back() {
    const CALLS: usize = 40;
    let directory = tempfile::tempdir().unwrap();
    let with_logins = WithLogins::start(directory.path(), |_| {});
    for text in [
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.t (k int PRIMARY KEY, v text)",
        "GRANT ALL ON KEYSPACE k TO bob",
        "ALTER ROLE bob WITH OPTIONS = {'requests_max': '3'}",
    ] {
        with_logins.own(text);
    }
    let mut client = with_logins.bob();
    let insert = statement("INSERT INTO k.t (k, v) VALUES (0, 'v')");
    let refused_of = |client: &mut std::net::TcpStream, count: usize| {
        client.write_all(&insert.repeat(count)).unwrap();
        let answers: Vec<Vec<u8>> = (0..count).map(|_| answer_of(client)).collect();
        answers.iter().filter(|answer| String::from_utf8_lossy(answer).contains("requests_max")).count()
    };
    // They are read together, or nearly so.
    assert!((0..50).any(|_| refused_of(&mut client, CALLS) >= CALLS / 2), "held writes are not counted");
    for _ in 0..20 {
        assert_eq!(refused_of(&mut client, 1), 0, "the places come back");
    }
}

/// The event of a call that only prepares a statement does not tell what the statement is about; its text does.
#[test]
fn no_secret_of_a_text_stands_in_the_audit_log_though_it_is_only_prepared() {
    let (directory, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = audit(logs.path());
    let with_logins = WithLogins::start(directory.path(), |limits| limits.audit = Some(log.clone()));
    let mut client = with_logins.bob();
    let texts = [
        "ALTER ROLE app WITH PASSWORD='topsecret'",
        "CREATE USER app WITH PASSWORD 'topsecret'",
        "ALTER ROLE app WITH PASSWORT='topsecret'",
        "ALTER ROL app WITH PASSWORD='topsecret'",
        "UPDATE system_auth.roles SET salted_hash = 'topsecret' WHERE role = 'app'",
        "UPDATE roles SET salted_hash = 'topsecret' WHERE role = 'app'",
        "BEGIN BATCH UPDATE system_auth.roles SET salted_hash = 'topsecret' WHERE role = 'app'; APPLY BATCH",
        "BEGIN BATCH UPDATE system_auth.roles SET salted_hash = 'topsecret' WHERE role = app APPLY BATCH",
        "UPDATE k.t SET v = 'shown' WHERE k = 'app'",
    ];
    for text in texts {
        let asked = args::CqlQuery { query: text.as_bytes(), compression: Compression::None };
        for method in [Method::PrepareCql3Query, Method::PrepareCqlQuery, Method::ExecuteCqlQuery] {
            client.write_all(&call(method, &asked)).unwrap();
            answer_of(&mut client);
        }
        client.write_all(&statement(text)).unwrap();
        answer_of(&mut client);
    }
    log.disable();
    let text = text_of_files(logs.path());
    assert!(!text.contains("topsecret"), "{text}");
    assert!(text.lines().count() > 4 * texts.len(), "{text}");
    assert!(text.contains("PREPARE_STATEMENT") && text.contains("shown"), "{text}");
}
