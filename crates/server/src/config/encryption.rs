//! Reads `client_encryption_options`, and the flags that stand for it.
//!
//! Keys and their meaning are those of Cassandra's `EncryptionOptions`; an unknown key is an error, as there.

use std::collections::BTreeMap;

use helenus_tls::{ClientCertificates, EncryptionOptions, Factory, PemParameters};

use super::file::Yaml;
use super::settings::ConfigError;
use super::sub_options::{SubOption, class_and_parameters};

const KEY: &str = "client_encryption_options";
/// The keys, for the error of an unknown one.
const KEYS: &str = "enabled, optional, keystore, keystore_password, truststore, truststore_password, protocol, accepted_protocols, \
                    cipher_suites, store_type, require_client_auth, require_endpoint_verification, ssl_context_factory; \
                    ScyllaDB's certificate, keyfile";
const STORE_TYPES: [&str; 2] = ["JKS", "PKCS12"];

/// Reads the map.
///
/// # Errors
/// A key is unknown, or its value is not one that it takes.
pub fn encryption_options(map: &BTreeMap<String, Yaml>) -> Result<EncryptionOptions, ConfigError> {
    let mut options = EncryptionOptions::default();
    let (mut certificate, mut keyfile) = (None, None);
    for (key, value) in map {
        if *value == Yaml::Null {
            continue;
        }
        let option = SubOption { map: KEY, key, value };
        let (wrong, text, boolean) =
            (|allowed: &str| option.wrong(allowed), || option.scalar(), || option.boolean());
        let words = || match value {
            Yaml::List(items) => Ok(items.iter().map(Yaml::text).collect()),
            Yaml::Scalar(text) => Ok(text.split(',').map(|word| word.trim().to_owned()).collect()),
            _ => Err(wrong("a list of names")),
        };
        match key.as_str() {
            "enabled" => options.enabled = boolean()?,
            "optional" => options.optional = Some(boolean()?),
            "keystore" => options.keystore = Some(text()?),
            "keystore_password" => options.keystore_password = Some(text()?),
            "truststore" => options.truststore = Some(text()?),
            "truststore_password" => options.truststore_password = Some(text()?),
            "protocol" => options.protocol = Some(text()?),
            "accepted_protocols" => options.accepted_protocols = Some(words()?),
            "cipher_suites" => options.cipher_suites = words()?,
            "store_type" => {
                let given = text()?;
                let known = STORE_TYPES.iter().find(|known| known.eq_ignore_ascii_case(&given));
                options.store_type =
                    known.map(|known| (*known).to_owned()).ok_or_else(|| wrong("JKS, PKCS12"))?;
            }
            "require_client_auth" => {
                options.client_certificates = match value.text().to_ascii_lowercase().as_str() {
                    "true" | "required" => ClientCertificates::Required,
                    "optional" => ClientCertificates::Optional,
                    "false" | "not_required" => ClientCertificates::NotAsked,
                    _ => return Err(wrong("true, false, optional")),
                }
            }
            "require_endpoint_verification" => options.require_endpoint_verification = boolean()?,
            "ssl_context_factory" => options.factory = factory(value).ok_or_else(|| wrong(FACTORIES))?,
            // ScyllaDB's words for the server's certificate and its key in PEM.
            "certificate" => certificate = Some(text()?),
            "keyfile" => keyfile = Some(text()?),
            // The name of an algorithm of Java's key managers.
            "algorithm" => {}
            _ => return Err(option.unknown(KEYS)),
        }
    }
    if certificate.is_some() {
        options.keystore = certificate;
        let pem = PemParameters { key_file: keyfile, ..PemParameters::default() };
        options.factory = Factory::Pem(pem);
    }
    Ok(options)
}

const FACTORIES: &str = "DefaultSslContextFactory, or PEMBasedSslContextFactory with the parameters private_key, \
                         private_key_password and trusted_certificates";

fn factory(value: &Yaml) -> Option<Factory> {
    let (class, parameters) = class_and_parameters(value)?;
    match class.rsplit('.').next()? {
        "DefaultSslContextFactory" => Some(Factory::Stores),
        "PEMBasedSslContextFactory" => {
            let mut pem = PemParameters::default();
            for (key, value) in parameters.into_iter().flatten() {
                let Yaml::Scalar(text) = value else { return None };
                match key.as_str() {
                    "private_key" => pem.private_key = Some(text.clone()),
                    "private_key_password" => pem.private_key_password = Some(text.clone()),
                    "trusted_certificates" => pem.trusted_certificates = Some(text.clone()),
                    // For connections to other nodes.
                    "outbound_private_key" | "outbound_private_key_password" => {}
                    _ => return None,
                }
            }
            Some(Factory::Pem(pem))
        }
        _ => None,
    }
}

/// The options as `system_views.settings` shows them: without passwords, keys and the names of their files.
pub fn encryption_text(options: &EncryptionOptions) -> String {
    let optional = options.optional.map_or("null".to_owned(), |optional| optional.to_string());
    let asks = match options.client_certificates {
        ClientCertificates::NotAsked => "false",
        ClientCertificates::Optional => "optional",
        ClientCertificates::Required => "true",
    };
    format!("{{enabled: {}, optional: {optional}, require_client_auth: {asks}}}", options.enabled)
}

/// The options that the flags `--tls-cert` and its companions stand for.
pub fn of_flags(
    cert: &str,
    key: Option<&str>,
    client_ca: Option<&str>,
    is_optional: bool,
) -> EncryptionOptions {
    EncryptionOptions {
        enabled: true,
        optional: Some(is_optional),
        keystore: Some(cert.to_owned()),
        truststore: client_ca.map(str::to_owned),
        client_certificates: match client_ca {
            Some(_) => ClientCertificates::Required,
            None => ClientCertificates::NotAsked,
        },
        factory: Factory::Pem(PemParameters { key_file: key.map(str::to_owned), ..PemParameters::default() }),
        ..EncryptionOptions::default()
    }
}
