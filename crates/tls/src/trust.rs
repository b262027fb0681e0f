//! Decides whether a peer's certificate is trusted: one that an authority of the trust store signed, or one that is
//! itself in the store.
//!
//! The second is what Java does. A certificate that `openssl req -x509` or `keytool` made signs itself, and is put
//! into the trust store as it is; the verifier of rustls takes it for an authority, which must not be a peer. Only certificates of
//! authorities sign others: rustls asks for no such mark on a certificate that it is told to trust.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

use crate::x509::{Purpose, is_authority, is_for, is_revoked, validity};

/// Whether a server's certificate must name the host that a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    Checked,
    Any,
}

/// The certificates of a trust store.
#[derive(Debug)]
pub struct TrustStore {
    /// Those that may sign others.
    authorities: Arc<RootCertStore>,
    /// The names of all.
    subjects: Vec<DistinguishedName>,
    known: Known,
}

impl TrustStore {
    /// # Errors
    /// There is none, or one cannot be read.
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> Result<TrustStore, String> {
        let (mut all, mut authorities) = (RootCertStore::empty(), RootCertStore::empty());
        for (number, certificate) in certificates.iter().enumerate() {
            let damaged = |error| format!("its certificate {} is damaged: {error}", number + 1);
            all.add(certificate.clone()).map_err(damaged)?;
            if is_authority(certificate) {
                authorities.add(certificate.clone()).map_err(damaged)?;
            }
        }
        if all.is_empty() {
            return Err("it has no certificate to trust".to_owned());
        }
        let known = Known { certificates, revocation_lists: Vec::new() };
        Ok(TrustStore { authorities: Arc::new(authorities), subjects: all.subjects(), known })
    }

    /// A verifier of clients' certificates. With `revocation_lists` each certificate between the client's and that of its authority
    /// must stand in a list of its issuer, valid now, as not revoked.
    pub fn client_verifier(
        mut self,
        provider: &Arc<CryptoProvider>,
        is_required: bool,
        revocation_lists: Vec<Vec<u8>>,
    ) -> Result<Arc<dyn ClientCertVerifier>, String> {
        let by_authority = match self.authorities.is_empty() {
            true => None,
            false => {
                let lists = revocation_lists.iter().cloned().map(CertificateRevocationListDer::from);
                let builder = WebPkiClientVerifier::builder_with_provider(
                    Arc::clone(&self.authorities),
                    Arc::clone(provider),
                );
                let builder = builder.with_crls(lists).enforce_revocation_expiration();
                Some(builder.build().map_err(|error| error.to_string())?)
            }
        };
        self.known.revocation_lists = revocation_lists;
        Ok(Arc::new(ClientVerifier {
            by_authority,
            subjects: self.subjects,
            known: self.known,
            is_required,
            algorithms: provider.signature_verification_algorithms,
        }))
    }

    /// A verifier of servers' certificates.
    pub fn server_verifier(
        self,
        provider: &Arc<CryptoProvider>,
        names: Names,
    ) -> Arc<dyn ServerCertVerifier> {
        let algorithms = provider.signature_verification_algorithms;
        Arc::new(ServerVerifier { authorities: self.authorities, known: self.known, names, algorithms })
    }
}

/// Certificates that are trusted as they are.
#[derive(Debug)]
struct Known {
    certificates: Vec<CertificateDer<'static>>,
    revocation_lists: Vec<Vec<u8>>,
}

impl Known {
    /// Whether the certificate is one of these, not revoked, and valid now.
    fn check(&self, certificate: &CertificateDer<'_>, now: UnixTime, error: Error) -> Result<(), Error> {
        if !self.certificates.iter().any(|known| known == certificate) {
            return Err(error);
        }
        if self.revocation_lists.iter().any(|list| is_revoked(certificate, list)) {
            return Err(Error::InvalidCertificate(CertificateError::Revoked));
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

/// Refuses a certificate that is for other purposes.
fn check_purpose(certificate: &CertificateDer<'_>, purpose: Purpose) -> Result<(), Error> {
    match is_for(certificate, purpose) {
        true => Ok(()),
        false => Err(Error::InvalidCertificate(CertificateError::InvalidPurpose)),
    }
}

#[derive(Debug)]
struct ClientVerifier {
    /// `None`: no certificate of the store is that of an authority.
    by_authority: Option<Arc<dyn ClientCertVerifier>>,
    /// The names that clients choose their certificate by.
    subjects: Vec<DistinguishedName>,
    known: Known,
    is_required: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.is_required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        check_purpose(end_entity, Purpose::Client)?;
        let by_authority = match &self.by_authority {
            Some(verifier) => verifier.verify_client_cert(end_entity, intermediates, now).map(drop),
            None => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
        };
        by_authority.or_else(|error| self.known.check(end_entity, now, error))?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[derive(Debug)]
struct ServerVerifier {
    authorities: Arc<RootCertStore>,
    known: Known,
    names: Names,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        check_purpose(end_entity, Purpose::Server)?;
        let by_authority = verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.authorities,
            intermediates,
            now,
            self.algorithms.all,
        );
        by_authority.or_else(|error| self.known.check(end_entity, now, error))?;
        if self.names == Names::Checked {
            verify_server_name(&parsed, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
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
