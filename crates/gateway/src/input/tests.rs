//! Input in every framing, cut anywhere, with and without room.

use helenus_wire::native::{BEFORE_LOGIN_BYTES_MAX, Request, RequestHead, SegmentWriter};

use super::*;

const BEFORE_LOGIN: u64 = BEFORE_LOGIN_BYTES_MAX;
const MIB: usize = 1 << 20;
/// Of a token whose v5 segments are shorter than a message may be before the login.
const LENGTH: usize = 512 << 10;
const BUDGET: u64 = 64 << 20;

fn input(before_login: Option<u64>, budget: &Arc<Budget>) -> Input {
    Input::new((16 << 20, 16 << 20), before_login, budget)
}

/// The longest request that arrives from these bytes.
fn longest(input: &mut Input, bytes: &[u8]) -> usize {
    input.bytes.extend_from_slice(bytes);
    let mut longest = 0;
    while let Some(arrived) = input.next() {
        match arrived {
            Arrived::Request(_, body, _) => longest = longest.max(body.len()),
            Arrived::Refused(refusal) if matches!(refusal.then, AfterRefusal::Skip(_)) => {}
            // The connection ends here.
            Arrived::Refused(_) => break,
        }
    }
    longest
}

#[test]
fn before_its_login_a_client_sends_nothing_long_decompressed_either() {
    let token = vec![0; LENGTH];
    let request = Request::AuthResponse(Some(&token));
    let budget = Budget::new(BUDGET);
    for compression in [Compression::Lz4, Compression::Snappy] {
        let mut bomb = Vec::new();
        let mut codec = BodyCodec::new(compression);
        request.encode_compressed(&RequestHead::new(Version::V4, 1), &mut codec, &mut bomb).unwrap();
        let mut input = input(Some(BEFORE_LOGIN), &budget);
        input.start(Version::V4, Some(compression));
        assert_eq!(longest(&mut input, &bomb), 0, "{compression:?}");
        input.log_in();
        assert!(longest(&mut input, &bomb) > LENGTH, "{compression:?}");
    }
    let (mut envelope, mut bomb) = (Vec::new(), Vec::new());
    request.encode(&RequestHead::new(Version::V5, 1), &mut envelope).unwrap();
    SegmentWriter::new(SegmentFormat::Lz4).append(&envelope, &mut bomb);
    assert!((bomb.len() as u64) < BEFORE_LOGIN, "{}", bomb.len());
    let mut before = input(Some(BEFORE_LOGIN), &budget);
    before.start(Version::V5, Some(Compression::Lz4));
    assert!(longest(&mut before, &bomb) as u64 <= BEFORE_LOGIN);
    let mut after = input(Some(BEFORE_LOGIN), &budget);
    after.start(Version::V5, Some(Compression::Lz4));
    after.log_in();
    assert!(longest(&mut after, &bomb) > LENGTH);
}

#[test]
fn before_its_login_a_client_sends_nothing_longer_than_a_login_in_any_framing() {
    let budget = Budget::new(BUDGET);
    for framing in FRAMINGS {
        for length in [BEFORE_LOGIN as usize / 2, BEFORE_LOGIN as usize + 1, 20_000, 100_000] {
            let bytes = request(framing, 1, length);
            for is_stranger in [true, false] {
                let mut input = input(is_stranger.then_some(BEFORE_LOGIN), &budget);
                input.start(framing.0, framing.1);
                let longest = longest(&mut input, &bytes);
                match is_stranger {
                    true => assert!(longest as u64 <= BEFORE_LOGIN, "{framing:?} {length}: {longest}"),
                    false => assert!(longest >= length, "{framing:?} {length}: {longest}"),
                }
            }
        }
    }
}

/// Every framing that a client may choose.
const FRAMINGS: [(Version, Option<Compression>); 6] = [
    (Version::V3, None),
    (Version::V4, Some(Compression::Lz4)),
    (Version::V4, Some(Compression::Snappy)),
    (Version::V4, None),
    (Version::V5, None),
    (Version::V5, Some(Compression::Lz4)),
];

/// A request on this stream with a body of about this length that does not get much shorter by compression.
fn request((version, compression): (Version, Option<Compression>), stream: i16, length: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    });
    let token: Vec<u8> = noise.take(length).collect();
    let (head, request) = (RequestHead::new(version, stream), Request::AuthResponse(Some(&token)));
    let (mut envelope, mut framed) = (Vec::new(), Vec::new());
    match compression {
        Some(compression) if version < Version::V5 => {
            request.encode_compressed(&head, &mut BodyCodec::new(compression), &mut envelope).unwrap();
        }
        _ => request.encode(&head, &mut envelope).unwrap(),
    }
    if version < Version::V5 {
        return envelope;
    }
    let format = if compression.is_some() { SegmentFormat::Lz4 } else { SegmentFormat::Plain };
    SegmentWriter::new(format).append(&envelope, &mut framed);
    framed
}

/// Reads these bytes as far as there is room, as `connection` does.
async fn read(input: &mut Input, bytes: &mut &[u8], arrived: &mut Vec<Arrived>) {
    loop {
        while let Some(one) = input.next() {
            arrived.push(one);
        }
        if input.is_starved() || bytes.is_empty() {
            return;
        }
        input.fill(bytes).await.unwrap();
    }
}

#[tokio::test]
async fn a_message_takes_its_bytes_when_its_header_announces_them_and_leaves_no_buffers_behind() {
    for framing in FRAMINGS {
        for length in [10, 5_000, 60_000, 130_000, 200_000, MIB, 9 * MIB] {
            let budget = Budget::new(BUDGET);
            let mut input = input(None, &budget);
            input.start(framing.0, framing.1);
            let bytes = request(framing, 1, length);
            let (begin, rest) = bytes.split_at(bytes.len() / 2);
            let mut arrived = Vec::new();
            read(&mut input, &mut &begin[..], &mut arrived).await;
            assert!(arrived.is_empty(), "{framing:?} {length}");
            let used = budget.used();
            let at_least = match length {
                10 => 0,
                // The header is within the first segment, of which only the half is here.
                _ if framing.0 >= Version::V5 && begin.len() < 120_000 => length.min(120_000),
                _ => length,
            };
            assert!(used >= at_least as u64, "{framing:?} {length}: {used}");
            read(&mut input, &mut &rest[..], &mut arrived).await;
            let [Arrived::Request(header, body, _held)] = &arrived[..] else {
                panic!("{framing:?} {length}: {} arrived", arrived.len());
            };
            assert_eq!((header.stream, body.len()), (1, length + 4), "{framing:?}");
            let of_request = REQUEST_BYTES + body.len() as u64;
            assert_eq!(budget.used(), of_request, "{framing:?} {length}: the request has its own");
            arrived.clear();
            assert_eq!(budget.used(), 0, "{framing:?} {length}");
            // What it keeps while it waits for the next one.
            assert_eq!(input.fill(&mut &[][..]).await.unwrap(), 0);
            assert!(input.bytes.capacity() <= READ_BYTES, "{framing:?} {length}");
            assert!(input.payload.capacity() <= LITTLE_BYTES, "{framing:?} {length}");
            assert_eq!(input.segments.as_ref().map_or(0, |(_, reader)| reader.assembled_bytes()), 0);
        }
    }
}

/// Without a login too, so that connections cost the gateway little, whoever opens them.
#[tokio::test]
async fn while_nothing_comes_no_buffer_is_kept() {
    for framing in FRAMINGS {
        let budget = Budget::new(BUDGET);
        let mut input = input(None, &budget);
        input.start(framing.0, framing.1);
        let (mut client, mut socket) = tokio::io::duplex(1 << 20);
        for length in [10, 3_000, 60_000, 200_000, 10] {
            let bytes = request(framing, 1, length);
            let mut is_whole = false;
            for part in bytes.chunks(100_000) {
                tokio::io::AsyncWriteExt::write_all(&mut client, part).await.unwrap();
                loop {
                    while let Some(arrived) = input.next() {
                        is_whole |= matches!(arrived, Arrived::Request(..));
                    }
                    // Polled once: there is more, or it waits.
                    let polled = {
                        let mut filling = pin!(input.fill(&mut socket));
                        poll_fn(|context| std::task::Poll::Ready(filling.as_mut().poll(context))).await
                    };
                    if polled.is_pending() {
                        break;
                    }
                }
            }
            assert!(is_whole, "{framing:?} {length}");
            assert_eq!((input.bytes.capacity(), input.payload.capacity()), (0, 0), "{framing:?} {length}");
            assert_eq!(budget.used(), 0, "{framing:?} {length}");
        }
    }
}

#[tokio::test]
async fn without_room_a_message_waits_and_comes_through_once_there_is_some() {
    for framing in FRAMINGS {
        let budget = Budget::new(BUDGET);
        let other = budget.take(BUDGET - 10_000);
        let mut input = input(None, &budget);
        input.start(framing.0, framing.1);
        let bytes = [request(framing, 1, 9 * MIB), request(framing, 2, 10)].concat();
        let (mut left, mut arrived) = (&bytes[..], Vec::new());
        read(&mut input, &mut left, &mut arrived).await;
        assert!(input.is_starved() && arrived.is_empty(), "{framing:?}");
        let read_bytes = bytes.len() - left.len();
        assert!(read_bytes < 300_000, "{framing:?}: {read_bytes} are here without room");
        assert!(budget.used() <= BUDGET + 300_000, "{framing:?}: {}", budget.used());
        drop(other);
        input.room().await;
        read(&mut input, &mut left, &mut arrived).await;
        assert_eq!(arrived.len(), 2, "{framing:?}");
        assert!(budget.used() >= 9 * MIB as u64, "{framing:?}");
        arrived.clear();
        assert_eq!(budget.used(), 0, "{framing:?}");
    }
}

#[tokio::test]
async fn a_message_without_room_that_is_given_up_is_refused_and_the_next_one_comes_through() {
    for framing in FRAMINGS {
        let budget = Budget::new(BUDGET);
        let _other = budget.take(BUDGET - 200_000);
        let mut input = input(None, &budget);
        input.start(framing.0, framing.1);
        let bytes = [request(framing, 1, 9 * MIB), request(framing, 2, 10)].concat();
        let (mut left, mut arrived) = (&bytes[..], Vec::new());
        read(&mut input, &mut left, &mut arrived).await;
        assert!(input.is_starved() && arrived.is_empty(), "{framing:?}");
        arrived.extend(input.give_up().map(Arrived::Refused));
        read(&mut input, &mut left, &mut arrived).await;
        let [Arrived::Refused(refusal), Arrived::Request(header, ..)] = &arrived[..] else {
            panic!("{framing:?}: {} arrived", arrived.len());
        };
        assert!(matches!(refusal.error, WireError::Overloaded { .. }), "{framing:?}: {}", refusal.error);
        assert_eq!((refusal.stream, header.stream), (1, 2), "{framing:?}");
        arrived.clear();
        assert_eq!(budget.used(), BUDGET - 200_000, "{framing:?}");
    }
}

#[tokio::test]
async fn parts_of_many_messages_do_not_take_more_than_there_is() {
    for framing in FRAMINGS {
        let budget = Budget::new(BUDGET);
        let bytes = request(framing, 1, 9 * MIB);
        let mut clients = Vec::new();
        for _ in 0..100 {
            let mut input = input(None, &budget);
            input.start(framing.0, framing.1);
            let mut arrived = Vec::new();
            read(&mut input, &mut &bytes[..bytes.len() - 1], &mut arrived).await;
            clients.push(input);
        }
        let here: usize = clients.iter().map(|input| input.bytes.len()).sum();
        let begun = clients.iter().filter(|input| !input.is_starved()).count();
        assert!((5..8).contains(&begun), "{framing:?}: {begun}");
        // Those without room have a segment at most.
        assert!(here < BUDGET as usize + 100 * 200_000, "{framing:?}: {here}");
    }
}

#[test]
fn a_segment_full_of_requests_is_kept_as_it_came_until_each_is_taken() {
    let budget = Budget::new(BUDGET);
    let mut input = input(None, &budget);
    input.start(Version::V5, Some(Compression::Lz4));
    let (mut envelopes, mut framed) = (Vec::new(), Vec::new());
    let count = 10_000;
    for stream in 0..count {
        Request::Options.encode(&RequestHead::new(Version::V5, stream), &mut envelopes).unwrap();
    }
    SegmentWriter::new(SegmentFormat::Lz4).append(&envelopes, &mut framed);
    input.bytes = framed;
    for stream in 0..count {
        let Some(Arrived::Request(header, ..)) = input.next() else { panic!("no request {stream}") };
        assert_eq!(header.stream, stream);
    }
    assert!(input.next().is_none());
    assert_eq!((budget.used(), input.payload.len()), (0, 0));
}

/// A server hands over what it has read and not served, at any point of the stream.
#[tokio::test]
async fn what_another_server_has_read_is_served_here_and_counted() {
    for (version, compression) in FRAMINGS {
        let framing = (version, compression);
        let (long, short) = (request(framing, 1, 300_000), request(framing, 2, 10));
        for cut in [0, 4, 100, 140_000, 290_000, long.len()] {
            let budget = Budget::new(BUDGET);
            let bytes = [&long[..], &short].concat();
            let mut unserved = UnservedInput::default();
            let mut used = 0;
            if version >= Version::V5 {
                let format = if compression.is_some() { SegmentFormat::Lz4 } else { SegmentFormat::Plain };
                let mut reader = SegmentReader::new(format, Direction::Request, 16 << 20);
                while let Some(here) = bytes.get(used..cut) {
                    match reader.read(here).unwrap() {
                        Step::Incomplete => break,
                        Step::Part { used: part } => used += part,
                        Step::Envelopes { used: part, payload, .. } => {
                            used += part;
                            unserved.envelopes.extend_from_slice(payload);
                        }
                    }
                }
                unserved.segments = Some(Box::new(reader));
            }
            unserved.bytes = bytes[used..cut].to_vec();
            let agreed = Agreed { version, compression, keyspace: None, events: Default::default() };
            let mut input = input(None, &budget);
            assert!(input.resume(Some(&agreed), unserved).is_none());
            let kept = if cut > 10_000 { 10_000 } else { 0 };
            assert!(budget.used() >= kept, "{framing:?} {cut}: {}", budget.used());
            let mut arrived = Vec::new();
            read(&mut input, &mut &bytes[cut..], &mut arrived).await;
            let streams: Vec<_> = arrived
                .iter()
                .map(|one| match one {
                    Arrived::Request(header, body, _) => (header.stream, body.len()),
                    Arrived::Refused(refusal) => panic!("{framing:?} {cut}: {}", refusal.error),
                })
                .collect();
            assert_eq!(streams, [(1, 300_004), (2, 14)], "{framing:?} {cut}");
            arrived.clear();
            assert_eq!(budget.used(), 0, "{framing:?} {cut}");
        }
    }
}

#[tokio::test]
async fn of_a_client_before_its_login_little_is_read_ahead() {
    let budget = Budget::new(BUDGET);
    for framing in FRAMINGS {
        let mut input = input(Some(BEFORE_LOGIN), &budget);
        input.start(framing.0, framing.1);
        // A message that is as long as one may be, announced and not sent, and bytes behind it.
        let bytes = vec![0; 1 << 20];
        let mut sent = &bytes[..];
        while input.may_read_ahead() {
            input.fill(&mut sent).await.unwrap();
        }
        let (read, kept) = (bytes.len() - sent.len(), input.bytes.capacity());
        assert!(read <= 2 * LITTLE_BYTES && kept <= 4 * LITTLE_BYTES, "{framing:?}: {read}, {kept}");
        input.log_in();
        assert!(input.may_read_ahead(), "whose login is done is read on");
    }
}
