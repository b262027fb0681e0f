//! Cassandra's `client_encryption_options`, as its `EncryptionOptions` holds them.
//!
//! Passwords and keys are not part of the `Debug` text.

use std::fmt;

/// The options, with Cassandra's defaults.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionOptions {
    /// Whether clients must use TLS.
    pub enabled: bool,
    /// Whether clients may use TLS and may do without; `None`: they may if TLS is not enabled and there is a key store.
    pub optional: Option<bool>,
    /// File of the server's key and certificates.
    pub keystore: Option<String>,
    /// Password of that file.
    pub keystore_password: Option<String>,
    /// File of the certificates that clients' certificates are checked by.
    pub truststore: Option<String>,
    /// Password of that file.
    pub truststore_password: Option<String>,
    /// The former name of a list of one protocol; `TLS` for all.
    pub protocol: Option<String>,
    /// The protocols that are accepted; `None`: those that are safe.
    pub accepted_protocols: Option<Vec<String>>,
    /// The cipher suites by Java's names; empty: those that are safe.
    pub cipher_suites: Vec<String>,
    /// The format of both files: `JKS` or `PKCS12`. Files of PEM have a factory of their own.
    pub store_type: String,
    /// Whether clients must show a certificate.
    pub client_certificates: ClientCertificates,
    /// Whether a client's certificate must be for the address that it connects from.
    pub require_endpoint_verification: bool,
    /// File of lists of revoked certificates (PEM), for clients' certificates. Not an option of Cassandra.
    pub revocation_lists: Option<String>,
    /// Where keys and certificates come from.
    pub factory: Factory,
}

/// `require_client_auth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Clients are not asked for a certificate.
    NotAsked,
    /// A client may show a certificate, which must then be trusted.
    Optional,
    /// Clients without a trusted certificate are refused.
    Required,
}

/// `ssl_context_factory`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Factory {
    /// `DefaultSslContextFactory`: key stores of Java.
    Stores,
    /// `PEMBasedSslContextFactory`: PEM in files or in the options.
    Pem(PemParameters),
}

/// The `parameters` of `PEMBasedSslContextFactory`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PemParameters {
    /// A private key and its certificates.
    pub private_key: Option<String>,
    /// The password of the key.
    pub private_key_password: Option<String>,
    /// Certificates to check clients by.
    pub trusted_certificates: Option<String>,
    /// A file of the private key, where `keystore` has only the certificates. Not an option of Cassandra.
    pub key_file: Option<String>,
}

impl Default for EncryptionOptions {
    fn default() -> EncryptionOptions {
        EncryptionOptions {
            enabled: false,
            optional: None,
            keystore: Some("conf/.keystore".to_owned()),
            keystore_password: None,
            truststore: Some("conf/.truststore".to_owned()),
            truststore_password: None,
            protocol: None,
            accepted_protocols: None,
            cipher_suites: Vec::new(),
            store_type: "JKS".to_owned(),
            client_certificates: ClientCertificates::NotAsked,
            require_endpoint_verification: false,
            revocation_lists: None,
            factory: Factory::Stores,
        }
    }
}

impl EncryptionOptions {
    /// Whether TLS is enabled, and connections in the clear are not served.
    pub fn refuses_clear(&self) -> bool {
        self.enabled && self.optional != Some(true)
    }
}

impl fmt::Debug for EncryptionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptionOptions")
            .field("enabled", &self.enabled)
            .field("optional", &self.optional)
            .field("keystore", &self.keystore)
            .field("truststore", &self.truststore)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PemParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PemParameters").finish_non_exhaustive()
    }
}
