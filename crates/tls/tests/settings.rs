//! The settings of both sides: what is refused at the start, who gets through a handshake, and files that change.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use helenus_tls::rustls::{ClientConnection, ServerConnection};
use helenus_tls::{
    Authority, CertificateRequest, ClientCertificates, ClientOptions, EncryptionOptions, Factory,
    MadeCertificate, PemParameters, Policy, ReadFile, Reloaded, ServerTls, ServerTrust, client_config,
    server_name,
};

type Files = Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>;

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

fn reader(files: &Files) -> ReadFile {
    let files = Arc::clone(files);
    Arc::new(move |path| files.lock().unwrap().get(path).cloned().ok_or(io::ErrorKind::NotFound.into()))
}

fn put(files: &Files, name: &str, text: impl Into<Vec<u8>>) {
    files.lock().unwrap().insert(name.into(), text.into());
}

fn for_server(authority: &Authority) -> MadeCertificate {
    let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    authority
        .sign(&CertificateRequest { name: "server".into(), hosts, uris: vec![], is_for_server: true })
        .unwrap()
}

fn for_client(authority: &Authority) -> MadeCertificate {
    authority.sign(&CertificateRequest { name: "client".into(), ..CertificateRequest::default() }).unwrap()
}

fn both(made: &MadeCertificate) -> String {
    format!("{}{}", made.key, made.certificate)
}

/// Files of an authority, a server and a client.
fn made() -> (Files, Authority) {
    let files = Files::default();
    let authority = Authority::new("authority", now_s(), 30).unwrap();
    put(&files, "ca.pem", authority.own().certificate.clone());
    put(&files, "server.pem", both(&for_server(&authority)));
    put(&files, "client.pem", both(&for_client(&authority)));
    (files, authority)
}

fn pem(keystore: &str) -> EncryptionOptions {
    EncryptionOptions {
        enabled: true,
        keystore: Some(keystore.to_owned()),
        truststore: Some("ca.pem".to_owned()),
        factory: Factory::Pem(PemParameters::default()),
        ..EncryptionOptions::default()
    }
}

fn load(options: &EncryptionOptions, files: &Files) -> Result<Option<ServerTls>, String> {
    ServerTls::load(options, reader(files), now_s()).map_err(|error| error.to_string())
}

fn client(trust: &str, certificate: Option<&str>) -> ClientOptions {
    ClientOptions {
        trust: ServerTrust::File(trust.to_owned()),
        certificate: certificate.map(str::to_owned),
        key: None,
    }
}

/// Does a handshake without a socket, and sends a word each way.
fn talk(server: &ServerTls, options: &ClientOptions, files: &Files, host: &str) -> Result<(), String> {
    let config = client_config(options, &reader(files)).map_err(|error| error.to_string())?;
    let mut client =
        ClientConnection::new(config, server_name(host).unwrap()).map_err(|error| error.to_string())?;
    let mut server = ServerConnection::new(server.config()).map_err(|error| error.to_string())?;
    client.writer().write_all(b"ping").unwrap();
    server.writer().write_all(b"pong").unwrap();
    for _ in 0..8 {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets().map_err(|error| format!("server: {error}"))?;
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().map_err(|error| format!("client: {error}"))?;
        }
    }
    let mut word = [0; 4];
    server.reader().read_exact(&mut word).map_err(|error| error.to_string())?;
    assert_eq!(&word, b"ping");
    client.reader().read_exact(&mut word).map_err(|error| error.to_string())?;
    assert_eq!(&word, b"pong");
    Ok(())
}

#[test]
fn a_server_is_trusted_by_its_authority_and_its_name() {
    let (files, _) = made();
    let server = load(&pem("server.pem"), &files).unwrap().unwrap();
    assert_eq!(server.policy(), Policy::Required);
    for host in ["localhost", "127.0.0.1"] {
        talk(&server, &client("ca.pem", None), &files, host).unwrap();
    }
    let error = talk(&server, &client("ca.pem", None), &files, "db.example").unwrap_err();
    assert!(error.contains("not valid for name"), "{error}");
    let other = Authority::new("another", now_s(), 30).unwrap();
    put(&files, "other.pem", other.own().certificate.clone());
    let error = talk(&server, &client("other.pem", None), &files, "localhost").unwrap_err();
    assert!(error.contains("UnknownIssuer"), "{error}");
    let anybody = ClientOptions { trust: ServerTrust::Anybody, ..client("", None) };
    talk(&server, &anybody, &files, "db.example").unwrap();
}

#[test]
fn clients_without_a_trusted_certificate_are_refused_where_one_is_required() {
    let (files, _) = made();
    let other = Authority::new("another", now_s(), 30).unwrap();
    put(&files, "stranger.pem", both(&for_client(&other)));
    let with = |client_certificates| {
        load(&EncryptionOptions { client_certificates, ..pem("server.pem") }, &files).unwrap().unwrap()
    };
    let required = with(ClientCertificates::Required);
    talk(&required, &client("ca.pem", Some("client.pem")), &files, "localhost").unwrap();
    let error = talk(&required, &client("ca.pem", None), &files, "localhost").unwrap_err();
    assert!(error.contains("server: peer sent no certificates"), "{error}");
    let error = talk(&required, &client("ca.pem", Some("stranger.pem")), &files, "localhost").unwrap_err();
    assert!(error.starts_with("server: invalid peer certificate"), "{error}");
    let optional = with(ClientCertificates::Optional);
    talk(&optional, &client("ca.pem", None), &files, "localhost").unwrap();
    assert!(talk(&optional, &client("ca.pem", Some("stranger.pem")), &files, "localhost").is_err());
    talk(&with(ClientCertificates::NotAsked), &client("ca.pem", Some("stranger.pem")), &files, "localhost")
        .unwrap();
}

#[test]
fn a_certificate_that_is_in_the_trust_store_itself_is_trusted() {
    let (files, authority) = made();
    // Its own issuer is not in the store.
    let known = for_client(&authority);
    put(&files, "known.pem", both(&known));
    put(&files, "known.crt", known.certificate.clone());
    let options = EncryptionOptions {
        client_certificates: ClientCertificates::Required,
        truststore: Some("known.crt".to_owned()),
        ..pem("server.pem")
    };
    let server = load(&options, &files).unwrap().unwrap();
    talk(&server, &client("ca.pem", Some("known.pem")), &files, "localhost").unwrap();
    assert!(talk(&server, &client("ca.pem", Some("client.pem")), &files, "localhost").is_err());
}

#[test]
fn what_cannot_be_used_is_refused_with_its_file_and_the_reason() {
    let (files, authority) = made();
    let made = for_server(&authority);
    put(&files, "no_key.pem", made.certificate.clone());
    put(&files, "no_certificate.pem", made.key.clone());
    put(&files, "other_key.pem", format!("{}{}", for_server(&authority).key, made.certificate));
    put(&files, "damaged.pem", both(&made).replace("END CERTIFICATE", "END X"));
    put(&files, "binary.pem", [0xFE, 0xED, 0xFE, 0xED].to_vec());
    put(
        &files,
        "encrypted.pem",
        format!(
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nTWFu\n-----END RSA PRIVATE KEY-----\n{}",
            made.certificate
        ),
    );
    let old = Authority::new("old", now_s() - 90 * 86_400, 30).unwrap();
    put(&files, "expired.pem", both(&for_server(&old)));
    let young = Authority::new("young", now_s() + 90 * 86_400, 30).unwrap();
    put(&files, "young.pem", both(&for_server(&young)));
    for (file, reason) in [
        ("absent.pem", "cannot read keystore absent.pem: "),
        ("no_key.pem", "keystore no_key.pem: it has no private key"),
        ("no_certificate.pem", "keystore no_certificate.pem: it has no certificate"),
        ("other_key.pem", "keystore other_key.pem: the private key is not that of the first certificate"),
        ("damaged.pem", "keystore damaged.pem: it has no certificate"),
        ("binary.pem", "keystore binary.pem: it is not PEM"),
        ("encrypted.pem", "keystore encrypted.pem: its private key is encrypted"),
    ] {
        let error = load(&pem(file), &files).unwrap_err();
        assert!(error.starts_with(reason), "{error}");
    }
    // As in Cassandra these serve, and the log says so.
    for (file, notice) in [
        ("expired.pem", "keystore expired.pem: its certificate expired on "),
        ("young.pem", "keystore young.pem: its certificate is valid from "),
    ] {
        let notices = load(&pem(file), &files).unwrap().unwrap().notices();
        assert!(matches!(&notices[..], [one] if one.starts_with(notice)), "{notices:?}");
    }
    let asks = EncryptionOptions { client_certificates: ClientCertificates::Required, ..pem("server.pem") };
    for (file, reason) in [
        ("absent.pem", "cannot read truststore absent.pem: "),
        ("no_certificate.pem", "truststore no_certificate.pem: it has no certificate to trust"),
    ] {
        let options = EncryptionOptions { truststore: Some(file.to_owned()), ..asks.clone() };
        let error = load(&options, &files).unwrap_err();
        assert!(error.starts_with(reason), "{error}");
    }
    let options =
        EncryptionOptions { cipher_suites: vec!["TLS_RSA_WITH_RC4_128_MD5".into()], ..pem("server.pem") };
    assert!(load(&options, &files).unwrap_err().contains("cipher_suites"));
}

#[test]
fn text_in_the_options_stands_for_files() {
    let (files, authority) = made();
    let parameters = PemParameters {
        private_key: Some(both(&for_server(&authority))),
        trusted_certificates: Some(authority.own().certificate.clone()),
        ..PemParameters::default()
    };
    let options = EncryptionOptions {
        client_certificates: ClientCertificates::Required,
        factory: Factory::Pem(parameters),
        ..pem("absent.pem")
    };
    let server = load(&options, &files).unwrap().unwrap();
    talk(&server, &client("ca.pem", Some("client.pem")), &files, "localhost").unwrap();
    let text = format!("{server:?}{options:?}");
    assert!(!text.contains("PRIVATE"), "{text}");
}

#[test]
fn tls_is_optional_where_it_is_not_enabled_and_there_is_a_key() {
    let (files, _) = made();
    let not_enabled = |keystore| EncryptionOptions { enabled: false, ..pem(keystore) };
    assert!(load(&not_enabled("absent.pem"), &files).unwrap().is_none());
    assert_eq!(load(&not_enabled("server.pem"), &files).unwrap().unwrap().policy(), Policy::Optional);
    let never = EncryptionOptions { optional: Some(false), ..not_enabled("server.pem") };
    assert!(load(&never, &files).unwrap().is_none());
    let enabled = EncryptionOptions { optional: Some(true), ..pem("server.pem") };
    assert_eq!(load(&enabled, &files).unwrap().unwrap().policy(), Policy::Optional);
}

#[test]
fn changed_files_are_for_new_connections_and_damaged_ones_change_nothing() {
    let (files, _) = made();
    let server = load(&pem("server.pem"), &files).unwrap().unwrap();
    assert_eq!(server.reload(now_s(), false).unwrap(), Reloaded::Unchanged);
    let authority = Authority::new("another", now_s(), 30).unwrap();
    put(&files, "new.pem", authority.own().certificate.clone());
    put(&files, "server.pem", "half a fi");
    assert!(server.reload(now_s(), false).is_err());
    talk(&server, &client("ca.pem", None), &files, "localhost").unwrap();
    put(&files, "server.pem", both(&for_server(&authority)));
    assert_eq!(server.reload(now_s(), false).unwrap(), Reloaded::Replaced);
    talk(&server, &client("new.pem", None), &files, "localhost").unwrap();
    assert!(talk(&server, &client("ca.pem", None), &files, "localhost").is_err());
    assert_eq!(server.reload(now_s(), true).unwrap(), Reloaded::Replaced);
}
