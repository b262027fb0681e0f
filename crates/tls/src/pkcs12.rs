//! Reads and writes key stores of the type PKCS#12 (RFC 7292), as Java and OpenSSL write them.
//!
//! A store is a list of contents, each plain or encrypted by the password; a content is a list of bags, each with a key, an
//! encrypted key or a certificate. A key and its certificate have the same attribute `localKeyId`. A keyed digest covers the
//! list. Java marks a certificate that is trusted with an attribute of its own, and trusts no other one but those of keys. OpenSSL
//! writes no such mark, so certificates without it are kept apart: whoever reads a trust store decides.

use std::num::NonZeroU32;

use ring::{digest, hmac};

use crate::der::{self, Elements, tag};
use crate::pbe::{self, Purpose, derive_pkcs12, password_of_pkcs12};
use crate::stored::{Store, StoreError, StoredKey, chain_of};

/// `1.2.840.113549.1.7.1`, plain data.
const DATA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01];
/// `1.2.840.113549.1.7.6`, encrypted data.
const ENCRYPTED_DATA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x06];
/// `1.2.840.113549.1.12.10.1`, before the number of a kind of bag.
const BAG: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C, 0x0A, 0x01];
const KEY_BAG: u8 = 1;
const ENCRYPTED_KEY_BAG: u8 = 2;
const CERTIFICATE_BAG: u8 = 3;
const BAG_OF_BAGS: u8 = 6;
/// `1.2.840.113549.1.9.22.1`, a certificate of X.509.
const X509: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x16, 0x01];
/// `1.2.840.113549.1.9.21`, localKeyId.
const LOCAL_KEY_ID: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x15];
/// `1.2.840.113549.1.9.20`, friendlyName: Java's alias.
const FRIENDLY_NAME: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x14];
/// `2.16.840.1.113894.746875.1.1`, Java's mark of a trusted certificate, and `2.5.29.37.0`, trusted for every purpose.
const TRUSTED: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x86, 0xF9, 0x66, 0xAD, 0xCA, 0x7B, 0x01, 0x01];
const ANY_PURPOSE: &[u8] = &[0x55, 0x1D, 0x25, 0x00];
/// `1.3.14.3.2.26`, SHA-1; `2.16.840.1.101.3.4.2`, before the number of a digest of the family SHA-2.
const SHA1: &[u8] = &[0x2B, 0x0E, 0x03, 0x02, 0x1A];
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
const SHA256_NUMBER: u8 = 1;
const VERSION: u32 = 3;
/// How deep bags may lie in bags.
const DEPTH_MAX: usize = 4;
/// What Java uses.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(10_000).expect("not zero");

/// What has been found so far.
struct Found<'p> {
    password: Option<&'p str>,
    iterations_max: u32,
    /// The first key as PKCS#8, once there is one and if there is a password.
    key: Result<Option<Vec<u8>>, StoreError>,
    /// The attributes of all keys.
    keys: Vec<Attributes>,
    certificates: Vec<(Vec<u8>, Attributes)>,
}

/// The attributes of a bag.
#[derive(Clone, Default)]
struct Attributes {
    key_id: Option<Vec<u8>>,
    name: Option<Vec<u8>>,
    is_trusted: bool,
}

/// The id that Java gives to a store's first key, and to the first certificate behind it in a list of bags, where they have none
/// (`PKCS12KeyStore.loadSafeContents`).
const FIRST_ID: &[u8] = b"01";

/// Reads a store. Without a password its digest is not checked, and what is encrypted is tried with an empty one.
pub fn read(bytes: &[u8], password: Option<&str>, iterations_max: u32) -> Result<Store, StoreError> {
    let mut store = Elements::of(bytes).within(tag::SEQUENCE).ok_or(StoreError::NoStore)?;
    if store.number() != Some(VERSION) {
        return Err(StoreError::NoStore);
    }
    let contents = content(&mut store).and_then(|(kind, contents)| (kind == DATA).then_some(contents));
    let contents = contents
        .and_then(|mut contents| contents.one(tag::OCTETS))
        .ok_or(StoreError::Damaged("list of contents; one that is signed by a key is not supported"))?;
    let mac = store.within(tag::SEQUENCE);
    let is_whole = match (mac, password) {
        (Some(mac), Some(password)) => check(mac, contents, password, iterations_max)?,
        (None, Some(_)) | (_, None) => true,
    };
    let mut found =
        Found { password, iterations_max, key: Ok(None), keys: Vec::new(), certificates: Vec::new() };
    let read = found.contents(contents);
    match is_whole {
        true => read.map(|()| found.into_store()),
        false => Err(StoreError::Password),
    }
}

/// The kind and the content of a `ContentInfo`.
fn content<'a>(elements: &mut Elements<'a>) -> Option<(&'a [u8], Elements<'a>)> {
    let mut info = elements.within(tag::SEQUENCE)?;
    Some((info.one(tag::OBJECT_ID)?, info.within(tag::CONTEXT_0)?))
}

/// Whether the keyed digest is that of the contents.
fn check(
    mut mac: Elements<'_>,
    contents: &[u8],
    password: &str,
    iterations_max: u32,
) -> Result<bool, StoreError> {
    let damaged = StoreError::Damaged("keyed digest");
    let mut info = mac.within(tag::SEQUENCE).ok_or(damaged.clone())?;
    let id = info.within(tag::SEQUENCE).and_then(|mut algorithm| algorithm.one(tag::OBJECT_ID));
    let id = id.ok_or(damaged.clone())?;
    let expected = info.one(tag::OCTETS).ok_or(damaged.clone())?;
    let salt = mac.one(tag::OCTETS).ok_or(damaged.clone())?;
    let iterations = if mac.is_empty() { 1 } else { mac.number().ok_or(damaged)? };
    if iterations > iterations_max {
        return Err(StoreError::Unsupported(format!("more than {iterations_max} iterations")));
    }
    let (digest, keyed) = match (id, id.strip_prefix(SHA2)) {
        (SHA1, _) => (&digest::SHA1_FOR_LEGACY_USE_ONLY, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
        (_, Some([SHA256_NUMBER])) => (&digest::SHA256, hmac::HMAC_SHA256),
        (_, Some([2])) => (&digest::SHA384, hmac::HMAC_SHA384),
        (_, Some([3])) => (&digest::SHA512, hmac::HMAC_SHA512),
        _ => return Err(StoreError::Unsupported(pbe::dotted(id))),
    };
    let is_mac = |password: &[u8]| {
        let key = derive_pkcs12(digest, Purpose::Mac, (password, salt, iterations), digest.output_len());
        hmac::verify(&hmac::Key::new(keyed, &key), contents, expected).is_ok()
    };
    // An empty password is two zero bytes for some, and no byte for others.
    Ok(is_mac(&password_of_pkcs12(password)) || password.is_empty() && is_mac(&[]))
}

impl Found<'_> {
    fn decrypt(&self, algorithm: &[u8], encrypted: &[u8]) -> Result<Vec<u8>, StoreError> {
        let password = self.password.unwrap_or_default();
        Ok(pbe::decrypt(algorithm, encrypted, password, self.iterations_max)?)
    }

    fn contents(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let damaged = StoreError::Damaged("list of contents");
        let mut list = Elements::of(bytes).within(tag::SEQUENCE).ok_or(damaged.clone())?;
        while !list.is_empty() {
            let (kind, mut inner) = content(&mut list).ok_or(damaged.clone())?;
            match kind {
                DATA => self.bags(inner.one(tag::OCTETS).ok_or(damaged.clone())?, 0)?,
                ENCRYPTED_DATA => {
                    let bytes = self.encrypted(inner)?;
                    self.bags(&bytes, 0)?;
                }
                other => return Err(StoreError::Unsupported(pbe::dotted(other))),
            }
        }
        Ok(())
    }

    /// Decrypts an `EncryptedData`.
    fn encrypted(&self, mut inner: Elements<'_>) -> Result<Vec<u8>, StoreError> {
        let damaged = StoreError::Damaged("encrypted content");
        let mut data = inner.within(tag::SEQUENCE).ok_or(damaged.clone())?;
        data.number().ok_or(damaged.clone())?;
        let mut info = data.within(tag::SEQUENCE).ok_or(damaged.clone())?;
        if info.one(tag::OBJECT_ID).ok_or(damaged.clone())? != DATA {
            return Err(damaged);
        }
        let algorithm = info.one(tag::SEQUENCE).ok_or(damaged.clone())?;
        // `[0]`, in place of the tag of octets.
        let encrypted = info.one(tag::CONTEXT_0 & !0x20).ok_or(damaged)?;
        self.decrypt(algorithm, encrypted)
    }

    fn bags(&mut self, bytes: &[u8], depth: usize) -> Result<(), StoreError> {
        let damaged = StoreError::Damaged("list of bags");
        if depth > DEPTH_MAX {
            return Err(StoreError::Unsupported("bags in bags".to_owned()));
        }
        let mut list = Elements::of(bytes).within(tag::SEQUENCE).ok_or(damaged.clone())?;
        let mut is_first = true;
        while !list.is_empty() {
            let mut bag = list.within(tag::SEQUENCE).ok_or(damaged.clone())?;
            let kind = bag.one(tag::OBJECT_ID).ok_or(damaged.clone())?;
            let value = bag.one(tag::CONTEXT_0).ok_or(damaged.clone())?;
            let attributes = bag.within(tag::SET).map(Attributes::of).unwrap_or_default();
            match kind.strip_prefix(BAG) {
                Some([KEY_BAG]) => self.add_key(attributes, |_| Ok(value.to_vec())),
                Some([ENCRYPTED_KEY_BAG]) => {
                    let mut info = Elements::of(value).within(tag::SEQUENCE).ok_or(damaged.clone())?;
                    let algorithm = info.one(tag::SEQUENCE).ok_or(damaged.clone())?;
                    let encrypted = info.one(tag::OCTETS).ok_or(damaged.clone())?;
                    self.add_key(attributes, |found| found.decrypt(algorithm, encrypted));
                }
                Some([CERTIFICATE_BAG]) => {
                    let mut info = Elements::of(value).within(tag::SEQUENCE).ok_or(damaged.clone())?;
                    let is_x509 = info.one(tag::OBJECT_ID) == Some(X509);
                    let certificate =
                        info.within(tag::CONTEXT_0).and_then(|mut inner| inner.one(tag::OCTETS));
                    if let Some(certificate) = certificate.filter(|_| is_x509) {
                        self.add_certificate(certificate, attributes, is_first);
                    }
                }
                Some([BAG_OF_BAGS]) => self.bags(value, depth + 1)?,
                // Lists of revoked certificates, and secrets.
                _ => {}
            }
            is_first = false;
        }
        Ok(())
    }

    fn add_key(
        &mut self,
        mut attributes: Attributes,
        pkcs8: impl FnOnce(&Self) -> Result<Vec<u8>, StoreError>,
    ) {
        // Without a password only certificates are asked for.
        if self.keys.is_empty() && self.password.is_some() {
            self.key = pkcs8(self).map(Some);
        }
        if self.keys.is_empty() && attributes.key_id.is_none() {
            attributes.key_id = Some(FIRST_ID.to_vec());
        }
        self.keys.push(attributes);
    }

    fn add_certificate(&mut self, certificate: &[u8], mut attributes: Attributes, is_first: bool) {
        if is_first && self.keys.len() == 1 && attributes.key_id.is_none() {
            attributes.key_id = Some(FIRST_ID.to_vec());
        }
        self.certificates.push((certificate.to_vec(), attributes));
    }

    /// The place of a key's own certificate, found as Java does (`PKCS12KeyStore.findMatchedCertificate`): of those with the id of
    /// the key one that has its name too, else the last. Java also takes one of the same name alone, which no writer needs.
    fn own_certificate(&self, key: &Attributes) -> Option<usize> {
        key.key_id.as_ref()?;
        let certificates = self.certificates.iter().enumerate();
        let mut of_key = certificates
            .filter(|(_, (_, attributes))| attributes.key_id == key.key_id && !attributes.is_trusted);
        let named =
            of_key.clone().find(|(_, (_, attributes))| key.name.is_some() && attributes.name == key.name);
        named.or_else(|| of_key.next_back()).map(|(at, _)| at)
    }

    /// Gives the first key its certificates, and sorts out which certificates the store names.
    fn into_store(mut self) -> Store {
        let of_keys: Vec<_> = self.keys.iter().map(|key| self.own_certificate(key)).collect();
        let mut named: Vec<Vec<u8>> = Vec::new();
        let (mut unmarked, mut others) = (Vec::new(), Vec::new());
        for (at, (certificate, attributes)) in self.certificates.iter().enumerate() {
            if attributes.is_trusted || of_keys.contains(&Some(at)) {
                named.push(certificate.clone());
            } else {
                unmarked.push(certificate.clone());
            }
            if of_keys.first() != Some(&Some(at)) {
                others.push(certificate.clone());
            }
        }
        if !named.is_empty() || !self.keys.is_empty() {
            unmarked.clear();
        }
        let own = of_keys.first().copied().flatten().map(|at| self.certificates.swap_remove(at).0);
        // A server may show a certificate that only stands beside its key. Nobody trusts it for that.
        let own = own.or_else(|| (!others.is_empty()).then(|| others.remove(0)));
        let key = self.key.map(|key| {
            key.map(|pkcs8| {
                let chain = own.map(|own| chain_of(own, &mut others)).unwrap_or_default();
                StoredKey { pkcs8, chain }
            })
        });
        Store { key, named, unmarked }
    }
}

impl Attributes {
    fn of(mut attributes: Elements<'_>) -> Attributes {
        let mut found = Attributes::default();
        while let Some(mut attribute) = attributes.within(tag::SEQUENCE) {
            let Some(id) = attribute.one(tag::OBJECT_ID) else { continue };
            let mut values = attribute.within(tag::SET);
            match id {
                LOCAL_KEY_ID => {
                    found.key_id =
                        values.as_mut().and_then(|values| values.one(tag::OCTETS)).map(<[u8]>::to_vec);
                }
                FRIENDLY_NAME => {
                    found.name =
                        values.as_mut().and_then(|values| values.one(tag::BMP_TEXT)).map(<[u8]>::to_vec);
                }
                TRUSTED => found.is_trusted = true,
                _ => {}
            }
        }
        found
    }
}

/// Random bytes for a store that is written.
pub struct Random {
    /// The salts of the key, the certificates and the digest.
    pub salts: [[u8; 20]; 3],
    /// The initial vectors of the first two.
    pub ivs: [[u8; 16]; 2],
}

/// Writes a store of a key with its chain, and certificates that are trusted, as Java does since version 18.
pub fn write(key: Option<&StoredKey>, certificates: &[Vec<u8>], password: &str, random: &Random) -> Vec<u8> {
    let id = |bytes: &[u8]| der::element(tag::OBJECT_ID, bytes);
    let octets = |bytes: &[u8]| der::element(tag::OCTETS, bytes);
    let within = |bytes: &[u8]| der::element(tag::CONTEXT_0, bytes);
    let attribute = |name: &[u8], value: &[u8]| der::sequence(&[&id(name), &der::element(tag::SET, value)]);
    let name = |text: &str| {
        let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        attribute(FRIENDLY_NAME, &der::element(tag::BMP_TEXT, &text))
    };
    let bag = |kind: u8, value: &[u8], attributes: &[&[u8]]| {
        let attributes = der::element(tag::SET, &attributes.concat());
        der::sequence(&[&id(&[BAG, &[kind]].concat()), &within(value), &attributes])
    };
    let certificate_bag = |certificate: &[u8], attributes: &[&[u8]]| {
        let value = der::sequence(&[&id(X509), &within(&octets(certificate))]);
        bag(CERTIFICATE_BAG, &value, attributes)
    };
    let plain = |bytes: &[u8]| der::sequence(&[&id(DATA), &within(&octets(bytes))]);
    let key_id = attribute(LOCAL_KEY_ID, &octets(b"1"));

    let mut contents = Vec::new();
    let mut bags = Vec::new();
    if let Some(key) = key {
        let (algorithm, encrypted) =
            pbe::encrypt(&key.pkcs8, password, ITERATIONS, (&random.salts[0], &random.ivs[0]));
        let value = der::sequence(&[&algorithm, &octets(&encrypted)]);
        let of_key = bag(ENCRYPTED_KEY_BAG, &value, &[&name("key"), &key_id]);
        contents.extend(plain(&der::sequence(&[&of_key])));
        for (number, certificate) in key.chain.iter().enumerate() {
            let attributes = [name("key"), key_id.clone()];
            let attributes: Vec<&[u8]> =
                if number == 0 { attributes.iter().map(Vec::as_slice).collect() } else { vec![] };
            bags.extend(certificate_bag(certificate, &attributes));
        }
    }
    for (number, certificate) in certificates.iter().enumerate() {
        let attributes = [name(&format!("ca{number}")), attribute(TRUSTED, &id(ANY_PURPOSE))];
        bags.extend(certificate_bag(certificate, &[&attributes[0], &attributes[1]]));
    }
    let (algorithm, encrypted) =
        pbe::encrypt(&der::sequence(&[&bags]), password, ITERATIONS, (&random.salts[1], &random.ivs[1]));
    let encrypted = der::element(tag::CONTEXT_0 & !0x20, &encrypted);
    let info = der::sequence(&[&id(DATA), &algorithm, &encrypted]);
    let data = der::sequence(&[&der::number(0), &info]);
    contents.extend(der::sequence(&[&id(ENCRYPTED_DATA), &within(&data)]));

    let contents = der::sequence(&[&contents]);
    let salt = &random.salts[2];
    let password = password_of_pkcs12(password);
    let key = derive_pkcs12(&digest::SHA256, Purpose::Mac, (&password, salt, ITERATIONS.get()), 32);
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), &contents);
    let sha256 = der::sequence(&[&id(&[SHA2, &[SHA256_NUMBER]].concat()), &[tag::NULL, 0]]);
    let mac = der::sequence(&[
        &der::sequence(&[&sha256, &octets(mac.as_ref())]),
        &octets(salt),
        &der::number(ITERATIONS.get()),
    ]);
    der::sequence(&[&der::number(VERSION), &plain(&contents), &mac])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Vec<u8> {
        let key = StoredKey { pkcs8: (0..77).collect(), chain: vec![vec![0x30, 0]] };
        let random = Random { salts: [[1; 20], [2; 20], [3; 20]], ivs: [[4; 16], [5; 16]] };
        write(Some(&key), &[vec![0x30, 1, 7]], "changeit", &random)
    }

    #[test]
    fn a_store_is_read_back_with_its_password_alone() {
        let bytes = store();
        let read = read(&bytes, Some("changeit"), 10_000).unwrap();
        let key = read.key.unwrap().unwrap();
        assert_eq!((key.pkcs8, key.chain), ((0..77).collect(), vec![vec![0x30, 0]]));
        assert_eq!((read.named.len(), read.unmarked.len()), (2, 0));
        assert!(matches!(super::read(&bytes, Some("other"), 10_000), Err(StoreError::Password)));
        assert!(matches!(super::read(&bytes, Some("changeit"), 9_999), Err(StoreError::Unsupported(_))));
        for cut in 0..bytes.len() {
            assert!(super::read(&bytes[..cut], Some("changeit"), 100).is_err());
        }
    }
}
