//! The sessions of a client, from the settings that `client` makes.

use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection};

use crate::client::{ClientOptions, client_config, server_name};
use crate::source::ReadFile;
use crate::{TlsError, failures};

/// Makes the sessions of a client.
#[derive(Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    options: ClientOptions,
}

impl std::fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsClient").field("options", &self.options).finish_non_exhaustive()
    }
}

impl TlsClient {
    /// Reads all that the options name.
    ///
    /// # Errors
    /// A file cannot be read or used. The text names it.
    pub fn new(options: ClientOptions, read: &ReadFile) -> Result<TlsClient, TlsError> {
        Ok(TlsClient { config: client_config(&options, read)?, options })
    }

    /// Begins a session with the server of this host.
    ///
    /// # Errors
    /// It is no name of a host.
    pub fn session(&self, host: &str) -> Result<ClientConnection, TlsError> {
        let session = ClientConnection::new(Arc::clone(&self.config), server_name(host)?);
        session.map_err(|error| TlsError::unusable(host, error.to_string()))
    }

    /// The settings, for a session that is made elsewhere.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Whether the client shows a certificate.
    pub fn shows_certificate(&self) -> bool {
        self.options.certificate.is_some()
    }

    /// Says why a session with this host has failed, and what to do.
    pub fn reason(&self, host: &str, error: &rustls::Error) -> String {
        failures::reason(&self.options, host, error)
    }
}
