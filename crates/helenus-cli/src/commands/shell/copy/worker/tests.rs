//! Connections of an import to a server that answers OVERLOADED.

use super::super::input::read_all;
use super::super::options::CopyOptions;
use super::*;
use helenus_wire::native::{Direction, EnvelopeReader, ErrorDetail, ErrorMessage, Outgoing, ResponseHead};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::sync_channel;

const ROWS: usize = 400;
const REQUESTS: usize = 64;

fn plan(attempts_max: u32) -> Plan {
    let options = CopyOptions::default();
    let target = Target { field: Some(0), name: "k".into(), ty: CqlType::Int, is_key: true };
    Plan {
        targets: vec![target],
        fields: 1,
        marks: options.marks,
        texts: options.texts,
        consistency: Consistency::One,
        batch_rows: 1,
        is_counter: false,
        null_as_unset: false,
        attempts_max,
        requests_max: REQUESTS,
        rows_per_second: None,
    }
}

fn shared() -> Shared {
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines: Vec<String> = (0..ROWS).map(|row| row.to_string()).collect();
    std::fs::write(file.path(), lines.join("\n")).unwrap();
    let (sender, chunks) = sync_channel(ROWS);
    read_all(&[file.path().to_owned()], &CopyOptions::default(), &mut |chunk| {
        sender.send(Arc::new(chunk)).is_ok()
    })
    .unwrap();
    Shared {
        chunks: Mutex::new(chunks),
        rows_done: AtomicU64::new(0),
        rows_sent: AtomicU64::new(0),
        begun: Instant::now(),
        is_aborted: AtomicBool::new(false),
        bytes_read: AtomicU64::new(0),
        bytes_total: 0,
    }
}

fn answer(stream: i16, is_refused: bool) -> Vec<u8> {
    let detail = ErrorDetail::Plain(ErrorCode::Overloaded);
    let error = ErrorMessage { message: "full".into(), detail };
    let message = if is_refused { Outgoing::Error(&error) } else { Outgoing::Void };
    let mut out = Vec::new();
    message.encode(&ResponseHead::new(Version::V4, stream), None, &mut out).unwrap();
    out
}

/// Answers each round of requests that have arrived: those beyond `room` are refused. Ends with the connection.
fn serve(mut socket: TcpStream, room: usize, each_round: impl Fn(usize)) {
    let reader =
        EnvelopeReader { from: Direction::Request, connection: Some(Version::V4), max_frame: 1 << 20 };
    let mut input = Vec::new();
    let mut buffer = [0; 64 << 10];
    while let Ok(count @ 1..) = socket.read(&mut buffer) {
        input.extend_from_slice(&buffer[..count]);
        let (mut at, mut taken, mut out) = (0, 0, Vec::new());
        while let Ok(Some(envelope)) = reader.read(&input[at..]) {
            out.extend(answer(envelope.header.stream, taken >= room));
            (at, taken) = (at + envelope.size(), taken + 1);
        }
        input.drain(..at);
        each_round(taken);
        if socket.write_all(&out).is_err() {
            return;
        }
    }
}

fn run(plan: &Plan, shared: &Shared, room: usize, each_round: impl Fn(usize) + Send) -> Vec<Failed> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    let connection = Connection::over(client, Version::V4).unwrap();
    let prepared = Prepared { id: vec![1], metadata_id: None, variables: Vec::new(), partition_key: vec![0] };
    let (failures, failed) = sync_channel(ROWS * 2);
    let feed = RequestFeed::new(plan, shared, prepared, Version::V4, failures);
    std::thread::scope(|scope| {
        scope.spawn(move || serve(socket, room, each_round));
        Worker { connection, feed }.run().unwrap();
    });
    failed.into_iter().collect()
}

#[test]
fn an_overloaded_server_gets_fewer_requests_and_all_rows() {
    let (plan, shared) = (plan(5), shared());
    let rounds = Mutex::new(Vec::new());
    let failed = run(&plan, &shared, 8, |taken| rounds.lock().push(taken));
    assert!(failed.is_empty(), "{} rows failed: {:?}", failed.len(), failed.first());
    assert_eq!(shared.rows_done.load(Ordering::Relaxed), ROWS as u64);
    let sent: usize = rounds.lock().iter().sum();
    assert!(sent < ROWS * 2, "{sent} requests for {ROWS} rows: {:?}", rounds.lock());
}

#[test]
fn rows_that_wait_when_an_import_is_given_up_are_told_of() {
    let (plan, shared) = (plan(u32::MAX), shared());
    let sent = AtomicU64::new(0);
    let failed = run(&plan, &shared, 0, |taken| {
        sent.fetch_add(taken as u64, Ordering::Relaxed);
        shared.is_aborted.store(true, Ordering::Relaxed);
    });
    let told: usize = failed.iter().map(|failed| failed.rows.len()).sum();
    assert!(told > 0);
    assert_eq!(told as u64, shared.rows_sent.load(Ordering::Relaxed), "each row that was sent and not taken");
}

#[test]
fn rows_whose_answer_cannot_be_read_are_told_of() {
    let (plan, shared) = (plan(5), shared());
    let (failures, failed) = sync_channel(ROWS * 2);
    let prepared = Prepared { id: vec![1], metadata_id: None, variables: Vec::new(), partition_key: vec![0] };
    let mut feed = RequestFeed::new(&plan, &shared, prepared, Version::V4, failures);
    let mut out = Vec::new();
    feed.fill(&mut out).unwrap();
    let sent = feed.in_flight();
    let mut bytes = answer(0, true);
    // The length of its text: more than there is.
    let at = bytes.len() - "full".len() - 2;
    bytes[at..at + 2].copy_from_slice(&[0xFF, 0xFF]);
    let reader =
        EnvelopeReader { from: Direction::Response, connection: Some(Version::V4), max_frame: 1 << 20 };
    let envelope = reader.read(&bytes).unwrap().expect("an answer");
    feed.answered(&envelope).unwrap_err();
    assert_eq!(feed.in_flight(), sent);
    feed.lose(&anyhow::anyhow!("the connection has ended"));
    drop(feed);
    let told: usize = failed.into_iter().map(|failed| failed.rows.len()).sum();
    assert_eq!(told, sent);
}
