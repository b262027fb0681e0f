//! Chunks in pieces, as they are written, found and read.

use super::super::lz4;
use super::*;

/// Rows as files have them: a name that counts up, and a value of few letters.
fn rows(bytes: usize) -> Vec<u8> {
    let row = |number: u64| {
        let value = (0..5).map(|at| format!("{:05x}", mix(number * 5 + at) % 0x10_0000));
        format!("{number:010}{}", value.collect::<String>()).into_bytes()
    };
    (0..).flat_map(row).take(bytes).collect()
}

fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    number ^ number >> 29
}

fn stored(data: &[u8], starts: &[usize]) -> Vec<u8> {
    let mut out = vec![0; lz4::bound(data.len())];
    let len = lz4::compress_pieces(data, starts, &mut out, &mut Vec::new()).unwrap().unwrap();
    out.truncate(len);
    out
}

#[test]
fn a_chunk_in_pieces_is_a_chunk_and_each_part_of_it_comes_without_the_others() {
    let data = rows(16_384);
    let starts = [4_200, 8_400, 12_600];
    let chunk = stored(&data, &starts);
    let mut whole = vec![0; data.len()];
    lz4::decompress(&chunk, &mut whole).unwrap();
    assert_eq!(whole, data);
    let pieces = Pieces::find(&chunk, data.len());
    let found: Vec<usize> = pieces.starts[1..].iter().map(|(_, data_at)| usize::from(*data_at)).collect();
    assert_eq!(pieces.count, 4);
    for (found, asked) in found.iter().zip(starts) {
        assert!((asked.saturating_sub(40)..=asked).contains(found), "{found} for {asked}");
    }
    for from in (0..data.len()).step_by(97) {
        for to in (from + 1..=data.len()).step_by(301).chain([data.len()]) {
            let Some(part) = pieces.part(&(from..to), chunk.len()) else {
                assert!(from < found[0] && to > found[2], "{from}..{to} is not all of it");
                continue;
            };
            assert!(part.data_at <= from);
            let mut bytes = chunk[part.stored.clone()].to_vec();
            assert!(pieces.are(&part, &bytes, chunk.len()));
            // What stands behind does not count.
            bytes.extend_from_slice(&[0xFF; 32]);
            bytes.push(0);
            let mut out = vec![0; to - part.data_at];
            lz4::decompress_from(&bytes[part.prefix..], &mut out).unwrap();
            assert_eq!(out, data[part.data_at..to], "{from}..{to}");
        }
    }
}

#[test]
fn a_piece_whose_bytes_changed_is_told_by_its_checksum() {
    let data = rows(16_384);
    let chunk = stored(&data, &[4_096, 8_192]);
    let pieces = Pieces::find(&chunk, data.len());
    let part = pieces.part(&(5_000..9_000), chunk.len()).unwrap();
    for at in part.stored.clone().step_by(11) {
        let mut changed = chunk.clone();
        changed[at] ^= 1;
        assert!(!pieces.are(&part, &changed[part.stored.clone()], chunk.len()), "byte {at}");
    }
    assert!(!pieces.are(&part, &chunk[part.stored.start..part.stored.end - 1], chunk.len()), "too short");
}

#[test]
fn what_was_compressed_whole_is_one_piece() {
    let data = rows(16_384);
    let chunk = stored(&data, &[]);
    assert_eq!(chunk[4..], {
        let mut plain = Vec::new();
        lzzzz::lz4::compress_to_vec(&data, &mut plain, 1).unwrap();
        plain
    });
    let pieces = Pieces::find(&chunk, data.len());
    assert!(!pieces.are_several());
    assert_eq!(pieces.part(&(0..10), chunk.len()), None);
    // Neither is what is no chunk, or a longer one than is looked into.
    for stored in [&[][..], &[1, 2, 3], &[0, 0, 0, 0, 0x1F, 0, 0, 0], &vec![7; 70_000]] {
        assert!(!Pieces::find(stored, 16_384).are_several());
    }
}

#[test]
fn pieces_that_do_not_shrink_are_joined_to_one_run_of_literals() {
    let noise: Vec<u8> = (0..16_384_u64).map(|at| mix(mix(at)) as u8).collect();
    let chunk = stored(&noise, &[4_096, 8_192, 12_288]);
    assert!(chunk.len() <= noise.len() + 4 + 1 + 65, "{}", chunk.len());
    let mut whole = vec![0; noise.len()];
    lz4::decompress(&chunk, &mut whole).unwrap();
    assert_eq!(whole, noise);
    // Too little room is told, whatever the pieces are.
    let mut out = vec![0; lz4::bound(noise.len())];
    for room in [4, 100, 5_000, chunk.len() - 1] {
        let made = lz4::compress_pieces(&noise, &[4_096, 8_192], &mut out[..room], &mut Vec::new());
        assert_eq!(made.unwrap(), None, "{room}");
    }
    let mixed: Vec<u8> = noise[..6_000].iter().chain(&rows(6_000)).chain(&noise[..4_000]).copied().collect();
    for starts in [&[4_096, 8_192][..], &[6_000], &[5_000, 11_000], &[1, 2, 3, 4, 5], &[15_999]] {
        let chunk = stored(&mixed, starts);
        let mut whole = vec![0; mixed.len()];
        lz4::decompress(&chunk, &mut whole).unwrap();
        assert!(whole == mixed, "{starts:?}");
    }
}
