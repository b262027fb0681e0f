//! Clients that take nothing: what they may leave unread, and how their connections end.

use std::pin::Pin;
use std::task::{Context, Poll};

use helenus_wire::native::{Flags, Opcode};
use tokio::io::AsyncReadExt;

use super::*;

const MAX: u64 = 64 << 20;
const GRACE: Duration = Duration::from_secs(60);

fn client(budgets: &Budgets, version: Version, compression: Option<Compression>) -> Client {
    let address = SocketAddr::from(([127, 0, 0, 1], 9042));
    let client = Client::new((address, address), budgets);
    client.start(version, compression, (0, &Outgoing::Ready));
    client
}

fn send(client: &Client, version: Version, length: usize) -> Result<(), Unread> {
    let header = Header { version, flags: Flags(0), stream: 1, opcode: Opcode::Result, length: 0 };
    client.send(header, &[&vec![7; length]], None)
}

#[test]
fn answers_of_any_length_that_nobody_takes_are_bounded_for_a_client_and_for_all() {
    for length in [2 << 10, 100 << 10, 1 << 20, 10 << 20, 100 << 20] {
        let budgets = Budgets::new(MAX, MAX);
        let clients: Vec<Client> = (0..40).map(|_| client(&budgets, Version::V5, None)).collect();
        for (number, client) in clients.iter().enumerate() {
            let sent = (0..IN_FLIGHT_MAX).take_while(|_| send(client, Version::V5, length).is_ok()).count();
            let unsent = client.output.lock().unsent as u64;
            let one = length as u64 + 100;
            assert!(unsent <= (MAX / SHARE_OF_CLIENT).max(one), "{length}: client {number} has {unsent}");
            assert!(sent > 0 || budgets.answers.used() + one > MAX, "{length}: client {number}");
            // Errors and other short answers come through.
            assert!(send(client, Version::V5, SMALL_BYTES).is_ok());
        }
        let used = budgets.answers.used();
        assert!(used <= (2 * MAX).max(length as u64) + 100_000, "{length}: {used}");
        drop(clients);
        assert_eq!(budgets.answers.used(), 0, "{length}");
    }
}

#[test]
fn a_client_that_takes_its_answers_has_room_while_others_do_not() {
    let budgets = Budgets::new(MAX, MAX);
    let deaf: Vec<Client> = (0..8).map(|_| client(&budgets, Version::V4, None)).collect();
    for client in &deaf {
        while send(client, Version::V4, 100 << 10).is_ok() {}
    }
    assert!(budgets.answers.used() > MAX - (1 << 20));
    let reader = client(&budgets, Version::V4, None);
    reader.output.lock().batch.clear(KEPT_BYTES);
    reader.output.lock().unsent = 0;
    assert!(send(&reader, Version::V4, 100 << 10).is_ok());
}

#[tokio::test]
async fn what_is_written_leaves_neither_bytes_nor_buffers() {
    let lz4 = Some(Compression::Lz4);
    for (version, compression) in
        [(Version::V4, None), (Version::V4, lz4), (Version::V5, None), (Version::V5, lz4)]
    {
        let budgets = Budgets::new(MAX, MAX);
        let client = Arc::new(client(&budgets, version, compression));
        send(&client, version, 8 << 20).unwrap();
        assert!(budgets.answers.used() > 8 << 20);
        let (near, mut far) = tokio::io::duplex(64 << 10);
        let writer = {
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.write(Box::new(near), GRACE).await })
        };
        let reader = tokio::spawn(async move {
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.map(|_| got.len())
        });
        while client.output.lock().unsent > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(budgets.answers.used(), 0, "{version}");
        client.close_after_answers();
        writer.await.unwrap();
        assert!(reader.await.unwrap().unwrap() > 9);
        assert!(client.output.lock().batch.envelopes.capacity() <= KEPT_BYTES, "{version}");
    }
}

/// A socket like one of TLS whose other side does not read.
struct Deaf {
    takes_bytes: bool,
}

impl AsyncWrite for Deaf {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        if self.takes_bytes { Poll::Ready(Ok(bytes.len())) } else { Poll::Pending }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        if self.takes_bytes { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_does_not_keep_its_connection() {
    for takes_bytes in [false, true] {
        let budgets = Budgets::new(MAX, MAX);
        let client = client(&budgets, Version::V4, None);
        send(&client, Version::V4, 1 << 20).unwrap();
        client.close_after_answers();
        let ended =
            tokio::time::timeout(10 * GRACE, client.write(Box::new(Deaf { takes_bytes }), GRACE)).await;
        assert!(ended.is_ok(), "{takes_bytes}");
        assert_eq!(budgets.answers.used(), 0);
        assert!(client.is_closing());
    }
}

/// 64 KiB each 50 s: 8 MiB take more than a hundred times the grace.
#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_gets_its_answer_whole() {
    for version in [Version::V4, Version::V5] {
        let budgets = Budgets::new(MAX, MAX);
        let client = client(&budgets, version, None);
        send(&client, version, 8 << 20).unwrap();
        client.close_after_answers();
        let (near, mut far) = tokio::io::duplex(64 << 10);
        let reading = async {
            let (mut got, mut bytes) = (0, vec![0; 64 << 10]);
            loop {
                tokio::time::sleep(GRACE - Duration::from_secs(10)).await;
                match far.read(&mut bytes).await.unwrap() {
                    0 => return got,
                    count => got += count,
                }
            }
        };
        let ((), got) = tokio::join!(client.write(Box::new(near), GRACE), reading);
        assert!(got > 8 << 20, "{version}: {got}");
    }
}

#[test]
fn a_client_that_is_behind_loses_its_connection_with_the_next_event() {
    let budgets = Budgets::new(MAX, MAX);
    let client = client(&budgets, Version::V4, None);
    client.register(EventTypes::default().with(EventType::SchemaChange));
    client.event(EventType::SchemaChange, &Outgoing::Ready);
    assert!(!client.is_closing());
    send(&client, Version::V4, 17 << 20).unwrap_err();
    client.output.lock().batch.clear(KEPT_BYTES);
    client.output.lock().unsent = 0;
    send(&client, Version::V4, 17 << 20).unwrap();
    client.event(EventType::StatusChange, &Outgoing::Ready);
    assert!(!client.is_closing(), "it does not want this one");
    client.event(EventType::SchemaChange, &Outgoing::Ready);
    assert!(client.is_closing());
}

/// Each asks for what the gateway says by itself as long as it is read, and takes nothing.
#[test]
fn who_leaves_unread_what_the_gateway_itself_says_is_not_read_on() {
    const ALL: u64 = 8 << 20;
    let budgets = Budgets::new(MAX, ALL);
    let clients: Vec<Client> = (0..400).map(|_| client(&budgets, Version::V4, None)).collect();
    let mut longest = 0;
    for client in &clients {
        while client.may_go_on() {
            client.answer(Version::V4, 1, &Outgoing::Supported { cql_version: "3.4.7" });
        }
        longest = longest.max(client.output.lock().unsent);
    }
    let unsent: usize = clients.iter().map(|client| client.output.lock().unsent).sum();
    assert!((ALL as usize / 4..=ALL as usize).contains(&unsent), "{unsent}");
    assert!(longest > UNSENT_BYTES_MAX_PRESSED, "while there is room a client may leave more");
    let last = clients.last().unwrap();
    assert!(last.output.lock().unsent < 1 << 10 && !last.may_go_on());
    // Who takes its answers goes on, whatever others leave.
    last.output.lock().batch.clear(KEPT_BYTES);
    last.output.lock().unsent = 0;
    assert!(last.may_go_on());
}

#[tokio::test]
async fn a_client_whose_requests_are_answered_goes_on_although_others_have_taken_all() {
    let budgets = Budgets::new(MAX, MAX);
    let client = Arc::new(client(&budgets, Version::V4, None));
    let _all = budgets.requests.take(2 * MAX);
    client.begin_request();
    assert!(!client.may_go_on());
    let waiting = {
        let client = Arc::clone(&client);
        tokio::spawn(async move { client.room().await })
    };
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    client.end_request();
    waiting.await.unwrap();
}

/// The bytes that a client waits for come back at whatever moment of its looking for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_room_is_woken_whenever_it_comes() {
    let budgets = Budgets::new(1, MAX);
    let client = Arc::new(client(&budgets, Version::V4, None));
    client.output.lock().unsent = 0;
    client.begin_request();
    for turn in 0..4_000_u32 {
        let held = budgets.requests.take(1);
        let waits = {
            let client = Arc::clone(&client);
            tokio::spawn(async move { client.room().await })
        };
        (0..turn % 400).for_each(|_| std::hint::spin_loop());
        drop(held);
        // None of its own requests ends.
        tokio::time::timeout(Duration::from_secs(20), waits).await.expect("it is woken").unwrap();
    }
}

#[tokio::test]
async fn a_client_that_has_taken_its_answers_leaves_no_long_buffers_behind() {
    for version in [Version::V4, Version::V5] {
        let budgets = Budgets::new(MAX, MAX);
        let client = Arc::new(client(&budgets, version, None));
        let (mut near, far) = tokio::io::duplex(1 << 20);
        let writer = Arc::clone(&client);
        let writes = tokio::spawn(async move { writer.write(Box::new(far), GRACE).await });
        send(&client, version, 200 << 10).unwrap();
        let mut taken = 0;
        let mut buffer = vec![0; 64 << 10];
        while taken < 200 << 10 {
            taken += near.read(&mut buffer).await.unwrap();
        }
        while client.output.lock().unsent > 0 {
            tokio::task::yield_now().await;
        }
        // Both batches take turns.
        for _ in 0..2 {
            tokio::task::yield_now().await;
            let kept = {
                let output = client.output.lock();
                output.batch.bare.capacity() + output.batch.envelopes.capacity()
            };
            assert!(kept <= 2 * RESTING_BYTES, "{version:?}: {kept}");
            send(&client, version, 10).unwrap();
            while client.output.lock().unsent > 0 {
                tokio::task::yield_now().await;
            }
        }
        client.close_after_answers();
        drop(near);
        writes.await.unwrap();
    }
}
