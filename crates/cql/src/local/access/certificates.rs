//! Logins by the certificate that a client has shown to TLS, which has found it to be trusted.
//!
//! Source: `MutualTlsAuthenticator`, `MutualTlsWithPasswordFallbackAuthenticator`, `SpiffeCertificateValidator`,
//! `CassandraRoleManager.roleForIdentity`, `ClientState.login`.

use super::options::CertificateValidator;
use super::state::now_ns;
use crate::backend::{ClientCertificate, Identity, LoginProof, LoginRefused};
use crate::error::{CqlError, Result};
use crate::local::LocalBackend;
use std::net::IpAddr;
use std::sync::Arc;

const ROLE_OF: &str = "SELECT role FROM system_auth.identity_to_role WHERE identity = ?";
const SPIFFE: &str = "spiffe://";

impl LocalBackend {
    /// Whether clients that have shown a certificate log in by it.
    pub fn logs_in_by_certificate(&self) -> bool {
        self.access().options.authenticator.validator().is_some()
    }

    /// Logs in by a certificate, or by a token where the authenticator takes passwords. Blocks for tens of milliseconds.
    ///
    /// # Errors
    /// As `log_in_by_password`; `BadCredentials` in Cassandra's words for an identity that has no role.
    pub(crate) fn log_in_with(&self, proof: &LoginProof<'_>) -> std::result::Result<Identity, LoginRefused> {
        let client = proof.client.map(|client| client.ip());
        match (self.access().options.authenticator.validator(), proof.certificate) {
            (Some(validator), Some(certificate)) => {
                Ok(self.log_in_by_certificate(validator, certificate, client)?)
            }
            (Some(validator), None) if !self.access().takes_passwords() => {
                let shows_none = ClientCertificate::default();
                Ok(self.log_in_by_certificate(validator, &shows_none, client)?)
            }
            _ => self.log_in_with_token(proof.token, client),
        }
    }

    fn log_in_by_certificate(
        &self,
        validator: CertificateValidator,
        certificate: &ClientCertificate,
        client: Option<IpAddr>,
    ) -> Result<Identity> {
        let refused = |text: String| Err(CqlError::BadCredentials(text));
        let identity = match validator {
            CertificateValidator::Spiffe => certificate.uris.iter().find(|uri| uri.starts_with(SPIFFE)),
            CertificateValidator::CommonName => certificate.common_name.as_ref(),
        };
        let Some(identity) = identity.filter(|identity| !identity.is_empty()) else {
            return refused(match validator {
                CertificateValidator::Spiffe => "Unable to extract Spiffe from the certificate".to_owned(),
                CertificateValidator::CommonName => {
                    "Unable to extract client identity from certificate for authentication".to_owned()
                }
            });
        };
        let not_authorized = || refused(format!("Certificate identity '{identity}' not authorized"));
        let Some(role) = self.role_of_identity(identity)? else { return not_authorized() };
        let place = self.access().uses.place(&role);
        // It may have been dropped with its role before the place was taken.
        if self.role_of_identity(identity)?.is_none_or(|still| still != role) {
            return not_authorized();
        }
        if !self.role(&role, true)?.is_some_and(|role| role.can_login) {
            return refused(format!("{role} is not permitted to log in"));
        }
        self.seated(place, Identity::of_role(&role).at(client))
    }

    /// The role of an identity. It may be as old as `credentials_validity`; that there is none is not cached.
    fn role_of_identity(&self, identity: &str) -> Result<Option<Arc<Box<str>>>> {
        let now = now_ns(self.database());
        let read = || {
            let rows = self.ask(ROLE_OF, &[identity], true)?;
            Ok(rows.first().and_then(|row| row.text(0)).map(Box::<str>::from))
        };
        self.access().identities.get_or_find(identity, now, read)
    }
}
