//! Makes certificates for a test: an authority, and certificates of servers and clients that it signs.
//!
//! Keys are of ECDSA with P-256, which every client of Cassandra's knows.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};

use crate::TlsError;
use crate::x509::date;

const DAY_S: i64 = 86_400;

/// A certificate to be made.
#[derive(Clone, Debug, Default)]
pub struct CertificateRequest {
    /// Its common name.
    pub name: String,
    /// The names of hosts and the addresses that it is for.
    pub hosts: Vec<String>,
    /// The URIs that it is for, such as a SPIFFE identity.
    pub uris: Vec<String>,
    /// Whether it is for a server; else it is for a client.
    pub is_for_server: bool,
}

/// A certificate and its key.
pub struct MadeCertificate {
    /// The certificate in PEM.
    pub certificate: String,
    /// The key in PEM, as PKCS#8.
    pub key: String,
    /// The certificate in DER.
    pub certificate_der: Vec<u8>,
    /// The key in DER, as PKCS#8.
    pub key_der: Vec<u8>,
}

/// An authority that signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    made: MadeCertificate,
    valid_s: (i64, i64),
}

impl Authority {
    /// Makes an authority whose certificates are valid from the day before `now_s` for this many days.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn new(name: &str, now_s: i64, days: i64) -> Result<Authority, TlsError> {
        let valid_s = (now_s - DAY_S, now_s + days.saturating_mul(DAY_S));
        let mut params = params(name, valid_s);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        let made = made(&certificate, &key);
        Ok(Authority { issuer: Issuer::new(params, key), made, valid_s })
    }

    /// Its own certificate and key.
    pub fn own(&self) -> &MadeCertificate {
        &self.made
    }

    /// Makes and signs a certificate.
    ///
    /// # Errors
    /// A name is not one of a host, or the system gives no randomness.
    pub fn sign(&self, request: &CertificateRequest) -> Result<MadeCertificate, TlsError> {
        let mut params = params(&request.name, self.valid_s);
        for host in &request.hosts {
            params.subject_alt_names.push(match host.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => {
                    let name = host.clone().try_into();
                    SanType::DnsName(
                        name.map_err(|_| TlsError::unusable(host, "it is not the name of a host"))?,
                    )
                }
            });
        }
        for uri in &request.uris {
            let text = uri.clone().try_into();
            params
                .subject_alt_names
                .push(SanType::URI(text.map_err(|_| TlsError::unusable(uri, "it is not a URI"))?));
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match request.is_for_server {
            // Servers are clients of each other too.
            true => vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth],
            false => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(made(&certificate, &key))
    }
}

fn params(name: &str, (from, until): (i64, i64)) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let day = |seconds| {
        let (year, month, day) = date(seconds);
        // The last year of a certificate's date.
        date_time_ymd(i32::try_from(year).unwrap_or(9999).min(9999), month, day)
    };
    (params.not_before, params.not_after) = (day(from), day(until));
    params
}

fn made(certificate: &rcgen::Certificate, key: &KeyPair) -> MadeCertificate {
    MadeCertificate {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
        certificate_der: certificate.der().to_vec(),
        key_der: key.serialize_der(),
    }
}

fn failed(error: rcgen::Error) -> TlsError {
    TlsError::unusable("certificate", error.to_string())
}
