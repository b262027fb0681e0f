//! The TLS settings of a server's ports, and their replacement when files change.
//!
//! Connections keep the settings that they began with; a new connection gets the current ones.

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::sign::CertifiedKey;

use crate::options::ClientCertificates;
use crate::source::{Files, KeyMaterial, ReadFile, key_material, revocation_lists, trusted};
use crate::trust::TrustStore;
use crate::x509::{date_text, validity};
use crate::{EncryptionOptions, Factory, TlsError, protocols};

/// Sessions of clients that come back, kept so that their next handshake is shorter.
const SESSIONS_KEPT: usize = 1024;

/// Whether a port takes TLS, or talks in the clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The first byte of each connection decides.
    Optional,
    /// TLS alone.
    Required,
}

/// The settings of a server's ports.
pub struct ServerTls {
    options: EncryptionOptions,
    read: ReadFile,
    policy: Policy,
    current: ArcSwap<Current>,
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").field("options", &self.options).finish_non_exhaustive()
    }
}

struct Current {
    config: Arc<ServerConfig>,
    /// The digests of the files.
    digests: Vec<[u8; 32]>,
    /// When the server's certificate ends, in seconds since 1970.
    until: i64,
    /// Why the server's certificate is not valid now, if it is not.
    untimely: Option<TlsError>,
    dropped: Vec<String>,
    notices: Vec<String>,
}

/// What a look at the files has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// No file has changed.
    Unchanged,
    /// New connections use the new files.
    Replaced,
}

impl ServerTls {
    /// Reads all that the options name. `now_s`: seconds since 1970. `None` if the options ask for no TLS.
    ///
    /// # Errors
    /// A file cannot be read or used. The text names it.
    pub fn load(
        options: &EncryptionOptions,
        read: ReadFile,
        now_s: i64,
    ) -> Result<Option<ServerTls>, TlsError> {
        let Some(policy) = policy(options, &read) else { return Ok(None) };
        let current = ArcSwap::from_pointee(build(options, &read, now_s)?);
        Ok(Some(ServerTls { options: options.clone(), read, policy, current }))
    }

    /// Whether connections in the clear are served too.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Whether a client's certificate must be for the address that it connects from.
    pub fn verifies_endpoints(&self) -> bool {
        self.options.require_endpoint_verification && self.asks_certificates() != ClientCertificates::NotAsked
    }

    /// Whether clients are asked for a certificate.
    pub fn asks_certificates(&self) -> ClientCertificates {
        self.options.client_certificates
    }

    /// The settings of a new connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.load().config)
    }

    /// Names of protocols and cipher suites that the options name and that are not supported.
    pub fn dropped(&self) -> Vec<String> {
        self.current.load().dropped.clone()
    }

    /// What the operator must know of the files, a line each, though they are used.
    pub fn notices(&self) -> Vec<String> {
        self.current.load().notices.clone()
    }

    /// The last day of the server's certificate.
    pub fn valid_until(&self) -> String {
        date_text(self.current.load().until)
    }

    /// Reads the files again. If one has changed, new connections use what it has now. `force`: even if none has.
    ///
    /// # Errors
    /// A file cannot be read or used; the settings stay as they are.
    pub fn reload(&self, now_s: i64, force: bool) -> Result<Reloaded, TlsError> {
        let mut files = Files::new(&self.read);
        let changed = match self.read_all(&mut files) {
            Ok(()) => files.digests != self.current.load().digests,
            // The error is found again below.
            Err(_) => true,
        };
        if !changed && !force {
            return Ok(Reloaded::Unchanged);
        }
        let mut new = build(&self.options, &self.read, now_s)?;
        // A certificate of another time takes the place of none that is valid.
        if now_s <= self.current.load().until
            && let Some(untimely) = new.untimely.take()
        {
            return Err(untimely);
        }
        self.current.store(Arc::new(new));
        Ok(Reloaded::Replaced)
    }

    fn read_all(&self, files: &mut Files<'_>) -> Result<(), TlsError> {
        key_material(&self.options, files)?;
        if self.options.client_certificates != ClientCertificates::NotAsked {
            trusted(&self.options, files)?;
            revocation_lists(&self.options, files)?;
        }
        Ok(())
    }
}

/// `EncryptionOptions.applyConfig`: TLS that is not enabled is optional where there is a key.
fn policy(options: &EncryptionOptions, read: &ReadFile) -> Option<Policy> {
    let has_key = || match &options.factory {
        Factory::Pem(parameters) if parameters.private_key.is_some() => true,
        // A file that is there and cannot be read is an error, which `build` finds.
        _ => options.keystore.as_deref().is_some_and(|file| {
            read(file.as_ref()).map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true)
        }),
    };
    let is_optional = options.optional.unwrap_or_else(|| !options.enabled && has_key());
    match (is_optional, options.enabled) {
        (true, _) => Some(Policy::Optional),
        (false, true) => Some(Policy::Required),
        (false, false) => None,
    }
}

fn build(options: &EncryptionOptions, read: &ReadFile, now_s: i64) -> Result<Current, TlsError> {
    let unusable = |reason: String| TlsError::unusable("client_encryption_options", reason);
    let mut dropped = Vec::new();
    let (provider, versions) = protocols::choose(options, &mut dropped).map_err(unusable)?;
    let provider = Arc::new(provider);
    let mut files = Files::new(read);
    let material = key_material(options, &mut files)?;
    let (until, untimely) = check_validity(&material, now_s)?;
    let key = certified(material, &provider)?;
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&versions);
    let builder = builder.map_err(|error| unusable(error.to_string()))?;
    let builder = match options.client_certificates {
        ClientCertificates::NotAsked => builder.with_no_client_auth(),
        asked => {
            let (place, certificates) = trusted(options, &mut files)?;
            let lists = revocation_lists(options, &mut files)?;
            let is_required = asked == ClientCertificates::Required;
            let verifier = TrustStore::new(certificates)
                .and_then(|store| store.client_verifier(&provider, is_required, lists))
                .map_err(|reason| TlsError::unusable(&place, reason))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(key)));
    if options.client_certificates == ClientCertificates::NotAsked {
        config.session_storage = ServerSessionMemoryCache::new(SESSIONS_KEPT);
    } else {
        // A resumed session does not look at the client's certificate again, which may have expired or been revoked meanwhile.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    let Files { digests, mut notices, .. } = files;
    notices.extend(untimely.as_ref().map(TlsError::to_string));
    Ok(Current { config: Arc::new(config), digests, until, untimely, dropped, notices })
}

/// Returns when the server's certificate ends, and what the operator must know if it is not valid now. It is used all the
/// same, as by Cassandra (`FileBasedSslContextFactory.checkExpiredCerts`): clients that do not check it go on, and a server
/// that restarts serves as it did before.
///
/// # Errors
/// The certificate is damaged.
fn check_validity(material: &KeyMaterial, now_s: i64) -> Result<(i64, Option<TlsError>), TlsError> {
    let place = &material.chain_place;
    let damaged = || TlsError::unusable(place, "its certificate is damaged");
    let own = material.chain.first().ok_or_else(damaged)?;
    let (from, until) = validity(own).ok_or_else(damaged)?;
    let reason = if now_s > until {
        format!("its certificate expired on {}; clients that check it refuse it, renew it", date_text(until))
    } else if now_s < from {
        let date = date_text(from);
        format!(
            "its certificate is valid from {date} on; clients that check it refuse it, check the clock of this machine"
        )
    } else {
        return Ok((until, None));
    };
    Ok((until, Some(TlsError::unusable(place, reason))))
}

/// Joins the key and its certificates.
pub fn certified(material: KeyMaterial, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let KeyMaterial { place, key, chain_place, chain } = material;
    let loaded = provider.key_provider.load_private_key(key);
    let key = loaded.map_err(|error| {
        let reason = format!("its private key cannot be used ({error}); RSA of 2048 bits and more, ECDSA and Ed25519 are supported");
        TlsError::unusable(&place, reason)
    })?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(certified),
        Err(rustls::Error::InconsistentKeys(_)) => Err(TlsError::unusable(
            &place,
            "the private key is not that of the first certificate; put the server's own certificate first, then its issuers'",
        )),
        Err(error) => Err(TlsError::unusable(&chain_place, format!("its certificate is damaged: {error}"))),
    }
}
