//! Answers in every framing: their room, the buffers that they leave behind, and what is no answer.

use helenus_wire::native::{Flags, Opcode, OpenEnvelope};

use super::*;

const MIB: u64 = 1 << 20;
const BYTES_MAX: u64 = 32 * MIB;

/// Every framing of a connection: the version and whether it compresses.
const FRAMINGS: [(Version, bool); 5] = [
    (Version::V3, false),
    (Version::V4, false),
    (Version::V4, true),
    (Version::V5, false),
    (Version::V5, true),
];

fn deframer((version, compress): (Version, bool), room: &Arc<AnswerRoom>) -> Deframer {
    let mut deframer = Deframer::new(BYTES_MAX, room);
    deframer.start(version, compress);
    deframer
}

/// An answer on this stream with a body of this length.
fn answer((version, compress): (Version, bool), stream: i16, length: u64) -> Vec<u8> {
    let header = Header { version, flags: Flags(0), stream, opcode: Opcode::Result, length: 0 };
    let mut envelope = Vec::new();
    let open = OpenEnvelope::open(&mut envelope, Direction::Response, header);
    let mut state = 7_u64;
    envelope.extend(
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        })
        .take(length as usize),
    );
    match compress && version < Version::V5 {
        true => open.finish_compressed(&mut envelope, &mut BodyCodec::new(COMPRESSION)).unwrap(),
        false => open.finish(&mut envelope).unwrap(),
    }
    let mut framed = Vec::new();
    Framer::new(version, compress).frame(&envelope, &mut framed).to_vec()
}

/// Reads all of it; returns stream, length and room of each answer, and the streams of those that were refused.
async fn read(deframer: &mut Deframer, mut bytes: &[u8]) -> (Vec<(i16, u64, Option<Arc<Taken>>)>, Vec<i16>) {
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    while deframer.fill(&mut bytes).await.unwrap() > 0 {
        deframer
            .each(|header, body, room| {
                taken.push((header.stream, body.len() as u64, room.cloned()));
                true
            })
            .unwrap();
        refused.extend(deframer.take_refused().into_iter().map(|(stream, _)| stream));
    }
    (taken, refused)
}

#[tokio::test]
async fn the_room_of_a_long_answer_is_its_takers_and_no_buffer_is_left_without() {
    for framing in FRAMINGS {
        let room = AnswerRoom::new(64 * MIB);
        let mut deframer = deframer(framing, &room);
        for length in [10, 60_000, 120_000, 200_000, MIB, 20 * MIB] {
            let bytes = [answer(framing, 1, length), answer(framing, 2, 10)].concat();
            let (taken, refused) = read(&mut deframer, &bytes).await;
            assert!(refused.is_empty(), "{framing:?} {length}");
            let lengths: Vec<_> = taken.iter().map(|(stream, length, _)| (*stream, *length)).collect();
            assert_eq!(lengths, [(1, length), (2, 10)], "{framing:?}");
            let used = room.used();
            assert_eq!(used >= length, length > ROOM_FROM, "{framing:?} {length}: {used}");
            assert!(deframer.taken.is_none() && taken[1].2.is_none());
            assert!(deframer.input.capacity() < 512 << 10, "{framing:?} {length}");
            let assembled = deframer.segments.as_ref().map_or(0, SegmentReader::assembled_bytes);
            assert_eq!(assembled, 0, "{framing:?} {length}");
            drop(taken);
            assert_eq!(room.used(), 0, "{framing:?} {length}");
        }
    }
}

#[tokio::test]
async fn without_room_long_answers_are_dropped_and_short_ones_come_wherever_a_read_cuts_them() {
    for framing in FRAMINGS {
        let room = AnswerRoom::new(0);
        let mut deframer = deframer(framing, &room);
        let (mut bytes, mut expected, mut long) = (Vec::new(), Vec::new(), Vec::new());
        for stream in 0..30 {
            let length = [10, 40_000, 120_000, 300_000][stream as usize % 4];
            bytes.extend(answer(framing, stream, length));
            if length < ROOM_FROM { expected.push((stream, length)) } else { long.push(stream) }
        }
        let (taken, refused) = read(&mut deframer, &bytes).await;
        let taken: Vec<_> = taken.iter().map(|(stream, length, _)| (*stream, *length)).collect();
        assert_eq!((taken, refused), (expected, long), "{framing:?}");
    }
}

#[tokio::test]
async fn a_few_bytes_that_decompress_to_many_ask_for_the_room_of_many() {
    let room = AnswerRoom::new(4 * MIB);
    let framing = (Version::V4, true);
    let mut deframer = deframer(framing, &room);
    let header =
        Header { version: Version::V4, flags: Flags(0), stream: 1, opcode: Opcode::Result, length: 0 };
    let mut bytes = Vec::new();
    let open = OpenEnvelope::open(&mut bytes, Direction::Response, header);
    bytes.resize(bytes.len() + 8 * MIB as usize, 0);
    open.finish_compressed(&mut bytes, &mut BodyCodec::new(COMPRESSION)).unwrap();
    assert!((bytes.len() as u64) < ROOM_FROM);
    bytes.extend(answer(framing, 2, 10));
    let (taken, refused) = read(&mut deframer, &bytes).await;
    assert_eq!((taken.len(), refused), (1, vec![1]));
    assert_eq!(room.used(), 0);
}

/// What no node says ends the connection, whole or cut; only an answer that is too long concerns its request alone.
#[tokio::test]
async fn what_is_no_answer_ends_the_connection() {
    let envelope = |version: u8, opcode: u8, length: u32| {
        let mut bytes = vec![version, 0, 0, 1, opcode];
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.resize(bytes.len() + length.min(1000) as usize, 0);
        bytes
    };
    let mut damaged = Vec::new();
    for opcode in 0..=255 {
        if Opcode::from_byte(opcode).is_ok_and(|opcode| opcode.direction() == Direction::Response) {
            // Another version than the connection's, and the direction of a request.
            damaged.extend([0x83, 0x85, 0x04].map(|version| envelope(version, opcode, 10)));
        } else {
            damaged.extend([0x84, 0x04].map(|version| envelope(version, opcode, 10)));
        }
    }
    damaged.push(envelope(0x84, 8, u32::MAX));
    for bytes in damaged {
        let mut deframer = deframer((Version::V4, false), &AnswerRoom::new(MIB));
        deframer.fill(&mut &bytes[..]).await.unwrap();
        assert!(deframer.each(|_, _, _| true).is_err(), "{:?}", &bytes[..HEADER_LENGTH]);
        assert!(deframer.take_refused().is_empty());
    }
    let mut deframer = deframer((Version::V4, false), &AnswerRoom::new(MIB));
    deframer.fill(&mut &envelope(0x84, 8, BYTES_MAX as u32)[..]).await.unwrap();
    deframer.each(|_, _, _| true).unwrap();
    assert_eq!(deframer.take_refused().len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_given_up_leaves_nothing_and_what_follows_it_is_read() {
    for framing in FRAMINGS {
        for length in [200_000, MIB, 20 * MIB] {
            let room = AnswerRoom::new(64 * MIB);
            let bytes = [answer(framing, 1, length), answer(framing, 2, 10)].concat();
            for part in [1 << 17, bytes.len() / 2, answer(framing, 1, length).len() - 1] {
                let mut deframer = deframer(framing, &room);
                let (begin, rest) = bytes.split_at(part);
                let (taken, refused) = read(&mut deframer, begin).await;
                assert!(taken.is_empty() && refused.is_empty());
                if framing.0 >= Version::V5 && part <= 1 << 17 {
                    // Of a long message in segments nothing is known before the first is whole.
                    continue;
                }
                assert_eq!(deframer.arriving(), Some(1), "{framing:?} {length} {part}");
                assert!(room.used() >= length);
                deframer.give_up();
                assert_eq!((room.used(), deframer.arriving()), (0, None), "{framing:?} {length}");
                assert!(deframer.input.capacity() < 512 << 10);
                let (taken, mut refused) = read(&mut deframer, rest).await;
                refused.extend(deframer.take_refused().into_iter().map(|(stream, _)| stream));
                let streams: Vec<_> = taken.iter().map(|(stream, ..)| *stream).collect();
                assert_eq!((streams, refused), (vec![2], vec![1]), "{framing:?} {length} {part}");
                drop(taken);
                assert_eq!(room.used(), 0, "{framing:?} {length} {part}");
            }
        }
    }
}
