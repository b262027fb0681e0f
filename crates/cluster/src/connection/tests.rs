//! A connection whose node is the test itself, on a counted clock.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use helenus_wire::native::{
    Direction, EVENT_STREAM, EnvelopeReader, Header, Opcode, Outgoing, Query, QueryParameters, Request,
    ResponseHead, Version,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::framing::{Deframer, Framer};
use super::handshake::Ready;
use super::stream::Stream;
use super::*;
use crate::{Answer, AnswerRoom, CallError, ClusterOptions};

const MIB: usize = 1 << 20;
const SECOND: Duration = Duration::from_secs(1);

/// The node's side of a connection. It closes when this is dropped.
pub(crate) struct Node {
    socket: DuplexStream,
    input: Vec<u8>,
}

impl Node {
    /// The stream of the next request; `None` at the end.
    async fn next(&mut self) -> Option<Header> {
        let reader = EnvelopeReader { from: Direction::Request, connection: None, max_frame: 64 << 20 };
        loop {
            if let Some(envelope) = reader.read(&self.input).unwrap() {
                let (header, size) = (envelope.header, envelope.size());
                self.input.drain(..size);
                return Some(header);
            }
            if self.socket.read_buf(&mut self.input).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Answers a request in the way that fits it.
    async fn answer(&mut self, request: &Header) {
        let mut out = Vec::new();
        let message = match request.opcode {
            Opcode::Options => Outgoing::Supported { cql_version: "3.4.4" },
            _ => Outgoing::Void,
        };
        message.encode(&ResponseHead::new(Version::V4, request.stream), None, &mut out).unwrap();
        self.socket.write_all(&out).await.unwrap();
    }

    /// Announces an answer with a body of this length.
    async fn announce(&mut self, stream: i16, opcode: Opcode, length: usize) {
        let mut out = vec![0x84, 0];
        out.extend(stream.to_be_bytes());
        out.push(opcode as u8);
        out.extend((length as u32).to_be_bytes());
        self.socket.write_all(&out).await.unwrap();
    }
}

pub(crate) fn options(in_flight_max: usize, room: u64) -> ClusterOptions {
    ClusterOptions {
        in_flight_max,
        answers: AnswerRoom::new(room),
        timeout: 10 * SECOND,
        heartbeat: 5 * SECOND,
        ..ClusterOptions::new(Vec::new())
    }
}

/// A connection to a node that does what the test does.
pub(crate) fn connected(
    options: &ClusterOptions,
    sender: Option<node_events::EventSender>,
) -> (Connection, Node) {
    let (near, far) = tokio::io::duplex(64 << 10);
    let (input, output) = tokio::io::split(near);
    let mut deframer = Deframer::new(options.answer_bytes_max, &options.answers);
    deframer.start(Version::V4, false);
    let stream = Stream { input: Box::new(input), output: Box::new(output) };
    let ready = Ready { stream, deframer, framer: Framer::new(Version::V4, false), version: Version::V4 };
    let address = SocketAddr::from(([127, 0, 0, 1], 9042));
    let connection = Connection::start((address, ready), options, sender);
    (connection, Node { socket: far, input: Vec::new() })
}

fn query() -> Request<'static> {
    Request::Query(Query { query: "SELECT", parameters: QueryParameters::default() })
}

async fn ask(connection: Connection) -> Result<(), CallError> {
    connection.call(&query(), &Extras::default()).await.map(drop)
}

/// Lets all tasks that can go on do so, without any time.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// A node announces a long answer and sends a byte now and then, ever before its silence is noticed.
#[tokio::test(start_paused = true)]
async fn a_long_answer_that_comes_too_late_keeps_no_room_and_bytes_now_and_then_are_no_life() {
    for pause in [SECOND / 10, SECOND, 4 * SECOND, 9 * SECOND] {
        let options = options(1024, 256 << 20);
        let (connection, mut node) = connected(&options, None);
        let asked = tokio::spawn(ask(connection.clone()));
        let request = node.next().await.unwrap();
        node.announce(request.stream, Opcode::Result, 120 * MIB).await;
        let trickle = tokio::spawn(async move {
            while node.socket.write_all(&[7]).await.is_ok() {
                tokio::time::sleep(pause).await;
            }
        });
        let error = asked.await.unwrap().unwrap_err();
        assert!(matches!(error, CallError::Timeout { .. } | CallError::Lost { .. }), "{pause:?} {error}");
        tokio::time::sleep(SECOND).await;
        assert_eq!(options.answers.used(), 0, "{pause:?}");
        tokio::time::timeout(60 * SECOND, connection.closed()).await.expect("nothing of use comes on it");
        trickle.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_that_comes_slowly_is_taken_in_time_and_passed_over_later() {
    for (in_time, seconds) in [(true, 8), (false, 40)] {
        let options = options(1024, 256 << 20);
        let (connection, mut node) = connected(&options, None);
        let asked = tokio::spawn(ask(connection.clone()));
        let request = node.next().await.unwrap();
        node.announce(request.stream, Opcode::Result, seconds * (100 << 10)).await;
        for second in 0..seconds {
            // A result that is nothing, and more bytes than it needs.
            let mut body = vec![7; 100 << 10];
            body[..4].copy_from_slice(&[0, 0, 0, u8::from(second == 0)]);
            node.socket.write_all(&body).await.unwrap();
            tokio::time::sleep(SECOND).await;
            assert!(second < 12 || options.answers.used() == 0);
        }
        assert_eq!(asked.await.unwrap().is_ok(), in_time, "{seconds}");
        let again = tokio::spawn(ask(connection.clone()));
        let mut request = node.next().await.unwrap();
        while request.opcode == Opcode::Options {
            node.answer(&request).await;
            request = node.next().await.unwrap();
        }
        node.answer(&request).await;
        again.await.unwrap().unwrap();
        assert!(!connection.is_closed() && options.answers.used() == 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_message_that_nothing_has_asked_for_takes_no_room() {
    let options = options(1024, 256 << 20);
    let (sender, mut receiver) = events(10);
    let (connection, mut node) = connected(&options, Some(sender));
    node.announce(EVENT_STREAM, Opcode::Event, 10 * MIB).await;
    node.socket.write_all(&[7]).await.unwrap();
    assert!(matches!(receiver.receive(10).await, Received::Missed), "an event is lost");
    assert_eq!(options.answers.used(), 0);
    for part in 0..10 {
        node.socket.write_all(&vec![7; MIB - usize::from(part == 0)]).await.unwrap();
    }
    node.announce(77, Opcode::Result, 10 * MIB).await;
    connection.closed().await;
    assert_eq!(options.answers.used(), 0);
}

/// Many wait for one stream: each that becomes free is the next one's, and nobody who comes later takes it.
#[tokio::test(start_paused = true)]
async fn a_stream_that_becomes_free_wakes_one_in_the_order_of_their_coming() {
    const WAITERS: usize = 40;
    let options = options(1, 1 << 20);
    let (connection, mut node) = connected(&options, None);
    let first = tokio::spawn(ask(connection.clone()));
    let mut request = node.next().await.unwrap();
    let (turns, order) = (Arc::new(AtomicUsize::new(0)), Arc::new(parking_lot::Mutex::new(Vec::new())));
    let mut waiting = Vec::new();
    for number in 0..WAITERS {
        let (connection, turns, order) = (connection.clone(), Arc::clone(&turns), Arc::clone(&order));
        waiting.push(tokio::spawn(async move {
            let turn = connection.turn(tokio::time::Instant::now() + 5 * SECOND).await.unwrap();
            turns.fetch_add(1, Ordering::SeqCst);
            order.lock().push(number);
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let done: Done = Box::new(move |answer| sender.send(answer.is_ok()).unwrap());
            assert!(connection.submit_in(Some(&turn), &query(), &Extras::default(), done).is_ok());
            drop(turn);
            assert!(receiver.await.unwrap());
        }));
        settle().await;
    }
    for answered in 1..=WAITERS {
        assert!(connection.is_full());
        node.answer(&request).await;
        request = node.next().await.unwrap();
        settle().await;
        assert_eq!(turns.load(Ordering::SeqCst), answered, "one of them for one stream");
        let late = connection.submit(&query(), &Extras::default(), Box::new(|_| {}));
        assert!(matches!(late.unwrap_err().error, CallError::Full { .. }));
    }
    node.answer(&request).await;
    for one in waiting {
        one.await.unwrap();
    }
    first.await.unwrap().unwrap();
    assert!(order.lock().is_sorted());
    assert!(!connection.is_full());
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_room_in_time_is_told_so_and_those_that_give_up_hold_up_nobody() {
    let options = ClusterOptions { timeout: 600 * SECOND, ..options(1, 1 << 20) };
    let (connection, mut node) = connected(&options, None);
    let first = tokio::spawn(ask(connection.clone()));
    let request = node.next().await.unwrap();
    let until = tokio::time::Instant::now() + SECOND;
    let (early, late) = (connection.turn(until), connection.turn(until + SECOND));
    let (early, late) = tokio::join!(early, late);
    assert!(matches!(early, Err(CallError::Full { .. })) && matches!(late, Err(CallError::Full { .. })));
    let given_up = tokio::spawn({
        let connection = connection.clone();
        async move { connection.turn(until + 1000 * SECOND).await.map(drop) }
    });
    settle().await;
    given_up.abort();
    assert!(given_up.await.is_err());
    let next = tokio::spawn(ask(connection.clone()));
    settle().await;
    node.answer(&request).await;
    first.await.unwrap().unwrap();
    let request = node.next().await.unwrap();
    node.answer(&request).await;
    next.await.unwrap().unwrap();
}

/// A node that reads nothing: what waits for it is bounded, and goes on when it reads again.
#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_the_socket_go_on_when_the_node_reads() {
    const COUNT: usize = 40;
    let options = options(1024, 1 << 20);
    let (connection, mut node) = connected(&options, None);
    let text = "x".repeat(MIB);
    let mut asked = Vec::new();
    for _ in 0..COUNT {
        let (connection, text) = (connection.clone(), text.clone());
        asked.push(tokio::spawn(async move {
            let request = Request::Query(Query { query: &text, parameters: QueryParameters::default() });
            connection.call(&request, &Extras::default()).await.map(drop)
        }));
    }
    settle().await;
    assert!(connection.is_full(), "40 MiB are too many");
    let mut answered = 0;
    while answered < COUNT {
        let request = node.next().await.unwrap();
        answered += usize::from(request.opcode == Opcode::Query);
        node.answer(&request).await;
    }
    for one in asked {
        one.await.unwrap().unwrap();
    }
}

/// A recipient that panics, wherever it is told.
#[tokio::test(start_paused = true)]
async fn a_recipient_that_panics_costs_no_other_request_and_leaves_no_dead_connection() {
    for how in ["answer", "timeout", "end"] {
        let options = options(1024, 1 << 20);
        let (connection, mut node) = connected(&options, None);
        let submit = |done| connection.submit(&query(), &Extras::default(), done).unwrap();
        submit(Box::new(|_| panic!("a recipient that cannot take it")));
        let (sender, other) = tokio::sync::oneshot::channel();
        submit(Box::new(move |answer: Result<Answer<'_>, CallError>| {
            sender.send(answer.map(drop)).unwrap();
        }));
        let requests = [node.next().await.unwrap(), node.next().await.unwrap()];
        match how {
            "answer" => {
                for request in &requests {
                    node.answer(request).await;
                }
                other.await.unwrap().unwrap();
                let again = tokio::spawn(ask(connection.clone()));
                let request = node.next().await.unwrap();
                node.answer(&request).await;
                again.await.unwrap().unwrap();
            }
            "timeout" => {
                let lives = tokio::spawn(async move {
                    while let Some(request) = node.next().await {
                        if request.opcode == Opcode::Options {
                            node.answer(&request).await;
                        }
                    }
                });
                assert!(matches!(other.await.unwrap(), Err(CallError::Timeout { .. })));
                assert!(!connection.is_closed());
                drop(connection);
                lives.await.unwrap();
            }
            _ => {
                drop(node);
                assert!(matches!(other.await.unwrap(), Err(CallError::Lost { .. })));
                assert!(connection.is_closed());
                connection.closed().await;
            }
        }
    }
}

/// One deadline for all nodes that a request asks, however many are full.
#[tokio::test(start_paused = true)]
async fn who_waits_for_room_waits_until_its_own_deadline() {
    let options = options(1, 1 << 20);
    let (connection, mut node) = connected(&options, None);
    let asked = tokio::spawn(ask(connection.clone()));
    node.next().await.unwrap();
    let begun = tokio::time::Instant::now();
    for until in [begun + SECOND, begun + SECOND, begun + 2 * SECOND] {
        let error = connection.call_until(&query(), &Extras::default(), until).await.unwrap_err();
        assert!(matches!(error, CallError::Full { .. }), "{error}");
        assert_eq!(tokio::time::Instant::now(), until.max(begun + SECOND));
    }
    asked.abort();
}
