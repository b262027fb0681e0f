//! Encryption by a password, as private keys in PEM and stores of PKCS#12 use it: PBES2 (RFC 8018), and the older schemes
//! of PKCS#12 (RFC 7292, appendix B and C), which Java and OpenSSL wrote until 2022.

use std::num::NonZeroU32;

use aes::{Aes128, Aes192, Aes256};
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use des::{TdesEde2, TdesEde3};
use rc2::Rc2;
use ring::{digest, pbkdf2};

use crate::der::{self, Elements, tag};

/// Java's own limit of iterations, in PKCS#12.
pub const ITERATIONS_MAX: u32 = 5_000_000;

/// `1.2.840.113549.1.5.13`, PBES2.
const PBES2: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0D];
/// `1.2.840.113549.1.5.12`, PBKDF2.
const PBKDF2: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0C];
/// `1.3.6.1.4.1.11591.4.11`, scrypt.
const SCRYPT: &[u8] = &[0x2B, 0x06, 0x01, 0x04, 0x01, 0xDA, 0x47, 0x04, 0x0B];
/// `1.2.840.113549.2`, before the number of a keyed digest.
const HMAC: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x02];
/// `1.2.840.113549.2.9`, HMAC with SHA-256.
const HMAC_SHA256: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x02, 0x09];
/// `1.2.840.113549.1.12.1`, before the number of a scheme of PKCS#12.
const PKCS12: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C, 0x01];
/// `2.16.840.1.101.3.4.1`, before the number of a mode of AES.
const AES: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01];
/// `1.2.840.113549.3.7`, DES-EDE3-CBC.
const DES3: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x03, 0x07];

const AES256_CBC: u8 = 42;

/// Why bytes cannot be decrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The password is another one, or the bytes are damaged.
    Password,
    /// The bytes are damaged.
    Damaged,
    /// The scheme is not known; its name, or what is known of it.
    Unknown(String),
}

/// Decrypts bytes. `algorithm`: the contents of an `AlgorithmIdentifier`.
pub fn decrypt(
    algorithm: &[u8],
    encrypted: &[u8],
    password: &str,
    iterations_max: u32,
) -> Result<Vec<u8>, Failure> {
    let mut algorithm = Elements::of(algorithm);
    let id = algorithm.one(tag::OBJECT_ID).ok_or(Failure::Damaged)?;
    let parameters = algorithm.within(tag::SEQUENCE).ok_or(Failure::Damaged)?;
    if id == PBES2 {
        return decrypt_pbes2(parameters, encrypted, password, iterations_max);
    }
    match id.strip_prefix(PKCS12) {
        Some(&[scheme]) => decrypt_pkcs12((scheme, parameters), encrypted, password, iterations_max),
        _ => Err(Failure::Unknown(dotted(id))),
    }
}

fn decrypt_pbes2(
    mut parameters: Elements<'_>,
    encrypted: &[u8],
    password: &str,
    iterations_max: u32,
) -> Result<Vec<u8>, Failure> {
    let mut derivation = parameters.within(tag::SEQUENCE).ok_or(Failure::Damaged)?;
    let mut cipher = parameters.within(tag::SEQUENCE).ok_or(Failure::Damaged)?;
    match derivation.one(tag::OBJECT_ID).ok_or(Failure::Damaged)? {
        PBKDF2 => {}
        SCRYPT => return Err(Failure::Unknown("scrypt".to_owned())),
        other => return Err(Failure::Unknown(dotted(other))),
    }
    let mut derivation = derivation.within(tag::SEQUENCE).ok_or(Failure::Damaged)?;
    let salt = derivation.one(tag::OCTETS).ok_or(Failure::Damaged)?;
    let iterations = iterations(&mut derivation, iterations_max)?;
    if derivation.peek() == Some(tag::INTEGER) {
        // The length of the key, which follows from the cipher.
        derivation.any();
    }
    let digest = match derivation.within(tag::SEQUENCE) {
        None => pbkdf2::PBKDF2_HMAC_SHA1,
        Some(mut digest) => {
            let id = digest.one(tag::OBJECT_ID).ok_or(Failure::Damaged)?;
            match id.strip_prefix(HMAC) {
                Some([7]) => pbkdf2::PBKDF2_HMAC_SHA1,
                Some([9]) => pbkdf2::PBKDF2_HMAC_SHA256,
                Some([10]) => pbkdf2::PBKDF2_HMAC_SHA384,
                Some([11]) => pbkdf2::PBKDF2_HMAC_SHA512,
                _ => return Err(Failure::Unknown(dotted(id))),
            }
        }
    };
    let id = cipher.one(tag::OBJECT_ID).ok_or(Failure::Damaged)?;
    let iv = cipher.one(tag::OCTETS).ok_or(Failure::Damaged)?;
    let derive = |length: usize| {
        let mut key = vec![0; length];
        pbkdf2::derive(digest, iterations, salt, password.as_bytes(), &mut key);
        key
    };
    match id.strip_prefix(AES) {
        Some([2]) => open::<cbc::Decryptor<Aes128>>(&derive(16), iv, encrypted),
        Some([22]) => open::<cbc::Decryptor<Aes192>>(&derive(24), iv, encrypted),
        Some([AES256_CBC]) => open::<cbc::Decryptor<Aes256>>(&derive(32), iv, encrypted),
        _ if id == DES3 => open::<cbc::Decryptor<TdesEde3>>(&derive(24), iv, encrypted),
        _ => Err(Failure::Unknown(dotted(id))),
    }
}

fn decrypt_pkcs12(
    (scheme, mut parameters): (u8, Elements<'_>),
    encrypted: &[u8],
    password: &str,
    iterations_max: u32,
) -> Result<Vec<u8>, Failure> {
    let salt = parameters.one(tag::OCTETS).ok_or(Failure::Damaged)?;
    let iterations = iterations(&mut parameters, iterations_max)?.get();
    let password = password_of_pkcs12(password);
    let derive = |purpose, length| {
        derive_pkcs12(&digest::SHA1_FOR_LEGACY_USE_ONLY, purpose, (&password, salt, iterations), length)
    };
    let iv = derive(Purpose::Iv, 8);
    match scheme {
        3 => open::<cbc::Decryptor<TdesEde3>>(&derive(Purpose::Key, 24), &iv, encrypted),
        4 => open::<cbc::Decryptor<TdesEde2>>(&derive(Purpose::Key, 16), &iv, encrypted),
        5 => open::<cbc::Decryptor<Rc2>>(&derive(Purpose::Key, 16), &iv, encrypted),
        6 => open::<cbc::Decryptor<Rc2>>(&derive(Purpose::Key, 5), &iv, encrypted),
        _ => Err(Failure::Unknown("RC4".to_owned())),
    }
}

fn iterations(parameters: &mut Elements<'_>, max: u32) -> Result<NonZeroU32, Failure> {
    let count = parameters.number().and_then(NonZeroU32::new).ok_or(Failure::Damaged)?;
    match count.get() <= max {
        true => Ok(count),
        false => Err(Failure::Unknown(format!("more than {max} iterations"))),
    }
}

fn open<C: KeyIvInit + BlockModeDecrypt>(
    key: &[u8],
    iv: &[u8],
    encrypted: &[u8],
) -> Result<Vec<u8>, Failure> {
    let cipher = C::new_from_slices(key, iv).map_err(|_| Failure::Damaged)?;
    let mut bytes = encrypted.to_vec();
    match cipher.decrypt_padded::<Pkcs7>(&mut bytes) {
        Ok(open) => Ok(open.to_vec()),
        Err(_) => Err(Failure::Password),
    }
}

/// A password as PKCS#12 uses it: UTF-16 with two zero bytes at its end.
pub fn password_of_pkcs12(password: &str) -> Vec<u8> {
    password.encode_utf16().chain([0]).flat_map(u16::to_be_bytes).collect()
}

/// What derived bytes are for.
#[derive(Clone, Copy)]
pub enum Purpose {
    Key = 1,
    Iv = 2,
    Mac = 3,
}

/// RFC 7292, appendix B.2.
pub fn derive_pkcs12(
    algorithm: &'static digest::Algorithm,
    purpose: Purpose,
    (password, salt, iterations): (&[u8], &[u8], u32),
    length: usize,
) -> Vec<u8> {
    let block = algorithm.block_len();
    let filled = |text: &[u8]| -> Vec<u8> {
        text.iter().copied().cycle().take(text.len().div_ceil(block) * block).collect()
    };
    let mut input = [filled(salt), filled(password)].concat();
    let mut out = Vec::with_capacity(length);
    while out.len() < length {
        let first = [&vec![purpose as u8; block][..], &input].concat();
        let mut digested = digest::digest(algorithm, &first);
        for _ in 1..iterations {
            digested = digest::digest(algorithm, digested.as_ref());
        }
        out.extend_from_slice(digested.as_ref());
        // Each block of the input becomes the sum of itself, the digest, and one.
        let addend: Vec<u8> = digested.as_ref().iter().copied().cycle().take(block).collect();
        for part in input.chunks_mut(block) {
            let mut carry = 1_u16;
            for (byte, other) in part.iter_mut().zip(&addend).rev() {
                carry += u16::from(*byte) + u16::from(*other);
                *byte = carry as u8;
                carry >>= 8;
            }
        }
    }
    out.truncate(length);
    out
}

/// Encrypts by PBES2 with AES-256 and SHA-256, as Java has done since version 18. Returns the algorithm, an element, and the
/// encrypted bytes. `random`: a salt of 20 bytes and an initial vector of 16.
pub fn encrypt(
    bytes: &[u8],
    password: &str,
    iterations: NonZeroU32,
    (salt, iv): (&[u8], &[u8; 16]),
) -> (Vec<u8>, Vec<u8>) {
    let mut key = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, password.as_bytes(), &mut key);
    let encrypted =
        cbc::Encryptor::<Aes256>::new(&key.into(), &(*iv).into()).encrypt_padded_vec::<Pkcs7>(bytes);
    let id = |bytes: &[u8]| der::element(tag::OBJECT_ID, bytes);
    let digest = der::sequence(&[&id(HMAC_SHA256), &[tag::NULL, 0]]);
    let derivation =
        der::sequence(&[&der::element(tag::OCTETS, salt), &der::number(iterations.get()), &digest]);
    let cipher = der::sequence(&[&id(&[AES, &[AES256_CBC]].concat()), &der::element(tag::OCTETS, iv)]);
    let parameters = der::sequence(&[&der::sequence(&[&id(PBKDF2), &derivation]), &cipher]);
    (der::sequence(&[&id(PBES2), &parameters]), encrypted)
}

/// An object identifier in its usual form.
pub fn dotted(id: &[u8]) -> String {
    let mut numbers = Vec::new();
    let mut number = 0_u64;
    for byte in id {
        number = number << 7 | u64::from(byte & 0x7F);
        if byte & 0x80 == 0 {
            if numbers.is_empty() {
                let first = (number / 40).min(2);
                numbers.extend([first, number - first * 40]);
            } else {
                numbers.push(number);
            }
            number = 0;
        }
    }
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encrypted_is_decrypted_with_its_password_alone() {
        let iterations = NonZeroU32::new(100).unwrap();
        let (algorithm, encrypted) = encrypt(b"secret", "word", iterations, (&[1; 20], &[2; 16]));
        let algorithm = Elements::of(&algorithm).one(tag::SEQUENCE).unwrap();
        assert_eq!(decrypt(algorithm, &encrypted, "word", 100).unwrap(), b"secret");
        assert_eq!(
            decrypt(algorithm, &encrypted, "word", 99).unwrap_err(),
            Failure::Unknown("more than 99 iterations".to_owned())
        );
        assert!(decrypt(algorithm, &encrypted, "work", 100).is_err());
        for cut in 0..algorithm.len() {
            assert!(decrypt(&algorithm[..cut], &encrypted, "word", 100).is_err());
        }
    }

    /// The first example of <https://www.drh-consultancy.co.uk/test.txt>, which implementations of PKCS#12 share.
    #[test]
    fn keys_of_pkcs12_are_derived_as_in_its_examples() {
        let salt = [0x0A, 0x58, 0xCF, 0x64, 0x53, 0x0D, 0x82, 0x3F];
        let password = password_of_pkcs12("smeg");
        let key = derive_pkcs12(&digest::SHA1_FOR_LEGACY_USE_ONLY, Purpose::Key, (&password, &salt, 1), 24);
        let expected = [
            0x8A, 0xAA, 0xE6, 0x29, 0x7B, 0x6C, 0xB0, 0x46, 0x42, 0xAB, 0x5B, 0x07, 0x78, 0x51, 0x28, 0x4E,
            0xB7, 0x12, 0x8F, 0x1A, 0x2A, 0x7F, 0xBC, 0xA3,
        ];
        assert_eq!(key, expected);
    }

    #[test]
    fn an_unknown_scheme_is_named() {
        assert_eq!(dotted(PBES2), "1.2.840.113549.1.5.13");
        let md5_des = [6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x03, 0x30, 0];
        assert_eq!(decrypt(&md5_des, &[], "", 1), Err(Failure::Unknown("1.2.840.113549.1.5.3".to_owned())));
    }
}
