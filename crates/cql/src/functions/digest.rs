//! The hash algorithms of `mask_hash`: MD5, SHA-1 and SHA-2 (FIPS 180-4).

/// An algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digest {
    /// RFC 1321.
    Md5,
    /// 160 bits.
    Sha1,
    /// SHA-2 with 32-bit words: length of the digest in bytes, and initial state.
    Sha32(usize, [u32; 8]),
    /// SHA-2 with 64-bit words: length of the digest in bytes, and initial state.
    Sha64(usize, [u64; 8]),
}

const SHA_224: [u32; 8] =
    [0xC105_9ED8, 0x367C_D507, 0x3070_DD17, 0xF70E_5939, 0xFFC0_0B31, 0x6858_1511, 0x64F9_8FA7, 0xBEFA_4FA4];
const SHA_256: [u32; 8] =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];
const SHA_384: [u64; 8] = [
    0xCBBB_9D5D_C105_9ED8,
    0x629A_292A_367C_D507,
    0x9159_015A_3070_DD17,
    0x152F_ECD8_F70E_5939,
    0x6733_2667_FFC0_0B31,
    0x8EB4_4A87_6858_1511,
    0xDB0C_2E0D_64F9_8FA7,
    0x47B5_481D_BEFA_4FA4,
];
const SHA_512: [u64; 8] = [
    0x6A09_E667_F3BC_C908,
    0xBB67_AE85_84CA_A73B,
    0x3C6E_F372_FE94_F82B,
    0xA54F_F53A_5F1D_36F1,
    0x510E_527F_ADE6_82D1,
    0x9B05_688C_2B3E_6C1F,
    0x1F83_D9AB_FB41_BD6B,
    0x5BE0_CD19_137E_2179,
];
const SHA_512_224: [u64; 8] = [
    0x8C3D_37C8_1954_4DA2,
    0x73E1_9966_89DC_D4D6,
    0x1DFA_B7AE_32FF_9C82,
    0x679D_D514_582F_9FCF,
    0x0F6D_2B69_7BD4_4DA8,
    0x77E3_6F73_04C4_8942,
    0x3F9D_85A8_6A1D_36C8,
    0x1112_E6AD_91D6_92A1,
];
const SHA_512_256: [u64; 8] = [
    0x2231_2194_FC2B_F72C,
    0x9F55_5FA3_C84C_64C2,
    0x2393_B86B_6F53_B151,
    0x9638_7719_5940_EABD,
    0x9628_3EE2_A88E_FFE3,
    0xBE5E_1E25_5386_3992,
    0x2B01_99FC_2C85_B8AA,
    0x0EB7_2DDC_81C5_2CA2,
];

impl Digest {
    /// By Java's name or alias, in upper or lower case.
    pub(super) fn named(name: &str) -> Option<Digest> {
        Some(match &*name.to_ascii_uppercase() {
            "MD5" => Digest::Md5,
            "SHA" | "SHA1" | "SHA-1" => Digest::Sha1,
            "SHA-224" | "SHA224" => Digest::Sha32(28, SHA_224),
            "SHA-256" | "SHA256" => Digest::Sha32(32, SHA_256),
            "SHA-384" | "SHA384" => Digest::Sha64(48, SHA_384),
            "SHA-512" | "SHA512" => Digest::Sha64(64, SHA_512),
            "SHA-512/224" | "SHA512/224" => Digest::Sha64(28, SHA_512_224),
            "SHA-512/256" | "SHA512/256" => Digest::Sha64(32, SHA_512_256),
            _ => return None,
        })
    }
}

/// Computes a digest.
pub(super) fn of(digest: Digest, bytes: &[u8]) -> Vec<u8> {
    match digest {
        Digest::Md5 => md5::compute(bytes).0.to_vec(),
        Digest::Sha1 => sha_1(bytes),
        Digest::Sha32(length, start) => {
            let mut out = sha_32(bytes, start);
            out.truncate(length);
            out
        }
        Digest::Sha64(length, start) => {
            let mut out = sha_64(bytes, start);
            out.truncate(length);
            out
        }
    }
}

/// The padded message: with a one bit, zeros, and its length in bits at the end of the last block.
fn padded(bytes: &[u8], block: usize) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out.push(0x80);
    // The length takes an eighth of the block; the upper half of a 16-byte length is zero.
    while out.len() % block != block - block / 8 {
        out.push(0);
    }
    out.resize(out.len() + block / 8 - 8, 0);
    out.extend_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    out
}

fn sha_1(bytes: &[u8]) -> Vec<u8> {
    let mut state: [u32; 5] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0];
    for block in padded(bytes, 64).chunks_exact(64) {
        let mut words = [0_u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.try_into().map_or(0, u32::from_be_bytes);
        }
        for i in 16..80 {
            words[i] = (words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (i, word) in words.iter().enumerate() {
            let (mixed, constant) = match i {
                0..20 => ((b & c) | (!b & d), 0x5A82_7999),
                20..40 => (b ^ c ^ d, 0x6ED9_EBA1),
                40..60 => ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC),
                _ => (b ^ c ^ d, 0xCA62_C1D6_u32),
            };
            let next = a
                .rotate_left(5)
                .wrapping_add(mixed)
                .wrapping_add(e)
                .wrapping_add(constant)
                .wrapping_add(*word);
            (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The first 64 bits of the fractions of the cube roots of the first 80 primes; SHA-2 with 32-bit words takes the upper
/// halves of the first 64.
#[rustfmt::skip]
const CUBE_ROOTS: [u64; 80] = [
    0x428A_2F98_D728_AE22, 0x7137_4491_23EF_65CD, 0xB5C0_FBCF_EC4D_3B2F, 0xE9B5_DBA5_8189_DBBC,
    0x3956_C25B_F348_B538, 0x59F1_11F1_B605_D019, 0x923F_82A4_AF19_4F9B, 0xAB1C_5ED5_DA6D_8118,
    0xD807_AA98_A303_0242, 0x1283_5B01_4570_6FBE, 0x2431_85BE_4EE4_B28C, 0x550C_7DC3_D5FF_B4E2,
    0x72BE_5D74_F27B_896F, 0x80DE_B1FE_3B16_96B1, 0x9BDC_06A7_25C7_1235, 0xC19B_F174_CF69_2694,
    0xE49B_69C1_9EF1_4AD2, 0xEFBE_4786_384F_25E3, 0x0FC1_9DC6_8B8C_D5B5, 0x240C_A1CC_77AC_9C65,
    0x2DE9_2C6F_592B_0275, 0x4A74_84AA_6EA6_E483, 0x5CB0_A9DC_BD41_FBD4, 0x76F9_88DA_8311_53B5,
    0x983E_5152_EE66_DFAB, 0xA831_C66D_2DB4_3210, 0xB003_27C8_98FB_213F, 0xBF59_7FC7_BEEF_0EE4,
    0xC6E0_0BF3_3DA8_8FC2, 0xD5A7_9147_930A_A725, 0x06CA_6351_E003_826F, 0x1429_2967_0A0E_6E70,
    0x27B7_0A85_46D2_2FFC, 0x2E1B_2138_5C26_C926, 0x4D2C_6DFC_5AC4_2AED, 0x5338_0D13_9D95_B3DF,
    0x650A_7354_8BAF_63DE, 0x766A_0ABB_3C77_B2A8, 0x81C2_C92E_47ED_AEE6, 0x9272_2C85_1482_353B,
    0xA2BF_E8A1_4CF1_0364, 0xA81A_664B_BC42_3001, 0xC24B_8B70_D0F8_9791, 0xC76C_51A3_0654_BE30,
    0xD192_E819_D6EF_5218, 0xD699_0624_5565_A910, 0xF40E_3585_5771_202A, 0x106A_A070_32BB_D1B8,
    0x19A4_C116_B8D2_D0C8, 0x1E37_6C08_5141_AB53, 0x2748_774C_DF8E_EB99, 0x34B0_BCB5_E19B_48A8,
    0x391C_0CB3_C5C9_5A63, 0x4ED8_AA4A_E341_8ACB, 0x5B9C_CA4F_7763_E373, 0x682E_6FF3_D6B2_B8A3,
    0x748F_82EE_5DEF_B2FC, 0x78A5_636F_4317_2F60, 0x84C8_7814_A1F0_AB72, 0x8CC7_0208_1A64_39EC,
    0x90BE_FFFA_2363_1E28, 0xA450_6CEB_DE82_BDE9, 0xBEF9_A3F7_B2C6_7915, 0xC671_78F2_E372_532B,
    0xCA27_3ECE_EA26_619C, 0xD186_B8C7_21C0_C207, 0xEADA_7DD6_CDE0_EB1E, 0xF57D_4F7F_EE6E_D178,
    0x06F0_67AA_7217_6FBA, 0x0A63_7DC5_A2C8_98A6, 0x113F_9804_BEF9_0DAE, 0x1B71_0B35_131C_471B,
    0x28DB_77F5_2304_7D84, 0x32CA_AB7B_40C7_2493, 0x3C9E_BE0A_15C9_BEBC, 0x431D_67C4_9C10_0D4C,
    0x4CC5_D4BE_CB3E_42B6, 0x597F_299C_FC65_7E2A, 0x5FCB_6FAB_3AD6_FAEC, 0x6C44_198C_4A47_5817,
];

fn sha_32(bytes: &[u8], start: [u32; 8]) -> Vec<u8> {
    let mut state = start;
    for block in padded(bytes, 64).chunks_exact(64) {
        let mut words = [0_u32; 64];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.try_into().map_or(0, u32::from_be_bytes);
        }
        for i in 16..64 {
            let (x, y) = (words[i - 15], words[i - 2]);
            let first = x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3);
            let second = y.rotate_right(17) ^ y.rotate_right(19) ^ (y >> 10);
            words[i] = words[i - 16].wrapping_add(first).wrapping_add(words[i - 7]).wrapping_add(second);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (word, k) in words.iter().zip(CUBE_ROOTS) {
            let k = (k >> 32) as u32;
            let mixed = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let one =
                h.wrapping_add(mixed).wrapping_add((e & f) ^ (!e & g)).wrapping_add(k).wrapping_add(*word);
            let mixed = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let two = mixed.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *sum = sum.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn sha_64(bytes: &[u8], start: [u64; 8]) -> Vec<u8> {
    let mut state = start;
    for block in padded(bytes, 128).chunks_exact(128) {
        let mut words = [0_u64; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(8)) {
            *word = bytes.try_into().map_or(0, u64::from_be_bytes);
        }
        for i in 16..80 {
            let (x, y) = (words[i - 15], words[i - 2]);
            let first = x.rotate_right(1) ^ x.rotate_right(8) ^ (x >> 7);
            let second = y.rotate_right(19) ^ y.rotate_right(61) ^ (y >> 6);
            words[i] = words[i - 16].wrapping_add(first).wrapping_add(words[i - 7]).wrapping_add(second);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (word, k) in words.iter().zip(CUBE_ROOTS) {
            let mixed = e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41);
            let one =
                h.wrapping_add(mixed).wrapping_add((e & f) ^ (!e & g)).wrapping_add(k).wrapping_add(*word);
            let mixed = a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39);
            let two = mixed.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *sum = sum.wrapping_add(part);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(name: &str, text: &[u8]) -> String {
        let digest = Digest::named(name).unwrap();
        of(digest, text).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn published_examples_come_out() {
        assert_eq!(hex("SHA-1", b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex("SHA-224", b"abc"), "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7");
        assert_eq!(hex("SHA-256", b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert!(hex("SHA-384", b"abc").starts_with("cb00753f45a35e8bb5a03d699ac65007"));
        assert!(hex("SHA-512", &[b'a'; 115]).len() == 128);
        assert!(hex("sha512/256", b"abc").starts_with("53048e2681941ef99b2e29b76b4c7dab"));
    }
}
