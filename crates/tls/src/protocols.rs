//! Java's names of protocols and cipher suites, as `cassandra.yaml` uses them.

use rustls::crypto::{CryptoProvider, ring};
use rustls::{CipherSuite, ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion, version};

use crate::EncryptionOptions;

/// The cryptography of all connections.
pub fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// Java's name of a suite. Those of TLS 1.3 have no prefix in Java.
fn suite_name(suite: CipherSuite) -> String {
    let name = suite.as_str().unwrap_or_default();
    name.replacen("TLS13_", "TLS_", 1)
}

fn version_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        _ => "unknown",
    }
}

/// Java's names of the protocol and the cipher suite of a session, as `system_views.clients` shows them.
pub fn session_names(
    protocol: Option<ProtocolVersion>,
    suite: Option<SupportedCipherSuite>,
) -> (&'static str, String) {
    (
        protocol.map_or("unknown", version_name),
        suite.map(|suite| suite_name(suite.suite())).unwrap_or_default(),
    )
}

/// The protocols and suites that options allow. `dropped` gets the names of those that are unknown or unsafe; Cassandra
/// goes on without them too (`SSLFactory.LoggingCipherSuiteFilter`).
///
/// # Errors
/// None is left; the text says which there are.
pub fn choose(
    options: &EncryptionOptions,
    dropped: &mut Vec<String>,
) -> Result<(CryptoProvider, Vec<&'static SupportedProtocolVersion>), String> {
    let mut provider = provider();
    if !options.cipher_suites.is_empty() {
        let all = std::mem::take(&mut provider.cipher_suites);
        for name in &options.cipher_suites {
            match all.iter().find(|suite| suite_name(suite.suite()).eq_ignore_ascii_case(name.trim())) {
                Some(suite) => provider.cipher_suites.push(*suite),
                None => dropped.push(name.clone()),
            }
        }
        if provider.cipher_suites.is_empty() {
            let known: Vec<_> = all.iter().map(|suite| suite_name(suite.suite())).collect();
            return Err(format!(
                "cipher_suites: none of these is supported; use some of {}",
                known.join(", ")
            ));
        }
    }
    let mut versions: Vec<&'static SupportedProtocolVersion> = Vec::new();
    let Some(names) = accepted(options) else {
        return Ok((provider, vec![&version::TLS13, &version::TLS12]));
    };
    for name in names {
        match name.to_ascii_lowercase().as_str() {
            "tls" => versions.extend([&version::TLS13, &version::TLS12]),
            "tlsv1.3" => versions.push(&version::TLS13),
            "tlsv1.2" => versions.push(&version::TLS12),
            _ => dropped.push(name),
        }
    }
    // A protocol without a suite cannot be agreed on.
    versions.retain(|version| provider.cipher_suites.iter().any(|suite| suite.version() == *version));
    if versions.is_empty() {
        return Err(
            "accepted_protocols: none of these is supported with these cipher_suites; use TLSv1.3, TLSv1.2"
                .to_owned(),
        );
    }
    Ok((provider, versions))
}

/// `accepted_protocols` and the older `protocol` together (`AbstractSslContextFactory.getAcceptedProtocols`).
fn accepted(options: &EncryptionOptions) -> Option<Vec<String>> {
    let own = options.protocol.clone();
    match (&options.accepted_protocols, own) {
        (None, own) => own.map(|own| vec![own]),
        (Some(names), None) => Some(names.clone()),
        (Some(names), Some(own)) => {
            let mut names = names.clone();
            if !own.eq_ignore_ascii_case("TLS") && !names.iter().any(|name| name.eq_ignore_ascii_case(&own)) {
                names.push(own);
            }
            Some(names)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        protocols: Option<&[&str]>,
        suites: &[&str],
    ) -> Result<(usize, Vec<&'static str>, usize), String> {
        let options = EncryptionOptions {
            accepted_protocols: protocols.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            cipher_suites: suites.iter().map(|name| (*name).to_owned()).collect(),
            ..EncryptionOptions::default()
        };
        let mut dropped = Vec::new();
        let (provider, versions) = choose(&options, &mut dropped)?;
        let versions = versions.iter().map(|version| version_name(version.version)).collect();
        Ok((provider.cipher_suites.len(), versions, dropped.len()))
    }

    #[test]
    fn names_are_javas_and_unknown_ones_are_dropped() {
        assert_eq!(chosen(None, &[]).unwrap(), (9, vec!["TLSv1.3", "TLSv1.2"], 0));
        assert_eq!(chosen(Some(&["TLSv1.1", "tlsv1.2"]), &[]).unwrap(), (9, vec!["TLSv1.2"], 1));
        let suites = ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_CBC_SHA"];
        assert_eq!(chosen(None, &suites).unwrap().0, 1);
        assert_eq!(chosen(Some(&["TLS"]), &suites).unwrap(), (1, vec!["TLSv1.2"], 1));
        assert_eq!(chosen(None, &["TLS_AES_128_GCM_SHA256"]).unwrap().0, 1);
        assert!(
            chosen(None, &["TLS_RSA_WITH_AES_128_CBC_SHA"]).unwrap_err().contains("TLS_AES_256_GCM_SHA384")
        );
        assert!(chosen(Some(&["SSLv3"]), &[]).unwrap_err().contains("TLSv1.2"));
        assert!(chosen(Some(&["TLSv1.3"]), &suites).is_err());
    }
}
