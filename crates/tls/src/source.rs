//! Reads the key, the certificates and the trusted certificates that options name.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::options::PemParameters;
use crate::{EncryptionOptions, Factory, TlsError, pem};

/// Reads a file. Relative paths are those of the working directory.
pub type ReadFile = Arc<dyn Fn(&Path) -> io::Result<Vec<u8>> + Send + Sync>;

/// A private key, and the certificates that prove it, its own first.
pub struct KeyMaterial {
    /// The option, and the file that it names.
    pub place: String,
    pub key: PrivateKeyDer<'static>,
    pub chain: Vec<CertificateDer<'static>>,
}

/// Reads files and keeps their bytes, so that a change can be noticed later.
pub struct Files<'a> {
    read: &'a ReadFile,
    /// What was read, in order.
    pub contents: Vec<Vec<u8>>,
}

impl<'a> Files<'a> {
    pub fn new(read: &'a ReadFile) -> Files<'a> {
        Files { read, contents: Vec::new() }
    }

    fn read(&mut self, place: &str, file: &str) -> Result<Vec<u8>, TlsError> {
        let bytes = (self.read)(file.as_ref());
        let bytes = bytes.map_err(|source| TlsError::Unreadable { place: place.to_owned(), source })?;
        self.contents.push(bytes.clone());
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
        Factory::Stores => Err(store(options)),
    }
}

/// Reads the certificates that clients' certificates are checked by.
pub fn trusted(
    options: &EncryptionOptions,
    files: &mut Files<'_>,
) -> Result<(String, Vec<CertificateDer<'static>>), TlsError> {
    let Factory::Pem(parameters) = &options.factory else { return Err(store(options)) };
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
    Ok((place, certificates))
}

fn store(options: &EncryptionOptions) -> TlsError {
    let file = options.keystore.as_deref().unwrap_or_default();
    TlsError::unusable(
        &format!("keystore {file}"),
        "key stores of Java are not built yet; use PEM: ssl_context_factory: {class_name: PEMBasedSslContextFactory}",
    )
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
        let place = format!("private key {file}");
        let text = files.text(&place, file)?;
        let unusable = |reason: String| TlsError::unusable(&place, reason);
        let key = pem::private_key(&text, password).map_err(unusable)?;
        let key = key.ok_or_else(|| unusable("it has no private key".to_owned()))?;
        return Ok(KeyMaterial { place, key, chain });
    }
    let key = pem::private_key(&text, password).map_err(unusable)?;
    let key = key.ok_or_else(|| {
        unusable("it has no private key: put the key and its certificates into one text".to_owned())
    })?;
    Ok(KeyMaterial { place, key, chain })
}
