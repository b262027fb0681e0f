//! Reads and writes key stores of the type JKS, as `sun.security.provider.JavaKeyStore` and `KeyProtector` do.
//!
//! A store is: its magic number, a version (1 or 2), the number of entries, the entries, and a SHA-1 digest of the password,
//! the words "Mighty Aphrodite" and all bytes before. Integers are big-endian; a text is a length of 16 bits and UTF-8. An
//! entry is: a tag (1: a private key, 2: a certificate), an alias, a time in milliseconds; then, for a key, an
//! `EncryptedPrivateKeyInfo` and a chain of certificates. A certificate is a type (version 2 only) and DER with its length.
//!
//! A key is protected by a stream of SHA-1 digests, each of the password and the digest before, the first of which is a salt
//! of 20 bytes that stands before the key; behind it stands a digest of the password and the key.

use ring::digest::{self, SHA1_FOR_LEGACY_USE_ONLY};

use crate::der::{self, Elements, tag};
use crate::stored::{Store, StoreError, StoredKey};

/// The first bytes of a store.
pub const MAGIC: [u8; 4] = [0xFE, 0xED, 0xFE, 0xED];
/// The first bytes of a store of another type.
pub const MAGIC_JCEKS: [u8; 4] = [0xCE, 0xCE, 0xCE, 0xCE];

const KEY: u32 = 1;
const CERTIFICATE: u32 = 2;
const DIGEST: usize = 20;
/// `1.3.6.1.4.1.42.2.17.1.1`, the protection of keys.
const PROTECTOR: &[u8] = &[0x2B, 0x06, 0x01, 0x04, 0x01, 0x2A, 0x02, 0x11, 0x01, 0x01];
const WHITENER: &[u8] = b"Mighty Aphrodite";
const X509: &str = "X.509";

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], StoreError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(StoreError::Damaged("end of an entry"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, StoreError> {
        Ok(self.take(4)?.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }

    fn sized(&mut self) -> Result<&'a [u8], StoreError> {
        let size = self.number()?;
        self.take(usize::try_from(size).unwrap_or(usize::MAX))
    }

    fn text(&mut self) -> Result<&'a [u8], StoreError> {
        let size = self.take(2)?.iter().fold(0, |value, byte| value << 8 | usize::from(*byte));
        self.take(size)
    }

    fn certificate(&mut self, version: u32) -> Result<Vec<u8>, StoreError> {
        if version > 1 && self.text()? != X509.as_bytes() {
            return Err(StoreError::Damaged("certificate of X.509"));
        }
        Ok(self.sized()?.to_vec())
    }
}

/// Reads a store. Without a password its digest is not checked, and private keys are passed over.
pub fn read(bytes: &[u8], password: Option<&str>) -> Result<Store, StoreError> {
    let (body, digest) =
        bytes.split_at_checked(bytes.len().saturating_sub(DIGEST)).ok_or(StoreError::Damaged("digest"))?;
    let is_whole = password.is_none_or(|password| seal(password, body) == digest);
    let read = read_entries(body, password.filter(|_| is_whole));
    match is_whole {
        true => read,
        // Damage is most often a wrong password, as the digest covers both.
        false => Err(read.err().unwrap_or(StoreError::Password)),
    }
}

fn read_entries(body: &[u8], password: Option<&str>) -> Result<Store, StoreError> {
    let mut reader = Reader(body.strip_prefix(&MAGIC).ok_or(StoreError::NoStore)?);
    let version = reader.number()?;
    if !matches!(version, 1 | 2) {
        return Err(StoreError::Damaged("known version"));
    }
    let mut store = Store { key: Ok(None), named: Vec::new(), unmarked: Vec::new() };
    for _ in 0..reader.number()? {
        let tag = reader.number()?;
        let (_alias, _time) = (reader.text()?, reader.take(8)?);
        match tag {
            CERTIFICATE => store.named.push(reader.certificate(version)?),
            KEY => {
                let protected = reader.sized()?;
                let mut chain = Vec::new();
                for _ in 0..reader.number()? {
                    chain.push(reader.certificate(version)?);
                }
                // Java trusts a key's own certificate, and none of its issuers (`TrustStoreUtil.getTrustedCerts`).
                store.named.extend(chain.first().cloned());
                if let (Some(password), Ok(None)) = (password, &store.key) {
                    let key = unprotect(protected, password);
                    store.key = key.map(|pkcs8| Some(StoredKey { pkcs8, chain }));
                }
            }
            _ => return Err(StoreError::Damaged("known kind of entry")),
        }
    }
    match reader.0.is_empty() {
        true => Ok(store),
        false => Err(StoreError::Damaged("digest behind the last entry")),
    }
}

/// Writes a store of a key with its chain, and certificates that are trusted.
pub fn write(
    key: Option<(&StoredKey, [u8; DIGEST])>,
    certificates: &[Vec<u8>],
    password: &str,
    time_ms: u64,
) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let count = usize::from(key.is_some()) + certificates.len();
    put_number(&mut out, 2);
    put_number(&mut out, count);
    let put_head = |out: &mut Vec<u8>, tag: u32, alias: &str| {
        out.extend_from_slice(&tag.to_be_bytes());
        put_text(out, alias);
        out.extend_from_slice(&time_ms.to_be_bytes());
    };
    let put_certificate = |out: &mut Vec<u8>, certificate: &[u8]| {
        put_text(out, X509);
        put_number(out, certificate.len());
        out.extend_from_slice(certificate);
    };
    if let Some((key, salt)) = key {
        put_head(&mut out, KEY, "key");
        let protected = protect(&key.pkcs8, password, salt);
        put_number(&mut out, protected.len());
        out.extend_from_slice(&protected);
        put_number(&mut out, key.chain.len());
        key.chain.iter().for_each(|certificate| put_certificate(&mut out, certificate));
    }
    for (number, certificate) in certificates.iter().enumerate() {
        put_head(&mut out, CERTIFICATE, &format!("ca{number}"));
        put_certificate(&mut out, certificate);
    }
    let digest = seal(password, &out);
    out.extend_from_slice(&digest);
    out
}

fn put_number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// A password as bytes: UTF-16.
fn utf16(password: &str) -> Vec<u8> {
    password.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

fn sha1(parts: &[&[u8]]) -> Vec<u8> {
    let mut context = digest::Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().to_vec()
}

/// The digest of a store.
fn seal(password: &str, body: &[u8]) -> Vec<u8> {
    sha1(&[&utf16(password), WHITENER, body])
}

/// Applies the stream that begins with a salt.
fn xor(bytes: &[u8], password: &[u8], salt: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut stream = salt.to_vec();
    for part in bytes.chunks(DIGEST) {
        stream = sha1(&[password, &stream]);
        out.extend(part.iter().zip(&stream).map(|(byte, other)| byte ^ other));
    }
    out
}

fn unprotect(protected: &[u8], password: &str) -> Result<Vec<u8>, StoreError> {
    let damaged = StoreError::Damaged("protected key");
    let mut info = Elements::of(protected).within(tag::SEQUENCE).ok_or(damaged.clone())?;
    let id = info.within(tag::SEQUENCE).and_then(|mut algorithm| algorithm.one(tag::OBJECT_ID));
    if id.ok_or(damaged.clone())? != PROTECTOR {
        return Err(damaged);
    }
    let bytes = info.one(tag::OCTETS).ok_or(damaged.clone())?;
    let (salt, bytes) = bytes.split_at_checked(DIGEST).ok_or(damaged.clone())?;
    let (bytes, check) = bytes.split_at_checked(bytes.len().saturating_sub(DIGEST)).ok_or(damaged)?;
    let password = utf16(password);
    let key = xor(bytes, &password, salt);
    match sha1(&[&password, &key]) == check {
        true => Ok(key),
        false => Err(StoreError::Unsupported("the password of the key is not that of the store".to_owned())),
    }
}

fn protect(key: &[u8], password: &str, salt: [u8; DIGEST]) -> Vec<u8> {
    let password = utf16(password);
    let bytes = [&salt[..], &xor(key, &password, &salt), &sha1(&[&password, key])].concat();
    let algorithm = der::sequence(&[&der::element(tag::OBJECT_ID, PROTECTOR), &[tag::NULL, 0]]);
    der::sequence(&[&algorithm, &der::element(tag::OCTETS, &bytes)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Vec<u8> {
        let key = StoredKey { pkcs8: (0..77).collect(), chain: vec![vec![0x30, 0], vec![0x30, 1, 5]] };
        write(Some((&key, [9; DIGEST])), &[vec![0x30, 1, 7]], "changeit", 1)
    }

    #[test]
    fn a_store_is_read_back_with_its_password_alone() {
        let bytes = store();
        let read = read(&bytes, Some("changeit")).unwrap();
        let key = read.key.unwrap().unwrap();
        assert_eq!((key.pkcs8, key.chain.len()), ((0..77).collect(), 2));
        assert_eq!(read.named, [vec![0x30, 0], vec![0x30, 1, 7]], "not the key's issuer");
        assert!(matches!(super::read(&bytes, Some("other")), Err(StoreError::Password)));
        let open = super::read(&bytes, None).unwrap();
        assert!(open.key.unwrap().is_none() && open.named.len() == 2);
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        let bytes = store();
        for at in 0..bytes.len() {
            assert!(read(&bytes[..at], Some("changeit")).is_err());
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(read(&changed, Some("changeit")).is_err());
            let _no_panic = read(&changed, None);
        }
    }
}
