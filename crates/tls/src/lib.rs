//! TLS: keys and certificates from files, the settings of both sides, and certificates for a test. Without sockets.
//!
//! `options` holds Cassandra's `client_encryption_options`; `source` reads what they name, by way of `pem`. `server`
//! makes the settings of a server's ports and replaces them when files change; `client` makes those of a client.
//! `protocols` knows Java's names of protocols and cipher suites. `trust` decides whether a peer's certificate is
//! trusted. `authority` makes certificates for a test.

mod authority;
mod client;
mod der;
mod error;
mod options;
mod pem;
mod protocols;
mod server;
mod source;
mod trust;
mod x509;

pub use authority::{Authority, CertificateRequest, MadeCertificate};
pub use client::{ClientOptions, ServerTrust, client_config, server_name};
pub use error::TlsError;
pub use options::{ClientCertificates, EncryptionOptions, Factory, PemParameters};
pub use protocols::session_names;
pub use rustls;
pub use server::{Policy, Reloaded, ServerTls};
pub use source::ReadFile;
pub use x509::is_for_address;
