//! Writes key stores and trust stores of Java, in both formats, for certificates that `authority` has made.

use crate::authority::MadeCertificate;
use crate::stored::StoredKey;
use crate::{jks, pkcs12};

/// A store in both formats.
pub struct Stores {
    /// As PKCS#12.
    pub pkcs12: Vec<u8>,
    /// As JKS.
    pub jks: Vec<u8>,
}

/// What protects and dates a store.
pub struct StoreSeal<'a> {
    /// The password, of the store and of its key.
    pub password: &'a str,
    /// The time of its entries, in milliseconds since 1970.
    pub time_ms: u64,
    /// Fills bytes with randomness.
    pub fill: &'a dyn Fn(&mut [u8]),
}

/// A key store: a certificate with its key, and the certificate of its authority.
pub fn key_store(made: &MadeCertificate, authority: &MadeCertificate, seal: &StoreSeal<'_>) -> Stores {
    let chain = vec![made.certificate_der.clone(), authority.certificate_der.clone()];
    stores(Some(&StoredKey { pkcs8: made.key_der.clone(), chain }), &[], seal)
}

/// A trust store: the certificate of an authority.
pub fn trust_store(authority: &MadeCertificate, seal: &StoreSeal<'_>) -> Stores {
    stores(None, std::slice::from_ref(&authority.certificate_der), seal)
}

fn stores(key: Option<&StoredKey>, trusted: &[Vec<u8>], seal: &StoreSeal<'_>) -> Stores {
    let mut random = pkcs12::Random { salts: [[0; 20]; 3], ivs: [[0; 16]; 2] };
    random.salts.iter_mut().for_each(|salt| (seal.fill)(salt));
    random.ivs.iter_mut().for_each(|iv| (seal.fill)(iv));
    let mut salt = [0; 20];
    (seal.fill)(&mut salt);
    Stores {
        pkcs12: pkcs12::write(key, trusted, seal.password, &random),
        jks: jks::write(key.map(|key| (key, salt)), trusted, seal.password, seal.time_ms),
    }
}
