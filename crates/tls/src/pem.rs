//! Reads PEM as Cassandra's `PEMReader` does: text around the blocks is ignored, and any label that ends in
//! `CERTIFICATE` or `PRIVATE KEY` counts.

use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};

use crate::der::{Elements, tag};
use crate::pbe::{self, Failure};

/// A block: what stands between a line of BEGIN and its line of END.
#[derive(Debug)]
struct Block<'a> {
    label: &'a str,
    base64: &'a str,
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (_, after) = rest.split_once(BEGIN)?;
            let (inside, after) = after.split_once(END)?;
            let (end, after) = after.split_once(DASHES)?;
            rest = after;
            // A block without an end hides none of those behind it.
            let inside = inside.rsplit_once(BEGIN).map_or(inside, |(_, last)| last);
            let Some((label, base64)) = inside.split_once(DASHES) else { continue };
            if end == label {
                return Some(Block { label: label.trim(), base64 });
            }
        }
    })
}

/// All certificates of a text, in its order.
///
/// # Errors
/// A block is not Base64.
pub fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let blocks = blocks(text).filter(|block| block.label.ends_with("CERTIFICATE"));
    blocks.map(|block| decode(block).map(CertificateDer::from)).collect()
}

/// All lists of revoked certificates of a text, in its order.
///
/// # Errors
/// A block is not Base64.
pub fn revocation_lists(text: &str) -> Result<Vec<Vec<u8>>, String> {
    blocks(text).filter(|block| block.label.ends_with("CRL")).map(decode).collect()
}

/// Whether a text has a private key.
pub fn has_private_key(text: &str) -> bool {
    blocks(text).any(|block| block.label.ends_with("PRIVATE KEY"))
}

/// The first private key of a text; `None` if it has none.
///
/// # Errors
/// The block is not Base64, or it is encrypted and the password does not open it.
pub fn private_key(text: &str, password: Option<&str>) -> Result<Option<PrivateKeyDer<'static>>, String> {
    private_key_within(text, password, pbe::ITERATIONS_MAX)
}

/// As `private_key`, with a bound of the iterations that derive a key from the password.
pub fn private_key_within(
    text: &str,
    password: Option<&str>,
    iterations_max: u32,
) -> Result<Option<PrivateKeyDer<'static>>, String> {
    let Some(block) = blocks(text).find(|block| block.label.ends_with("PRIVATE KEY")) else {
        return Ok(None);
    };
    let label = block.label;
    if block.base64.contains(':') {
        return Err(
            "its private key is encrypted in OpenSSL's own form; write it as PKCS#8: openssl pkcs8 -topk8"
                .to_owned(),
        );
    }
    let der = decode(block)?;
    Ok(Some(match label {
        "ENCRYPTED PRIVATE KEY" => return decrypt(&der, password, iterations_max).map(Some),
        "RSA PRIVATE KEY" => PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(der)),
        "EC PRIVATE KEY" => PrivateKeyDer::Sec1(PrivateSec1KeyDer::from(der)),
        _ => PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(der)),
    }))
}

/// Decrypts an `EncryptedPrivateKeyInfo`.
fn decrypt(
    der: &[u8],
    password: Option<&str>,
    iterations_max: u32,
) -> Result<PrivateKeyDer<'static>, String> {
    let password = password.filter(|password| !password.is_empty());
    let password = password.ok_or("its private key is encrypted: give its password as keystore_password, or as the parameter private_key_password")?;
    let damaged = "its encrypted private key is damaged";
    let mut info = Elements::of(der).within(tag::SEQUENCE).ok_or(damaged)?;
    let algorithm = info.one(tag::SEQUENCE).ok_or(damaged)?;
    let encrypted = info.one(tag::OCTETS).ok_or(damaged)?;
    let opened = pbe::decrypt(algorithm, encrypted, password, iterations_max);
    // One wrong password in 256 leaves a sound padding.
    let opened = opened.and_then(|key| match Elements::of(&key).within(tag::SEQUENCE) {
        Some(_) => Ok(key),
        None => Err(Failure::Password),
    });
    match opened {
        Ok(key) => Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key))),
        Err(Failure::Password) => Err("the password is not that of its private key".to_owned()),
        Err(Failure::Damaged) => Err(damaged.to_owned()),
        Err(Failure::Unknown(scheme)) => Err(format!(
            "its private key is encrypted in a way that is not supported ({scheme}); write it with PBES2: openssl pkcs8 -topk8 -v2 \
             aes256"
        )),
    }
}

fn decode(block: Block<'_>) -> Result<Vec<u8>, String> {
    base64(block.base64).ok_or_else(|| format!("the block {} is not Base64", block.label))
}

/// Decodes Base64, without whitespace.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count, mut padding) = (0_u32, 0_u32, 0_u32);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padding += 1;
                continue;
            }
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        bits = bits << 6 | u32::from(value);
        count += 1;
        if count.is_multiple_of(4) {
            bytes.extend_from_slice(bits.to_be_bytes().get(1..)?);
            bits = 0;
        }
    }
    match (count % 4, padding) {
        (0, 0) => {}
        (2, 0 | 2) => bytes.push((bits >> 4) as u8),
        (3, 0 | 1) => bytes.extend_from_slice(&[(bits >> 10) as u8, (bits >> 2) as u8]),
        _ => return None,
    }
    (!bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_and_without_padding_and_nothing_else_is() {
        for (text, bytes) in
            [("TQ==", "M"), ("TWE=", "Ma"), ("TWFu", "Man"), ("TWFu\r\nTWE", "ManMa"), ("T Q", "M")]
        {
            assert_eq!(base64(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        for text in ["", "T", "TQ=", "TQ==TQ==", "T*==", "TWFu=", "\u{e4}", "===="] {
            assert_eq!(base64(text), None, "{text}");
        }
    }

    #[test]
    fn blocks_are_found_between_other_text_and_half_a_block_is_none() {
        let text = "subject=x\n-----BEGIN TRUSTED CERTIFICATE-----\nTWFu\n-----END TRUSTED CERTIFICATE-----\n\
                    -----BEGIN PRIVATE KEY-----\nTWE=\n-----END PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\nTWFu";
        assert_eq!(certificates(text).unwrap().len(), 1);
        assert_eq!(private_key(text, None).unwrap().unwrap().secret_der(), b"Ma");
        assert!(private_key("-----BEGIN PRIVATE KEY-----", None).unwrap().is_none());
        let cut = "-----BEGIN PRIVATE KEY-----\nTWE=\n-----BEGIN CERTIFICATE-----\nTWFu\n-----END CERTIFICATE-----\n";
        assert!(certificates(cut).unwrap().len() == 1 && private_key(cut, None).unwrap().is_none());
        for text in ["", "-----BEGIN ", "-----BEGIN -----", "-----BEGIN CERTIFICATE----------END "] {
            assert!(certificates(text).is_err() || certificates(text).unwrap().is_empty(), "{text}");
        }
    }
}
