//! The two checksums of v5 segments: CRC24 over a segment's header, CRC32 over its payload (Cassandra's `net.Crc`).

/// The initial value of the CRC24.
const CRC24_INIT: u32 = 0x0087_5060;
/// The generator polynomial, with its 2^24 term.
const CRC24_POLYNOMIAL: u32 = 0x0197_4F0B;
/// Bytes that precede every payload in its CRC32, so that zeros do not have the checksum zero.
const CRC32_SEED: [u8; 4] = [0xFA, 0x2D, 0x55, 0xCA];
/// The CRC32 of [`CRC32_SEED`].
const CRC32_SEEDED: u32 = !crc32_register(0xFFFF_FFFF, CRC32_SEED);

/// Eight CRC24 steps at once, for each value of the top byte.
const CRC24_TABLE: [u32; 256] = crc24_table();

const fn crc24_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u32) << 16;
        let mut bit = 0;
        while bit < 8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= CRC24_POLYNOMIAL;
            }
            bit += 1;
        }
        #[expect(
            clippy::indexing_slicing,
            reason = "evaluated at compile time, where a wrong index is an error"
        )]
        {
            table[byte] = crc;
        }
        byte += 1;
    }
    table
}

const fn crc32_register(mut crc: u32, bytes: [u8; 4]) -> u32 {
    let mut at = 0;
    while at < bytes.len() {
        #[expect(
            clippy::indexing_slicing,
            reason = "evaluated at compile time, where a wrong index is an error"
        )]
        {
            crc ^= bytes[at] as u32;
        }
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 != 0 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        at += 1;
    }
    crc
}

/// The CRC24 of a segment's header bytes, in wire order.
pub fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(CRC24_INIT, |crc, byte| {
        let top = (crc >> 16) as u8 ^ byte;
        let step = CRC24_TABLE.get(usize::from(top)).copied().unwrap_or_default();
        ((crc << 8) ^ step) & 0x00FF_FFFF
    })
}

/// The CRC32 of a segment's payload as on the wire, so of the compressed bytes if it is compressed.
pub fn crc32(payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(CRC32_SEEDED);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shift register of the specification, one bit at a time.
    fn crc24_by_bits(bytes: &[u8]) -> u32 {
        bytes.iter().fold(CRC24_INIT, |crc, byte| {
            (0..8).fold(crc ^ (u32::from(*byte) << 16), |crc, _| {
                let shifted = crc << 1;
                if shifted & 0x0100_0000 != 0 { shifted ^ CRC24_POLYNOMIAL } else { shifted }
            })
        })
    }

    #[test]
    fn the_table_equals_the_shift_register() {
        for seed in 0..5000_u32 {
            let bytes = seed.wrapping_mul(2_654_435_761).to_le_bytes();
            for length in 0..=4 {
                assert_eq!(crc24(&bytes[..length]), crc24_by_bits(&bytes[..length]));
            }
        }
    }

    #[test]
    fn checksums_equal_those_of_another_implementation() {
        for length in [0_usize, 1, 3, 5, 9, 64, 1000, 131_071] {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 31 % 251) as u8).collect();
            assert_eq!(crc32(&bytes), cassandra_protocol::crc::crc32(&bytes), "{length} bytes");
            if length <= 8 {
                assert_eq!(crc24(&bytes) as i32, cassandra_protocol::crc::crc24(&bytes), "{length} bytes");
            }
        }
    }
}
