//! What a key store of Java holds, and why one cannot be read. `jks` and `pkcs12` read and write their formats.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::pbe::Failure;
use crate::x509;

/// The contents of a store.
pub struct Store {
    /// The first private key, as PKCS#8, with its chain. The error of a key that cannot be opened concerns only a reader that
    /// needs the key: a trust store is read for its certificates.
    pub key: Result<Option<StoredKey>, StoreError>,
    /// Certificates that the store names: its entries of trusted certificates, and of each key its own certificate.
    pub named: Vec<Vec<u8>>,
    /// Certificates of a PKCS#12 store that have no mark and belong to no key, if the store names none and has no key.
    pub unmarked: Vec<Vec<u8>>,
}

/// A private key of a store.
pub struct StoredKey {
    pub pkcs8: Vec<u8>,
    /// Its certificate and those of its issuers, in this order.
    pub chain: Vec<Vec<u8>>,
}

/// Why a store cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The file is neither a JKS nor a PKCS#12 store.
    NoStore,
    /// The password is another one.
    Password,
    /// The bytes do not follow the format. What they should be.
    Damaged(&'static str),
    /// The file uses what is not supported.
    Unsupported(String),
}

impl StoreError {
    /// The reason, with the name of the option that has the password.
    pub fn reason(&self, option: &str) -> String {
        match self {
            StoreError::NoStore => {
                "it is neither a PKCS#12 nor a JKS store; for PEM give ssl_context_factory: \
                                    {class_name: PEMBasedSslContextFactory}"
                    .to_owned()
            }
            StoreError::Password => format!("{option} is not its password, or the file was changed"),
            StoreError::Damaged(what) => format!("it is damaged: no {what}"),
            StoreError::Unsupported(what) => format!(
                "it is encrypted in a way that is not supported ({what}); write it again with a current keytool or openssl"
            ),
        }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> StoreError {
        match failure {
            Failure::Password => StoreError::Password,
            Failure::Damaged => StoreError::Damaged("parameters of an encryption"),
            Failure::Unknown(what) => StoreError::Unsupported(what),
        }
    }
}

impl StoredKey {
    /// The key for rustls.
    pub fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.pkcs8.clone()))
    }

    /// The certificates for rustls.
    pub fn certificates(&self) -> Vec<CertificateDer<'static>> {
        self.chain.iter().map(|certificate| CertificateDer::from(certificate.clone())).collect()
    }
}

/// The chain of a certificate: itself, its issuer, and so on, as far as the store has them. Takes them out of `others`.
pub fn chain_of(own: Vec<u8>, others: &mut Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut chain = vec![own];
    // A loop ends because each certificate is taken out once.
    while let Some(last) = chain.last() {
        let Some((issuer, subject)) = x509::issuer_and_subject(last) else { break };
        if issuer == subject {
            break;
        }
        let is_issuer =
            |other: &Vec<u8>| x509::issuer_and_subject(other).is_some_and(|(_, name)| name == issuer);
        let Some(at) = others.iter().position(is_issuer) else { break };
        let next = others.swap_remove(at);
        chain.push(next);
    }
    chain
}
