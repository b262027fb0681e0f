//! The audit log where something is short: strangers write little to it, a full disk stops statements where no line may be lost,
//! and a request that waits for memory has one line.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::raw::{self, Raw};
use end_to_end::{Server, SmallDisk};
use tempfile::TempDir;

const FILE_LOGGER: &str = "enabled: true, logger: [{class_name: FileAuditLogger}]";

/// Starts a server with logins, an audit log of these options, and its files in `folder`.
fn audited(folder: TempDir, options: &str) -> Server {
    audited_with(folder, "", options)
}

/// The same with other settings.
fn audited_with(folder: TempDir, settings: &str, options: &str) -> Server {
    let config = folder.path().join("server.yaml");
    let text = format!(
        "authenticator: PasswordAuthenticator\n{settings}audit_logging_options: {{{FILE_LOGGER}{options}}}\n"
    );
    fs::write(&config, text).expect("a configuration");
    Server::start_in(folder, &["--config", config.to_str().expect("UTF-8")])
}

#[test]
fn strangers_do_not_fill_the_log() {
    const FAILURES: u64 = 60;
    let mut server = audited(TempDir::with_prefix("helenus-audit-").expect("a temporary directory"), "");
    let long = "n".repeat(4_000);
    let (mut raw, _) = Raw::greeted(server.address(), 4);
    for number in 0..FAILURES {
        // A refusal for what the token is, which costs no hash.
        let token = if number < 3 { format!("\0{long}\0wrong") } else { "x".to_owned() };
        raw.authenticate(token.as_bytes());
    }
    server.stop();
    let text = fs::read_to_string(server.data().join("audit/audit.log")).expect("audit.log");
    let failed: Vec<&str> = text.lines().filter(|line| line.contains("type:LOGIN_ERROR")).collect();
    assert!(failed.len() < 20, "{failed:#?}");
    assert!(failed.iter().all(|line| line.len() < 1000), "{failed:#?}");
    let told = failed.iter().map(|line| {
        let (before, _) = line.split_once(" more failed logins").unwrap_or_default();
        let more: u64 = before.rsplit([':', ' ']).next().and_then(|count| count.parse().ok()).unwrap_or(0);
        // The last line tells of those before the end alone.
        more + u64::from(line.contains("LOGIN FAILURE"))
    });
    assert_eq!(told.sum::<u64>(), FAILURES, "{failed:#?}");
}

/// With `block: true` no statement runs whose line might be lost: they are refused with the reason until there is room, and then no line is
/// missing. With `block: false` they run, and the lines are counted.
#[test]
fn a_full_disk_stops_statements_where_none_may_be_lost() {
    for block in [true, false] {
        let folder = TempDir::with_prefix("helenus-audit-").expect("a temporary directory");
        let small = folder.path().join("small");
        let Some(_disk) = SmallDisk::mount(&small, 2) else {
            println!("no disk can be mounted here");
            return;
        };
        let options = format!(", block: {block}, audit_logs_dir: {}", small.join("audit").display());
        let mut server = audited(folder, &options);
        let (mut raw, _) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
        let filler = small.join("filler");
        let _full = fs::write(&filler, vec![1; 4 << 20]);
        // These lines do not wait in memory for others.
        let began = Instant::now();
        let mut done = 0;
        let refused = loop {
            let reply = raw.query(&format!("CREATE ROLE IF NOT EXISTS r{done}x"));
            if reply.opcode == raw::ERROR {
                break Some(reply.error());
            }
            done += 1;
            if !block && done > 200 {
                break None;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "no statement is refused");
        };
        assert_eq!(refused.is_some(), block);
        if let Some((code, text)) = refused {
            assert_eq!(code, 0x1001, "{text}");
            assert!(text.contains("audit log") && text.contains("disableauditlog"), "{text}");
            assert_eq!(raw.query("SELECT key FROM system.local").error().0, 0x1001);
        }
        fs::remove_file(&filler).expect("room");
        let began = Instant::now();
        while raw.query("CREATE ROLE IF NOT EXISTS last").opcode == raw::ERROR {
            assert!(began.elapsed() < Duration::from_secs(60), "statements are still refused");
        }
        server.stop();
        let text = fs::read_to_string(small.join("audit/audit.log")).expect("audit.log");
        let numbers = (0..done).filter(|number| text.contains(&format!("EXISTS r{number}x")));
        assert_eq!(numbers.count() == done, block, "{done}: {text}");
        assert!(text.contains("ROLE IF NOT EXISTS last"), "{text}");
    }
}

/// The number of requests that have waited for memory.
fn memory_waits(server: &Server) -> u64 {
    let line = server.head().iter().find_map(|line| line.trim().strip_prefix("http "));
    let address = line.and_then(|line| line.split_whitespace().next()).expect("the HTTP port");
    let mut stream = TcpStream::connect(address).expect("connect");
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let count = answer.lines().find_map(|line| line.strip_prefix("helenus_memory_waits_total "));
    count.and_then(|count| count.parse().ok()).expect("a number of waits")
}

/// A request for which there is no memory is refused to its thread, which waits for memory and serves it again from its start.
/// However often that happens, the request has one line.
#[test]
fn a_request_that_waits_for_memory_has_one_line() {
    const CLIENTS: usize = 20;
    const REQUESTS: i16 = 2;
    let folder = TempDir::with_prefix("helenus-audit-").expect("a temporary directory");
    let config = folder.path().join("audit.yaml");
    let settings = "memory_limit: 256MiB\naudit_logging_options: {enabled: true, logger: [{class_name: FileAuditLogger}]}\n";
    fs::write(&config, settings).expect("written");
    let config = config.to_str().expect("UTF-8").to_owned();
    let mut server = Server::start_in(folder, &["--config", &config, "--http", "127.0.0.1:0"]);
    let mut first = Raw::ready(server.address(), 4);
    first
        .run("CREATE KEYSPACE large WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    first.run("CREATE TABLE large.t (k int PRIMARY KEY, v text)");
    let value = "v".repeat(1 << 20);
    (0..24).for_each(|k| first.run(&format!("INSERT INTO large.t (k, v) VALUES ({k}, '{value}')")));
    // Answers of 24 MiB without pages, more of them than there is memory for, because nobody reads one before a request waits.
    let select = "SELECT * FROM large.t";
    let body = raw::query(4, select, &[]);
    let mut clients: Vec<Raw> = (0..CLIENTS).map(|_| Raw::ready(server.address(), 4)).collect();
    for client in &mut clients {
        (0..REQUESTS).for_each(|stream| client.send(&raw::frame(4, 0, stream, raw::QUERY, &body)));
    }
    let began = Instant::now();
    while memory_waits(&server) == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "no request waits for memory");
    }
    thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| (0..REQUESTS).for_each(|_| drop(client.receive().expect("an answer"))));
        }
    });
    server.stop();
    let text = fs::read_to_string(server.data().join("audit/audit.log")).expect("audit.log");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(select)).collect();
    let refused = lines.iter().filter(|line| line.contains("REQUEST_FAILURE")).count();
    println!("{refused} lines of refusals");
    assert_eq!(lines.len(), CLIENTS * REQUESTS as usize, "{lines:?}");
}

#[test]
fn a_long_statement_that_fails_has_a_line_of_its_beginning_alone() {
    let mut server = audited(TempDir::with_prefix("helenus-audit-").expect("a temporary directory"), "");
    let (mut raw, _) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
    let list = "'topsecret', ".repeat(300_000);
    let text = format!("SELECT nosuch FROM system.local WHERE key IN ({list}'topsecret')");
    assert_eq!(raw.query(&text).opcode, raw::ERROR);
    server.stop();
    let log = fs::read_to_string(server.data().join("audit/audit.log")).expect("audit.log");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("SELECT nosuch")).collect();
    assert!(lines.len() == 1 && lines[0].len() < 100_000, "{} lines", lines.len());
    assert!(!log.contains("topsecret"));
}

/// A batch as the protocol has it: these prepared statements, each without values.
fn batch_of(ids: &[&[u8]]) -> Vec<u8> {
    let mut body = vec![0];
    body.extend((ids.len() as u16).to_be_bytes());
    for id in ids {
        body.push(1);
        body.extend((id.len() as u16).to_be_bytes());
        body.extend_from_slice(id);
        body.extend([0, 0]);
    }
    body.extend([0, 1, 0]);
    body
}

/// A request names a long prepared statement as often as it likes, in 20 bytes each, and fails. The log gets the beginning, and a
/// line that counts the rest.
#[test]
fn a_failed_request_has_few_lines_whatever_it_names() {
    const ENTRIES: usize = 1500;
    const UNAUTHORIZED: i32 = 0x2100;
    let folder = TempDir::with_prefix("helenus-audit-").expect("a temporary directory");
    let mut server = audited_with(folder, "authorizer: CassandraAuthorizer\n", "");
    let (mut root, _) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
    for statement in [
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.t (k int PRIMARY KEY, v text)",
        "CREATE ROLE nobody WITH LOGIN = true AND PASSWORD = 'nobody'",
    ] {
        root.run(statement);
    }
    let (mut nobody, _) = Raw::login(server.address(), 4, ("nobody", "nobody"));
    let long = "v".repeat(100_000);
    let part = format!("INSERT INTO k.t (k, v) VALUES (?, '{}');", &long[..500]);
    let statements = [
        // Long; short, so that what surrounds it is most; with a text that the log writes longer than it is; a batch of its own.
        (format!("INSERT INTO k.t (k, v) VALUES (?, '{long}')"), true),
        ("DELETE FROM k.t WHERE k = ?".to_owned(), true),
        (format!("INSERT INTO k.t (k, v) VALUES (?, '{}')", "\n".repeat(3_000)), true),
        (format!("BEGIN BATCH {} APPLY BATCH", part.repeat(400)), false),
    ];
    let ids: Vec<Vec<u8>> = statements.iter().map(|(text, _)| root.prepare(text).0).collect();
    let path = server.data().join("audit/audit.log");
    let lines_since = |from: usize, count: usize| {
        let began = Instant::now();
        loop {
            let text = fs::read_to_string(&path).expect("audit.log");
            let marked: Vec<String> = text.lines().skip(from).map(str::to_owned).collect();
            if marked.iter().filter(|line| line.contains("mark of the end")).count() >= count {
                return (marked, text.lines().count());
            }
            assert!(began.elapsed() < Duration::from_secs(60), "the log has no end");
            thread::yield_now();
        }
    };
    let mark =
        |raw: &mut Raw| assert_eq!(raw.query("SELECT k AS \"mark of the end\" FROM k.t").opcode, raw::RESULT);
    mark(&mut root);
    let (_, mut seen) = lines_since(0, 1);
    for is_root in [true, false] {
        for (id, (text, is_single)) in ids.iter().zip(&statements) {
            let asker = if is_root { &mut root } else { &mut nobody };
            let entries = if *is_single { ENTRIES } else { 1 };
            let reply = match is_single {
                true => asker.ask(raw::BATCH, &batch_of(&vec![&id[..]; entries])),
                false => {
                    let body = [&(id.len() as u16).to_be_bytes()[..], id, &[0, 1, 0]].concat();
                    asker.ask(raw::EXECUTE, &body)
                }
            };
            assert_eq!(reply.opcode, raw::ERROR);
            let (code, error) = reply.error();
            assert!(!error.contains("not found"), "{error}");
            let event = if code == UNAUTHORIZED { "UNAUTHORIZED_ATTEMPT" } else { "REQUEST_FAILURE" };
            mark(&mut root);
            let (lines, now) = lines_since(seen, 1);
            seen = now;
            let of_it: Vec<&String> = lines.iter().filter(|line| line.contains(event)).collect();
            let bytes: usize = of_it.iter().map(|line| line.len()).sum();
            let shown = &text[..60.min(text.len())];
            assert!((100..300_000).contains(&bytes), "{event}, {shown}: {bytes} bytes");
            let parts = if *is_single { entries } else { 400 };
            let rest = of_it.iter().find_map(|line| {
                let (_, rest) = line.split_once("operation:and ")?;
                rest.split_once(" more statements")?.0.parse::<usize>().ok()
            });
            // The first line is that of the request.
            let told = of_it.len() - 1 - usize::from(rest.is_some()) + rest.unwrap_or(0);
            assert_eq!(told, parts, "{event}, {shown}: each statement is written or counted");
        }
    }
    server.stop();
}
