//! The TLS settings of a client: whom it trusts, and the certificate that it shows.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, version};

use crate::server::certified;
use crate::source::{KeyMaterial, ReadFile};
use crate::trust::{AnyServer, Names, TrustStore};
use crate::{TlsError, pem, protocols};

/// Files with the authorities that this machine trusts, as distributions place them.
const OF_THE_MACHINE: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Whom a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTrust {
    /// The authorities of this machine.
    Machine,
    /// The certificates of a PEM file. The server's certificate must name the host that is asked for.
    File(String),
    /// The same, whatever host the server's certificate names. cqlsh trusts in this way.
    FileForAnyName(String),
    /// Everybody.
    Anybody,
}

/// What a client is told on its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Whom it trusts.
    pub trust: ServerTrust,
    /// A PEM file with the client's certificate, and its key if `key` is not given.
    pub certificate: Option<String>,
    /// A PEM file with the client's key.
    pub key: Option<String>,
}

/// Reads all that the options name.
///
/// # Errors
/// A file cannot be read or used. The text names it.
pub fn client_config(options: &ClientOptions, read: &ReadFile) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(protocols::provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .map_err(|error| TlsError::unusable("TLS", error.to_string()))?;
    let verifier = match &options.trust {
        ServerTrust::Anybody => Ok(Arc::new(AnyServer(provider.signature_verification_algorithms)) as Arc<_>),
        ServerTrust::File(file) | ServerTrust::FileForAnyName(file) => {
            let place = format!("--cafile {file}");
            let text = text(&place, file, read)?;
            let certificates =
                pem::certificates(&text).map_err(|reason| TlsError::unusable(&place, reason))?;
            let names = match &options.trust {
                ServerTrust::FileForAnyName(_) => Names::Any,
                _ => Names::Checked,
            };
            verifier(&place, (certificates, names), &provider)
        }
        ServerTrust::Machine => {
            let certificates = (of_the_machine(read), Names::Checked);
            verifier("the authorities of this machine", certificates, &provider)
        }
    }?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let Some(file) = &options.certificate else { return Ok(finished(builder.with_no_client_auth())) };
    let place = format!("--cert {file}");
    let certificate = text(&place, file, read)?;
    let chain = pem::certificates(&certificate).map_err(|reason| TlsError::unusable(&place, reason))?;
    if chain.is_empty() {
        return Err(TlsError::unusable(&place, "it has no certificate"));
    }
    let chain_place = place.clone();
    let (place, key) = match &options.key {
        None => (place, certificate),
        Some(file) => {
            let place = format!("--key {file}");
            let text = text(&place, file, read)?;
            (place, text)
        }
    };
    let key = pem::private_key(&key, None).map_err(|reason| TlsError::unusable(&place, reason))?;
    let key =
        key.ok_or_else(|| TlsError::unusable(&place, "it has no private key; name its file with --key"))?;
    let certified = certified(KeyMaterial { place, key, chain_place, chain }, &provider)?;
    let own = Arc::new(rustls::sign::SingleCertAndKey::from(certified));
    Ok(finished(builder.with_client_cert_resolver(own)))
}

/// Each session is a new one: a resumed one does not look at the server's certificate again, which may have expired meanwhile.
fn finished(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

/// The name that a server's certificate must be for: the host of an address, with or without a port.
///
/// # Errors
/// It is no name of a host.
pub fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(bare.to_owned()).map_err(|error| TlsError::unusable(host, error.to_string()))
}

fn text(place: &str, file: &str, read: &ReadFile) -> Result<String, TlsError> {
    let bytes =
        read(file.as_ref()).map_err(|source| TlsError::Unreadable { place: place.to_owned(), source })?;
    String::from_utf8(bytes).map_err(|_| TlsError::unusable(place, "it is not PEM"))
}

fn verifier(
    place: &str,
    (certificates, names): (Vec<CertificateDer<'static>>, Names),
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn rustls::client::danger::ServerCertVerifier>, TlsError> {
    TrustStore::new(certificates).map(|store| store.server_verifier(provider, names)).map_err(|reason| {
        TlsError::unusable(
            place,
            format!("{reason}; give the certificate that signed the server's with --cafile"),
        )
    })
}

fn of_the_machine(read: &ReadFile) -> Vec<CertificateDer<'static>> {
    let texts = OF_THE_MACHINE.iter().filter_map(|file| String::from_utf8(read(file.as_ref()).ok()?).ok());
    texts
        .map(|text| pem::certificates(&text).unwrap_or_default())
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}
