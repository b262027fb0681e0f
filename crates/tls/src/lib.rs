//! TLS: keys and certificates from files, the settings of both sides, and certificates for a test. Without sockets.
//!
//! `options` holds Cassandra's `client_encryption_options`; `source` reads what they name, by way of `pem` and
//! of `store`, whose formats are in `pkcs12` and `jks`, both over `pbe` and `der`. `server`
//! makes the settings of a server's ports and replaces them when files change; `client` makes those of a client,
//! `connector` its sessions, and `failures` says why one failed. `protocols` knows Java's names of protocols and cipher
//! suites. `trust` decides whether a peer's certificate is trusted. `authority` makes certificates for a test, and `forms` stores of them.

mod authority;
mod client;
mod connector;
pub mod decode;
mod der;
mod error;
mod failures;
mod forms;
mod jks;
mod options;
mod pbe;
mod pem;
mod pkcs12;
mod protocols;
mod server;
mod source;
mod store;
mod stored;
mod trust;
mod x509;

pub use authority::{Authority, CertificateRequest, MadeCertificate};
pub use client::{ClientOptions, ServerTrust, client_config, server_name};
pub use connector::TlsClient;
pub use error::TlsError;
pub use forms::{StoreSeal, Stores, key_store, trust_store};
pub use options::{ClientCertificates, EncryptionOptions, Factory, PemParameters};
pub use protocols::session_names;
pub use rustls;
pub use server::{Policy, Reloaded, ServerTls};
pub use source::ReadFile;
pub use x509::{common_name, is_for_address, uris};
