//! Clients before their login: what they may take of the audit log, of time, and of the connections.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use helenus_server::connection_budget::ConnectionBudget;
use helenus_wire::thrift::{AuthenticationRequest, Compression, Map, Method, Nothing, args};

use crate::server::{
    LONG, WithLogins, answer_of, audit, call, connect, name_and_number, numbered, query, server_with,
    statement, text_of_files,
};

/// Zlib's format of a text of one character many times: the character, then copies of 258 of what stands before.
fn deflated(character: u8, copies: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut push = |value: u32, count: u32| (0..count).rev().for_each(|at| bits.push(value >> at & 1 == 1));
    // The last block, with the fixed codes (RFC 1951, 3.2.6).
    push(0b110, 3);
    push(0x30 + u32::from(character), 8);
    for _ in 0..copies {
        push(0b1100_0101, 8);
        push(0, 5);
    }
    push(0, 7);
    let byte = |bits: &[bool]| bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << at);
    let length = 1 + 258 * copies as u64;
    let (character, count) = (u64::from(character), length % 65_521);
    let low = (1 + count * character) % 65_521;
    let high = (length + character * length * (length + 1) / 2) % 65_521;
    let sum = (high << 16 | low) as u32;
    [&[0x78, 0x9C][..], &bits.chunks(8).map(byte).collect::<Vec<_>>(), &sum.to_be_bytes()].concat()
}

/// The calls that a stranger may send, of nearly the 4 KiB that a message before the login may have: a long statement, one that becomes
/// long, a method that there is not, whose name is long.
fn long_calls() -> Vec<Vec<u8>> {
    let unknown = [&[0x80, 1, 0, 1, 0, 0, 0x0F, 0xA0][..], &[b'u'; 4_000], &[0, 0, 0, 1, 0]].concat();
    let unknown = [&(unknown.len() as u32).to_be_bytes()[..], &unknown].concat();
    let compressed = query(&deflated(b'x', 2_300), Compression::Gzip);
    assert!(compressed.len() < 4_096);
    let prepares = call(
        Method::PrepareCql3Query,
        &helenus_wire::thrift::args::CqlQuery {
            query: &deflated(b'x', 2_000),
            compression: Compression::Gzip,
        },
    );
    vec![statement(&"x".repeat(3_900)), compressed, prepares, unknown]
}

#[test]
fn a_message_before_the_login_has_its_limit_although_it_arrives_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let with_logins = WithLogins::start(directory.path(), |_| {});
    for length in [4_096, 20_000, 60_000, 100_000] {
        let mut client = connect(with_logins.server.address());
        client.write_all(&statement(&"x".repeat(length))).unwrap();
        let mut answer = Vec::new();
        // The connection is closed, perhaps before all that was sent is read.
        let _ = client.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.contains("A message before the login may have 4096 bytes"), "{length}: {answer}");
    }
}

#[test]
fn a_stranger_writes_little_to_the_audit_log_whatever_it_sends() {
    const TIMES: usize = 60;
    let directory = tempfile::tempdir().unwrap();
    let logs = tempfile::tempdir().unwrap();
    let audit = audit(logs.path());
    let with_logins = WithLogins::start(directory.path(), |limits| limits.audit = Some(audit.clone()));
    let mut client = connect(with_logins.server.address());
    for long in long_calls() {
        for _ in 0..TIMES {
            client.write_all(&long).unwrap();
            answer_of(&mut client);
        }
    }
    audit.disable();
    let text = text_of_files(logs.path());
    assert!(text.len() < 64 << 10, "{} bytes", text.len());
    assert!(text.lines().all(|line| line.len() < 1000), "{text:.2000}");
    assert!(text.contains("execute_cql3_query; ") && text.contains("UNAUTHORIZED_ATTEMPT"), "{text:.2000}");
    assert!(!text.contains("xxxx"), "{text:.2000}");
    // Each is counted once, by a line of its own or in the number of those without one.
    let unwritten = |line: &str| {
        let (before, _) = line.split_once(" more refused calls")?;
        before.rsplit_once(':')?.1.parse::<usize>().ok()
    };
    let refused = text.lines().filter(|line| line.contains("|operation:"));
    let counted = refused.map(|line| match (unwritten(line), line.ends_with("are not written one by one")) {
        (unwritten, true) => unwritten.unwrap_or_default(),
        (unwritten, false) => unwritten.unwrap_or_default() + 1,
    });
    assert_eq!(counted.sum::<usize>(), long_calls().len() * TIMES, "{text}");
}

/// Sends a call and one byte more, again and again, so that there is always a part of a message.
#[test]
fn a_client_that_does_not_log_in_is_let_go_though_it_is_never_silent() {
    let directory = tempfile::tempdir().unwrap();
    let with_logins = WithLogins::start(directory.path(), |limits| {
        limits.handshake_timeout = Duration::from_millis(300);
    });
    let call = call(Method::DescribeVersion, &Nothing {});
    let mut client = connect(with_logins.server.address());
    let begin = Instant::now();
    let _may_be_late = client.write_all(&call[..1]);
    let mut is_open = || {
        client.write_all(&call[1..]).and_then(|()| client.write_all(&call[..1])).is_ok()
            && client.read(&mut [0; 4096]).is_ok_and(|count| count > 0)
    };
    while is_open() {
        assert!(begin.elapsed() < LONG / 2, "a client without a login keeps its connection");
    }
    // One that sends a single byte and nothing more.
    let mut silent = connect(with_logins.server.address());
    let _may_be_late = silent.write_all(&[0]);
    let _reset = silent.read_to_end(&mut Vec::new());
    assert!(begin.elapsed() < LONG);
}

#[test]
fn clients_that_are_silent_make_room_for_one_that_calls() {
    let directory = tempfile::tempdir().unwrap();
    let server = server_with(directory.path(), usize::MAX, |limits| {
        limits.budget = ConnectionBudget::new(16, 16);
    });
    let silent: Vec<TcpStream> = (0..40).map(|_| connect(server.address())).collect();
    let begin = Instant::now();
    loop {
        let mut client = connect(server.address());
        let asked = client.write_all(&call(Method::DescribeVersion, &Nothing {}));
        if asked.and_then(|()| client.read_exact(&mut [0; 4])).is_ok() {
            break;
        }
        assert!(begin.elapsed() < LONG, "silent clients keep others out");
    }
    drop(silent);
}

#[test]
fn a_message_that_is_not_taken_is_refused_under_its_own_name_and_number() {
    let directory = tempfile::tempdir().unwrap();
    let logs = tempfile::tempdir().unwrap();
    let audit = audit(logs.path());
    let server = server_with(directory.path(), usize::MAX, |limits| limits.audit = Some(audit.clone()));
    // Before it a call that is answered here, and one that is answered on a thread.
    for first in [Method::DescribeVersion, Method::DescribeKeyspaces] {
        let mut client = connect(server.address());
        let mut too_long = numbered(Method::Truncate, 77, &Nothing {});
        too_long[..4].copy_from_slice(&(1_u32 << 30).to_be_bytes());
        client.write_all(&[numbered(first, 1, &Nothing {}), too_long].concat()).unwrap();
        assert_eq!(name_and_number(&answer_of(&mut client)), (first.name().to_owned(), 1));
        assert_eq!(name_and_number(&answer_of(&mut client)), ("truncate".to_owned(), 77));
    }
    assert!(server.figures().errors.contains(&("INTERNAL_ERROR", 2)));
    audit.disable();
    let text = text_of_files(logs.path());
    assert_eq!(text.lines().filter(|line| line.contains("operation:truncate; ")).count(), 2, "{text}");
}

/// The answers to failed logins wait, each longer than the one before, also those of logins that are sent without a wait for answers.
#[test]
fn failed_logins_that_are_sent_together_wait_each_for_its_own_delay() {
    let directory = tempfile::tempdir().unwrap();
    let with_logins = WithLogins::start(directory.path(), |_| {});
    let credentials = Map(vec![("username".into(), "bob".into()), ("password".into(), "wrong".into())]);
    let login = args::Login { auth_request: AuthenticationRequest { credentials } };
    let calls: Vec<u8> = (1..=7).flat_map(|number| numbered(Method::Login, number, &login)).collect();
    let mut client = connect(with_logins.server.address());
    let began = Instant::now();
    client.write_all(&calls).unwrap();
    // Three are free of it.
    let mut least = Duration::ZERO;
    for (number, delay_ms) in (1..).zip([0, 0, 0, 250, 500, 1000, 2000]) {
        assert_eq!(name_and_number(&answer_of(&mut client)), ("login".to_owned(), number));
        least += Duration::from_millis(delay_ms);
        assert!(began.elapsed() >= least, "answer {number} after {:?}", began.elapsed());
    }
}
