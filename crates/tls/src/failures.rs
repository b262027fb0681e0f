//! Says why a client's session failed, in words for the person who has to mend it.

use rustls::{AlertDescription, CertificateError, Error};

use crate::client::{ClientOptions, ServerTrust};
use crate::x509::date_text;

/// The reason, and what to do.
pub fn reason(options: &ClientOptions, host: &str, error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => of_certificate(options, host, error),
        Error::InvalidMessage(_) => {
            "it answers in the clear; it serves no TLS on this port, or does so only on another one"
                .to_owned()
        }
        Error::AlertReceived(alert) => of_alert(options, *alert),
        Error::PeerIncompatible(_) => no_common_protocol(),
        other => other.to_string(),
    }
}

fn of_certificate(options: &ClientOptions, host: &str, error: &CertificateError) -> String {
    match error {
        // A signature is wrong where another authority has the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "its certificate is not trusted: {} did not sign it; give the certificate that did with --cafile FILE",
            match &options.trust {
                ServerTrust::File(file) | ServerTrust::FileForAnyName(file) =>
                    format!("the certificate in {file}"),
                ServerTrust::Machine | ServerTrust::Anybody =>
                    "an authority that this machine trusts".to_owned(),
            }
        ),
        CertificateError::Expired => "its certificate has expired; it must be renewed".to_owned(),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("its certificate expired on {}; it must be renewed", day(not_after.as_secs()))
        }
        CertificateError::NotValidYet => {
            "its certificate is not valid yet; check the clock of this machine".to_owned()
        }
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "its certificate is valid from {} on; check the clock of this machine",
            day(not_before.as_secs())
        ),
        CertificateError::NotValidForName => {
            format!("its certificate is not for {host}; connect by a name that it has")
        }
        CertificateError::NotValidForNameContext { presented, .. } => match names(presented) {
            names if names.is_empty() => format!("its certificate names no host, and so not {host}"),
            names => format!("its certificate is for {names}, not for {host}; connect by one of its names"),
        },
        CertificateError::Other(reason) if reason.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority, and is not itself among those trusted; give it with --cafile FILE"
                .to_owned()
        }
        other => format!("its certificate cannot be used: {}", Error::InvalidCertificate(other.clone())),
    }
}

/// What the server has refused.
fn of_alert(options: &ClientOptions, alert: AlertDescription) -> String {
    let is_about_certificates = matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError
            | AlertDescription::UnknownCA
            | AlertDescription::UnsupportedCertificate
    );
    match (&options.certificate, alert) {
        // Java sends bad_certificate to a client that shows none.
        (None, _) if is_about_certificates => {
            "it wants a certificate of the client: give --cert FILE and --key FILE".to_owned()
        }
        (Some(file), AlertDescription::CertificateExpired) => {
            format!("it refuses the certificate of {file}, which has expired")
        }
        (Some(file), _) if is_about_certificates => format!(
            "it refuses the certificate of {file}: its trust store does not have the authority that signed it ({})",
            name_of(alert)
        ),
        (_, AlertDescription::ProtocolVersion) => no_common_protocol(),
        (_, AlertDescription::HandshakeFailure) => {
            "it ends the handshake: there is no common cipher suite, or it wants a certificate of the client (--cert)"
                .to_owned()
        }
        _ => format!("it ends the session: {}", name_of(alert)),
    }
}

fn no_common_protocol() -> String {
    "there is no common protocol or cipher suite; this client has TLS 1.3 and 1.2".to_owned()
}

fn name_of(alert: AlertDescription) -> String {
    format!("{alert:?}")
}

fn day(seconds: u64) -> String {
    date_text(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// The names of a certificate, which come as `DnsName("localhost")` and `IpAddress(127.0.0.1)`.
fn names(presented: &[String]) -> String {
    let bare = presented.iter().map(|name| {
        let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
        inner.trim_matches('"')
    });
    bare.collect::<Vec<_>>().join(", ")
}
