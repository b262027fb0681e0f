//! Decides whether a peer's certificate is trusted: one that an authority of the trust store signed, or one that is
//! itself in the store.
//!
//! The second is what Java does. A certificate that `openssl req -x509` or `keytool` made signs itself, and is put
//! into the trust store as it is; the verifier of rustls takes it for an authority, which must not be a peer.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

use crate::x509::validity;

/// Whether a server's certificate must name the host that a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    Checked,
    Any,
}

/// The certificates of a trust store.
#[derive(Debug)]
pub struct TrustStore {
    roots: Arc<RootCertStore>,
    certificates: Vec<CertificateDer<'static>>,
}

impl TrustStore {
    /// # Errors
    /// There is none, or one cannot be read.
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> Result<TrustStore, String> {
        let mut roots = RootCertStore::empty();
        for (number, certificate) in certificates.iter().enumerate() {
            roots
                .add(certificate.clone())
                .map_err(|error| format!("its certificate {} is damaged: {error}", number + 1))?;
        }
        if roots.is_empty() {
            return Err("it has no certificate to trust".to_owned());
        }
        Ok(TrustStore { roots: Arc::new(roots), certificates })
    }

    /// A verifier of clients' certificates.
    pub fn client_verifier(
        self,
        provider: &Arc<CryptoProvider>,
        is_required: bool,
    ) -> Result<Arc<dyn ClientCertVerifier>, String> {
        let mut builder =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&self.roots), Arc::clone(provider));
        if !is_required {
            builder = builder.allow_unauthenticated();
        }
        let by_authority = builder.build().map_err(|error| error.to_string())?;
        Ok(Arc::new(ClientVerifier { by_authority, known: Known(self.certificates) }))
    }

    /// A verifier of servers' certificates.
    pub fn server_verifier(
        self,
        provider: &Arc<CryptoProvider>,
        names: Names,
    ) -> Result<Arc<dyn ServerCertVerifier>, String> {
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::clone(&self.roots), Arc::clone(provider));
        let by_authority = builder.build().map_err(|error| error.to_string())?;
        Ok(Arc::new(ServerVerifier { by_authority, known: Known(self.certificates), names }))
    }
}

/// Certificates that are trusted as they are.
#[derive(Debug)]
struct Known(Vec<CertificateDer<'static>>);

impl Known {
    /// Whether the certificate is one of these, and valid now.
    fn check(&self, certificate: &CertificateDer<'_>, now: UnixTime, error: Error) -> Result<(), Error> {
        if !self.0.iter().any(|known| known == certificate) {
            return Err(error);
        }
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match validity(certificate) {
            Some((_, until)) if now > until => Err(Error::InvalidCertificate(CertificateError::Expired)),
            Some((from, _)) if now < from => Err(Error::InvalidCertificate(CertificateError::NotValidYet)),
            Some(_) => Ok(()),
            None => Err(error),
        }
    }
}

#[derive(Debug)]
struct ClientVerifier {
    by_authority: Arc<dyn ClientCertVerifier>,
    known: Known,
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.by_authority.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.by_authority.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.by_authority.verify_client_cert(end_entity, intermediates, now) {
            Ok(verified) => Ok(verified),
            Err(error) => self.known.check(end_entity, now, error).map(|()| ClientCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

#[derive(Debug)]
struct ServerVerifier {
    by_authority: Arc<WebPkiServerVerifier>,
    known: Known,
    names: Names,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let by_authority =
            self.by_authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        by_authority.or_else(|error| {
            // The name is what `by_authority` checks last.
            let is_of_another_name = matches!(
                error,
                Error::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
                )
            );
            match (is_of_another_name, self.names) {
                (true, Names::Checked) => return Err(error),
                (true, Names::Any) => return Ok(ServerCertVerified::assertion()),
                (false, _) => self.known.check(end_entity, now, error)?,
            }
            if self.names == Names::Checked {
                rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
            Ok(ServerCertVerified::assertion())
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Trusts every server; for `--insecure`. The server must still have the key of its certificate.
#[derive(Debug)]
pub struct AnyServer(pub WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
