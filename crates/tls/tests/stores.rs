//! Key stores of Java and encrypted keys: those that keytool and OpenSSL have written (`stores/README.md`), and our own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use helenus_tls::{
    Authority, CertificateRequest, ClientCertificates, EncryptionOptions, Factory, PemParameters, ReadFile,
    ServerTls, StoreSeal, key_store, trust_store,
};

const PASSWORD: &str = "changeit";

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// Reads files of `stores`, and `made` under its own name.
fn load_with(options: &EncryptionOptions, made: &[(&str, Vec<u8>)]) -> Result<(), String> {
    notices_with(options, made).map(|_| ())
}

/// What the log says of the files.
fn notices_with(options: &EncryptionOptions, made: &[(&str, Vec<u8>)]) -> Result<Vec<String>, String> {
    let made: Vec<(String, Vec<u8>)> =
        made.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect();
    let read: ReadFile = Arc::new(move |path: &Path| {
        if let Some((_, bytes)) = made.iter().find(|(name, _)| path == Path::new(name)) {
            return Ok(bytes.clone());
        }
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores").join(path))
            .map_err(|_| io::ErrorKind::NotFound.into())
    });
    let loaded = ServerTls::load(options, read, now_s());
    loaded.map(|tls| tls.expect("TLS").notices()).map_err(|error| error.to_string())
}

fn load(options: &EncryptionOptions) -> Result<(), String> {
    load_with(options, &[])
}

fn stores(keystore: &str, truststore: &str) -> EncryptionOptions {
    EncryptionOptions {
        enabled: true,
        keystore: Some(keystore.to_owned()),
        keystore_password: Some(PASSWORD.to_owned()),
        truststore: Some(truststore.to_owned()),
        truststore_password: Some(PASSWORD.to_owned()),
        client_certificates: ClientCertificates::Required,
        ..EncryptionOptions::default()
    }
}

#[test]
fn stores_of_every_writer_are_read_whatever_type_is_named() {
    for keystore in [
        "openssl.p12",
        "openssl-legacy.p12",
        "openssl-plain.p12",
        "keytool.p12",
        "keytool-legacy.p12",
        "keytool.jks",
    ] {
        for truststore in ["openssl-trust.p12", "keytool-trust.p12", "keytool-trust.jks", keystore] {
            load(&stores(keystore, truststore))
                .unwrap_or_else(|error| panic!("{keystore} {truststore}: {error}"));
        }
    }
    // Java does not check the digest of a trust store without a password.
    let open = EncryptionOptions { truststore_password: None, ..stores("keytool.jks", "keytool-trust.jks") };
    load(&open).unwrap();
}

#[test]
fn what_is_wrong_with_a_store_is_named_with_its_file() {
    let without = |options: EncryptionOptions| EncryptionOptions { keystore_password: None, ..options };
    let wrong =
        |options: EncryptionOptions| EncryptionOptions { keystore_password: Some("other".into()), ..options };
    let wrong_trust = |options: EncryptionOptions| EncryptionOptions {
        truststore_password: Some("other".into()),
        ..options
    };
    let is_no_password = "keystore keytool.p12: keystore_password is not its password";
    for (options, reason) in [
        (wrong(stores("keytool.p12", "keytool-trust.p12")), is_no_password),
        (
            wrong(stores("openssl-legacy.p12", "keytool-trust.p12")),
            "openssl-legacy.p12: keystore_password is not its",
        ),
        (
            wrong(stores("openssl-plain.p12", "keytool-trust.p12")),
            "openssl-plain.p12: keystore_password is not its",
        ),
        (
            wrong(stores("keytool.jks", "keytool-trust.p12")),
            "keytool.jks: keystore_password is not its password",
        ),
        (
            wrong_trust(stores("keytool.p12", "keytool-trust.p12")),
            "truststore keytool-trust.p12: truststore_password",
        ),
        (
            wrong_trust(stores("keytool.p12", "keytool-trust.jks")),
            "truststore keytool-trust.jks: truststore_password",
        ),
        (without(stores("keytool.p12", "keytool-trust.p12")), "'keystore_password' must be specified"),
        (stores("keytool-trust.p12", "keytool-trust.p12"), "keytool-trust.p12: it has no private key"),
        (stores("keytool-trust.jks", "keytool-trust.p12"), "keytool-trust.jks: it has no private key"),
        (stores("openssl-trust.p12", "keytool-trust.p12"), "openssl-trust.p12: it has no private key"),
        (stores("server.crt", "keytool-trust.p12"), "server.crt: it is neither a PKCS#12 nor a JKS store"),
        (stores("keytool-rsa.jks", "keytool-trust.p12"), "the password of the key is not that of the store"),
        (stores("nothing.p12", "keytool-trust.p12"), "cannot read keystore nothing.p12"),
        (stores("keytool.p12", "nothing.p12"), "cannot read truststore nothing.p12"),
    ] {
        let error = load(&options).unwrap_err();
        assert!(error.contains(reason), "{reason}: {error}");
    }
}

#[test]
fn a_key_of_another_certificate_is_refused_and_an_expired_one_serves() {
    let seal = StoreSeal { password: PASSWORD, time_ms: 0, fill: &|bytes| bytes.fill(7) };
    let old = Authority::new("old", now_s() - 90 * 86_400, 30).unwrap();
    let request =
        CertificateRequest { name: "server".into(), is_for_server: true, ..CertificateRequest::default() };
    let expired = old.sign(&request).unwrap();
    let mut mixed = old.sign(&request).unwrap();
    mixed.key_der = expired.key_der.clone();
    let stores_of = key_store(&expired, old.own(), &seal);
    for (name, bytes) in [("made.p12", stores_of.pkcs12), ("made.jks", stores_of.jks)] {
        let notices = notices_with(&stores(name, "keytool-trust.p12"), &[(name, bytes)]).unwrap();
        let is_told =
            |notice: &String| notice.contains("its certificate expired on") && notice.contains(name);
        assert!(notices.iter().any(is_told), "{notices:?}");
    }
    let stores_of = key_store(&mixed, old.own(), &seal);
    for (name, bytes) in [("made.p12", stores_of.pkcs12), ("made.jks", stores_of.jks)] {
        let error = load_with(&stores(name, "keytool-trust.p12"), &[(name, bytes)]).unwrap_err();
        assert!(error.contains("not that of the first certificate") && error.contains(name), "{error}");
    }
    let young = Authority::new("young", now_s(), 30).unwrap();
    let mut mixed = young.sign(&request).unwrap();
    mixed.key_der = expired.key_der.clone();
    let bytes = key_store(&mixed, young.own(), &seal).pkcs12;
    let error = load_with(&stores("made.p12", "keytool-trust.p12"), &[("made.p12", bytes)]).unwrap_err();
    assert!(error.contains("not that of the first certificate"), "{error}");
}

#[test]
fn stores_that_we_write_are_read_again() {
    let seal = StoreSeal { password: "Pässwort", time_ms: 1, fill: &|bytes| bytes.fill(9) };
    let authority = Authority::new("authority", now_s(), 30).unwrap();
    let request =
        CertificateRequest { name: "server".into(), is_for_server: true, ..CertificateRequest::default() };
    let keys = key_store(&authority.sign(&request).unwrap(), authority.own(), &seal);
    let trust = trust_store(authority.own(), &seal);
    let made = [("k.p12", keys.pkcs12), ("k.jks", keys.jks), ("t.p12", trust.pkcs12), ("t.jks", trust.jks)];
    for (key, trust) in [("k.p12", "t.p12"), ("k.jks", "t.jks"), ("k.p12", "t.jks")] {
        let options = EncryptionOptions {
            keystore_password: Some("Pässwort".into()),
            truststore_password: Some("Pässwort".into()),
            ..stores(key, trust)
        };
        load_with(&options, &made).unwrap();
    }
}

#[test]
fn encrypted_keys_in_pem_are_opened_with_their_password() {
    let with = |key: &str, password: Option<&str>| {
        load(&EncryptionOptions {
            enabled: true,
            keystore: Some("server.crt".to_owned()),
            keystore_password: password.map(str::to_owned),
            factory: Factory::Pem(PemParameters {
                key_file: Some(key.to_owned()),
                ..PemParameters::default()
            }),
            ..EncryptionOptions::default()
        })
    };
    for key in ["aes256.key", "aes128.key", "des3.key"] {
        with(key, Some(PASSWORD)).unwrap_or_else(|error| panic!("{key}: {error}"));
        let error = with(key, Some("other")).unwrap_err();
        assert!(
            error.contains(key) && error.contains("the password is not that of its private key"),
            "{error}"
        );
        let error = with(key, None).unwrap_err();
        assert!(error.contains(key) && error.contains("keystore_password"), "{error}");
    }
    let error = with("scrypt.key", Some(PASSWORD)).unwrap_err();
    assert!(error.contains("scrypt") && error.contains("openssl pkcs8"), "{error}");
}
