//! Reads the key, the certificates and the trusted certificates that options name.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::options::PemParameters;
use crate::store;
use crate::stored::{Store, StoreError};
use crate::{EncryptionOptions, Factory, TlsError, pbe, pem};

/// Reads a file. Relative paths are those of the working directory.
pub type ReadFile = Arc<dyn Fn(&Path) -> io::Result<Vec<u8>> + Send + Sync>;

/// A private key, and the certificates that prove it, its own first.
pub struct KeyMaterial {
    /// The option, and the file that it names: of the key.
    pub place: String,
    pub key: PrivateKeyDer<'static>,
    /// The same of the certificates.
    pub chain_place: String,
    pub chain: Vec<CertificateDer<'static>>,
}

/// Reads files and keeps digests of them, so that a change can be noticed later. The bytes are not kept: some are keys.
pub struct Files<'a> {
    read: &'a ReadFile,
    /// The SHA-256 of what was read, in order.
    pub digests: Vec<[u8; 32]>,
    /// What the operator must know of the files, though they can be used.
    pub notices: Vec<String>,
}

impl<'a> Files<'a> {
    pub fn new(read: &'a ReadFile) -> Files<'a> {
        Files { read, digests: Vec::new(), notices: Vec::new() }
    }

    fn read(&mut self, place: &str, file: &str) -> Result<Vec<u8>, TlsError> {
        let bytes = (self.read)(file.as_ref());
        let bytes = bytes.map_err(|source| TlsError::Unreadable { place: place.to_owned(), source })?;
        let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
        self.digests.push(digest.as_ref().try_into().unwrap_or_default());
        Ok(bytes)
    }

    fn text(&mut self, place: &str, file: &str) -> Result<String, TlsError> {
        let bytes = self.read(place, file)?;
        let not_pem = "it is not PEM; for a Java key store leave ssl_context_factory out and give store_type";
        String::from_utf8(bytes).map_err(|_| TlsError::unusable(place, not_pem))
    }
}

/// Reads the server's key and certificates.
pub fn key_material(options: &EncryptionOptions, files: &mut Files<'_>) -> Result<KeyMaterial, TlsError> {
    match &options.factory {
        Factory::Pem(parameters) => pem_key(options, parameters, files),
        Factory::Stores => stored_key(options, files),
    }
}

/// Reads the certificates that clients' certificates are checked by.
pub fn trusted(
    options: &EncryptionOptions,
    files: &mut Files<'_>,
) -> Result<(String, Vec<CertificateDer<'static>>), TlsError> {
    let Factory::Pem(parameters) = &options.factory else { return stored_certificates(options, files) };
    let (place, text) = match &parameters.trusted_certificates {
        Some(text) => ("trusted_certificates".to_owned(), text.clone()),
        None => {
            let file = options.truststore.as_deref().unwrap_or_default();
            let place = format!("truststore {file}");
            let text = files.text(&place, file)?;
            (place, text)
        }
    };
    let certificates = pem::certificates(&text).map_err(|reason| TlsError::unusable(&place, reason))?;
    if pem::has_private_key(&text) && certificates.len() > 1 {
        files.notices.push(format!(
            "{place} has a private key: all its certificates are trusted, those that signed the key's own too; name a file of the \
             certificates to trust alone"
        ));
    }
    Ok((place, certificates))
}

/// Reads the lists of revoked certificates that clients' certificates must stand in as not revoked: PEM, or one list in DER.
pub fn revocation_lists(
    options: &EncryptionOptions,
    files: &mut Files<'_>,
) -> Result<Vec<Vec<u8>>, TlsError> {
    let Some(file) = options.revocation_lists.as_deref() else { return Ok(Vec::new()) };
    let place = format!("tls_client_crl {file}");
    let bytes = files.read(&place, file)?;
    let lists = match String::from_utf8(bytes) {
        Ok(text) => pem::revocation_lists(&text).map_err(|reason| TlsError::unusable(&place, reason))?,
        Err(not_text) => vec![not_text.into_bytes()],
    };
    match lists.is_empty() {
        true => Err(TlsError::unusable(&place, "it has no list of revoked certificates (X509 CRL)")),
        false => Ok(lists),
    }
}

/// A file that has a store, and its password.
struct StoreFile<'a> {
    /// `keystore` or `truststore`.
    option: &'static str,
    file: &'a str,
    password: Option<&'a str>,
}

impl StoreFile<'_> {
    fn place(&self) -> String {
        format!("{} {}", self.option, self.file)
    }

    fn read(&self, files: &mut Files<'_>) -> Result<Store, TlsError> {
        let place = self.place();
        let bytes = files.read(&place, self.file)?;
        let store = store::read(&bytes, self.password, pbe::ITERATIONS_MAX);
        store.map_err(|error| TlsError::unusable(&place, error.reason(&format!("{}_password", self.option))))
    }
}

fn stored_key(options: &EncryptionOptions, files: &mut Files<'_>) -> Result<KeyMaterial, TlsError> {
    let file = options.keystore.as_deref().unwrap_or_default();
    let password = options.keystore_password.as_deref();
    let store = StoreFile { option: "keystore", file, password };
    if password.is_none() {
        return Err(TlsError::unusable(&store.place(), "'keystore_password' must be specified"));
    }
    let unopened = |error: StoreError| TlsError::unusable(&store.place(), error.reason("keystore_password"));
    let key = store.read(files)?.key.map_err(unopened)?.ok_or_else(|| {
        TlsError::unusable(
            &store.place(),
            "it has no private key, only certificates: it may be a trust store",
        )
    })?;
    if key.chain.is_empty() {
        return Err(TlsError::unusable(&store.place(), "its private key has no certificate"));
    }
    Ok(KeyMaterial {
        place: store.place(),
        key: key.private_key(),
        chain_place: store.place(),
        chain: key.certificates(),
    })
}

/// The certificates that a trust store names, as Java decides (`TrustStoreUtil.getTrustedCerts`): of a key its own certificate alone,
/// because the authority that signed a server's certificate has signed those of others too.
///
/// A PKCS#12 store without Java's marks and without a key, as OpenSSL writes it, is empty for Java. Here all its certificates count: it
/// can be meant for nothing else.
fn stored_certificates(
    options: &EncryptionOptions,
    files: &mut Files<'_>,
) -> Result<(String, Vec<CertificateDer<'static>>), TlsError> {
    let file = options.truststore.as_deref().unwrap_or_default();
    let password = options.truststore_password.as_deref().filter(|password| !password.is_empty());
    let from = StoreFile { option: "truststore", file, password };
    let place = from.place();
    let store = from.read(files)?;
    if !store.unmarked.is_empty() {
        files.notices.push(format!(
            "{place} has no certificate that is marked as trusted, and no key: all its certificates are trusted; Java would trust \
             none of them (keytool -importcert marks them)"
        ));
    }
    let certificates = store.named.into_iter().chain(store.unmarked).map(CertificateDer::from).collect();
    Ok((place, certificates))
}

fn pem_key(
    options: &EncryptionOptions,
    parameters: &PemParameters,
    files: &mut Files<'_>,
) -> Result<KeyMaterial, TlsError> {
    let password = parameters.private_key_password.as_deref().or(options.keystore_password.as_deref());
    let (place, text) = match &parameters.private_key {
        Some(text) => ("private_key".to_owned(), text.clone()),
        None => {
            let file = options.keystore.as_deref().unwrap_or_default();
            let place = format!("keystore {file}");
            let text = files.text(&place, file)?;
            (place, text)
        }
    };
    let unusable = |reason: String| TlsError::unusable(&place, reason);
    let chain = pem::certificates(&text).map_err(unusable)?;
    if chain.is_empty() {
        return Err(unusable(
            "it has no certificate: put the server's certificate and those of its issuers there".to_owned(),
        ));
    }
    if let Some(file) = &parameters.key_file {
        let chain_place = place;
        let place = format!("private key {file}");
        let text = files.text(&place, file)?;
        let unusable = |reason: String| TlsError::unusable(&place, reason);
        let key = pem::private_key(&text, password).map_err(unusable)?;
        let key = key.ok_or_else(|| unusable("it has no private key".to_owned()))?;
        return Ok(KeyMaterial { place, key, chain_place, chain });
    }
    let key = pem::private_key(&text, password).map_err(unusable)?;
    let key = key.ok_or_else(|| {
        unusable("it has no private key: put the key and its certificates into one text".to_owned())
    })?;
    Ok(KeyMaterial { chain_place: place.clone(), place, key, chain })
}
