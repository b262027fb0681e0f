//! Segments: what is written can be read, in pieces of any size, and damage is detected.

use super::*;
use crate::native::{Flags, Opcode, Outgoing, ResponseHead};

const FORMATS: [SegmentFormat; 2] = [SegmentFormat::Plain, SegmentFormat::Lz4];
const MAX_MESSAGE: u64 = 16 << 20;

/// An AUTH_RESPONSE whose body has `length` bytes, since any bytes are valid there. `noise` makes it incompressible.
fn envelope(stream: i16, length: usize, noise: bool) -> Vec<u8> {
    let mut bytes = vec![5, 0];
    bytes.extend(stream.to_be_bytes());
    bytes.push(Opcode::AuthResponse as u8);
    bytes.extend((length as u32).to_be_bytes());
    let mut state = 1_u32;
    bytes.extend((0..length).map(|i| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if noise { (state >> 24) as u8 } else { (i / 100) as u8 }
    }));
    bytes
}

fn reader(format: SegmentFormat) -> SegmentReader {
    SegmentReader::new(format, Direction::Request, MAX_MESSAGE)
}

/// Reads `input` in pieces of `piece` bytes, as from a socket; returns all payloads, one after the other.
fn read_all(format: SegmentFormat, input: &[u8], piece: usize) -> Result<Vec<u8>, Refusal> {
    let mut reader = reader(format);
    let mut envelopes = Vec::new();
    let (mut received, mut at) = (0, 0);
    while at < input.len() {
        received = (received + piece).min(input.len());
        loop {
            match reader.read(&input[at..received])? {
                Step::Incomplete => break,
                Step::Part { used } => at += used,
                Step::Envelopes { used, payload, .. } => {
                    at += used;
                    envelopes.extend_from_slice(payload);
                }
            }
        }
        assert!(received < input.len() || at == input.len(), "the input ends inside a segment");
    }
    Ok(envelopes)
}

#[test]
fn envelopes_of_any_size_come_back_in_order() {
    let sizes = [
        0,
        1,
        100,
        MAX_PAYLOAD - 10,
        MAX_PAYLOAD - 9,
        MAX_PAYLOAD - 8,
        MAX_PAYLOAD,
        2 * MAX_PAYLOAD,
        400_000,
    ];
    for format in FORMATS {
        for noise in [false, true] {
            let mut run = Vec::new();
            for (stream, size) in sizes.into_iter().chain([7; 50]).chain([70_000; 3]).enumerate() {
                run.extend(envelope(stream as i16, size, noise));
            }
            let mut writer = SegmentWriter::new(format);
            let mut out = Vec::new();
            writer.append(&run, &mut out);
            let pieces: Vec<&[u8]> = format.split(&out).collect();
            assert_eq!(pieces.concat(), out, "{format:?}");
            for piece in &pieces {
                assert_eq!(Segment::read(piece, format).unwrap().unwrap().size, piece.len(), "{format:?}");
            }
            for piece in [1000, 65_536, usize::MAX / 2] {
                assert!(read_all(format, &out, piece).unwrap() == run, "{format:?} in pieces of {piece}");
            }
        }
    }
}

#[test]
fn small_envelopes_share_one_segment() {
    let run: Vec<u8> = (0..100).flat_map(|stream| envelope(stream, 50, true)).collect();
    for format in FORMATS {
        let mut out = b"before".to_vec();
        let mut writer = SegmentWriter::new(format);
        let open = writer.open(&mut out);
        out.extend_from_slice(&run);
        writer.close(open, &mut out);
        let segment = Segment::read(&out[6..], format).unwrap().unwrap();
        assert!(segment.self_contained);
        assert_eq!(segment.size, out.len() - 6);
        let mut appended = Vec::new();
        writer.append(&run, &mut appended);
        assert_eq!(out[6..], appended, "both ways of writing write the same");
    }
}

#[test]
fn an_empty_run_is_no_segment() {
    for format in FORMATS {
        let mut out = b"before".to_vec();
        let mut writer = SegmentWriter::new(format);
        let open = writer.open(&mut out);
        writer.close(open, &mut out);
        assert_eq!(out, b"before");
    }
}

#[test]
fn a_run_closed_in_place_may_be_longer_than_a_segment() {
    let mut run = envelope(1, 10, false);
    run.extend(envelope(2, 300_000, true));
    run.extend(envelope(3, 10, false));
    for format in FORMATS {
        let mut out = Vec::new();
        let mut writer = SegmentWriter::new(format);
        for _ in 0..2 {
            let open = writer.open(&mut out);
            out.extend_from_slice(&run);
            writer.close(open, &mut out);
        }
        assert!(read_all(format, &out, usize::MAX / 2).unwrap() == [run.clone(), run.clone()].concat());
    }
}

/// A SUPPORTED in a segment of a 5.0.6 node, with the recorded header and trailer.
#[test]
fn a_segment_is_cassandras() {
    let mut out = Vec::new();
    let mut writer = SegmentWriter::new(SegmentFormat::Plain);
    let open = writer.open(&mut out);
    let head = ResponseHead::new(Version::V5, 6);
    Outgoing::Supported { cql_version: "3.4.7" }.encode(&head, None, &mut out).unwrap();
    writer.close(open, &mut out);
    assert_eq!(out[..6], *b"o\x00\x02\n\x9bD");
    assert_eq!(out[out.len() - 4..], *b"#\xaa\x0f\x0c");
}

#[test]
fn a_flipped_bit_anywhere_is_refused_in_cassandras_words() {
    for format in FORMATS {
        let mut out = Vec::new();
        SegmentWriter::new(format).append(&envelope(1, 60, false), &mut out);
        for bit in 0..out.len() * 8 {
            out[bit / 8] ^= 1 << (bit % 8);
            let refusal = match reader(format).read(&out) {
                Err(refusal) => refusal,
                Ok(step) => panic!("bit {bit} of {format:?}: {step:?}"),
            };
            let part = if bit / 8 < format.header_length() { SegmentPart::Header } else { SegmentPart::Body };
            let WireError::SegmentCrc { part: found, read, computed } = refusal.error else {
                panic!("{refusal:?}")
            };
            assert_eq!((found, refusal.then), (part, AfterRefusal::Close));
            let text = format!(
                "invalid, unrecoverable CRC mismatch detected in frame {part}. Read {}, Computed {}",
                read as i32, computed as i32
            );
            assert_eq!(refusal.error.to_string(), text);
            out[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn a_segment_cut_anywhere_is_incomplete() {
    for format in FORMATS {
        let mut out = Vec::new();
        SegmentWriter::new(format).append(&envelope(1, 60, false), &mut out);
        for end in 0..out.len() {
            assert_eq!(reader(format).read(&out[..end]), Ok(Step::Incomplete), "{format:?} cut to {end}");
        }
    }
}

/// Writes one part of a long message.
fn part(format: SegmentFormat, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    SegmentWriter::new(format).append_segment(payload, false, &mut out);
    out
}

#[test]
fn a_message_that_is_too_big_is_dropped_and_answered_at_its_end() {
    let message = envelope(9, 3000, true);
    for format in FORMATS {
        let mut reader = SegmentReader::new(format, Direction::Request, 2999);
        let (first, second) = message.split_at(1500);
        assert!(matches!(reader.read(&part(format, first)), Ok(Step::Part { .. })));
        assert!(reader.assembled.is_empty(), "nothing is kept of it");
        let input = part(format, second);
        let refusal = reader.read(&input).unwrap_err();
        assert_eq!(
            refusal.error.to_string(),
            "CQL Message of size 3000 bytes exceeds allowed maximum of 2999 bytes"
        );
        assert_eq!((refusal.stream, refusal.then), (9, AfterRefusal::Skip(input.len() as u64)));
        let mut next = Vec::new();
        SegmentWriter::new(format).append(&envelope(1, 5, false), &mut next);
        assert!(matches!(reader.read(&next), Ok(Step::Envelopes { .. })), "the connection goes on");
    }
}

#[test]
fn whole_envelopes_may_come_between_the_parts_of_a_long_message() {
    let (long, small) = (envelope(1, 3000, false), envelope(2, 3, false));
    let format = SegmentFormat::Plain;
    let mut between = Vec::new();
    SegmentWriter::new(format).append(&small, &mut between);
    let input = [part(format, &long[..1000]), between, part(format, &long[1000..])].concat();
    assert_eq!(read_all(format, &input, 100).unwrap(), [small, long].concat());
}

#[test]
fn a_long_message_is_refused_where_it_cannot_be_followed() {
    let format = SegmentFormat::Plain;
    let refuse = |payload: &[u8], ready| {
        let mut reader = reader(format);
        reader.set_ready(ready);
        let refusal = reader.read(&part(format, payload)).unwrap_err();
        assert_eq!(refusal.then, AfterRefusal::Close);
        refusal.error.to_string()
    };
    let mut unknown = envelope(1, 3000, false);
    unknown[4] = 99;
    assert_eq!(refuse(&unknown[..2000], true), "Unknown opcode 99");
    let overlong = [envelope(1, 10, false), vec![0]].concat();
    assert_eq!(refuse(&overlong, true), "Segments hold 20 bytes of a message of 19 bytes");
    let early = refuse(&envelope(1, 3000, false)[..2000], false);
    assert!(early.ends_with("authentication is still pending. type = AUTH_RESPONSE, size = 3000"), "{early}");
    refuse(b"\x05\x00", true);
}

#[test]
fn lz4_that_does_not_unfold_is_refused() {
    let payload = b"\xff\xff\xff\xff";
    let mut out = lz4_header(payload.len(), 1000, true).to_vec();
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32(payload).to_le_bytes());
    let refusal = reader(SegmentFormat::Lz4).read(&out).unwrap_err();
    assert_eq!(refusal.then, AfterRefusal::Close);
    assert!(matches!(refusal.error, WireError::NotLz4 { announced: 1000, compressed: 4 }));
}

#[test]
fn envelopes_are_taken_off_a_payload_one_by_one() {
    let run: Vec<u8> = (0..5).flat_map(|stream| envelope(stream, 20, false)).collect();
    let mut input = Vec::new();
    SegmentWriter::new(SegmentFormat::Lz4).append(&run, &mut input);
    let mut reader = reader(SegmentFormat::Lz4);
    let envelopes = *reader.envelopes();
    let Ok(Step::Envelopes { used, mut payload, .. }) = reader.read(&input) else { panic!() };
    assert_eq!(used, input.len());
    let mut streams = Vec::new();
    while !payload.is_empty() {
        let envelope = envelopes.read_in_segment(payload).unwrap();
        assert_eq!(envelope.header.flags, Flags(0));
        streams.push(envelope.header.stream);
        payload = &payload[envelope.size()..];
    }
    assert_eq!(streams, [0, 1, 2, 3, 4]);
}
