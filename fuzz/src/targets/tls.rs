//! TLS: keys and certificates in PEM, key stores, certificates, and what a client sends before and inside a handshake; and the
//! tokens of logins.

use helenus_tls::rustls::{ClientConnection, ServerConnection};
use helenus_tls::{
    Authority, CertificateRequest, ClientCertificates, ClientOptions, EncryptionOptions, Factory,
    MadeCertificate, PemParameters, ReadFile, ServerTls, ServerTrust, StoreSeal, client_config, common_name,
    decode, key_store, server_name, trust_store, uris,
};
use std::sync::{Arc, LazyLock};

const PASSWORD: &str = "changeit";
/// The most rounds of a password's derivation; a file may ask for millions.
const ITERATIONS_MAX: u32 = 20;
/// Files that other programs have written.
const OF_OTHERS: [&[u8]; 5] = [
    include_bytes!("../../../crates/tls/tests/stores/openssl-plain.p12"),
    include_bytes!("../../../crates/tls/tests/stores/openssl-legacy.p12"),
    include_bytes!("../../../crates/tls/tests/stores/keytool.p12"),
    include_bytes!("../../../crates/tls/tests/stores/keytool.jks"),
    include_bytes!("../../../crates/tls/tests/stores/keytool-trust.jks"),
];

struct Made {
    authority: MadeCertificate,
    server: MadeCertificate,
    now_s: i64,
}

static MADE: LazyLock<Made> = LazyLock::new(|| {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now_s = now.map_or(0, |now| now.as_secs() as i64);
    let authority = Authority::new("authority", now_s, 30).unwrap_or_else(|error| panic!("{error}"));
    let request = CertificateRequest {
        name: "server".to_owned(),
        hosts: vec!["localhost".to_owned()],
        uris: vec!["spiffe://example/server".to_owned()],
        is_for_server: true,
    };
    let server = authority.sign(&request).unwrap_or_else(|error| panic!("{error}"));
    let own = authority.own();
    let authority = MadeCertificate {
        certificate: own.certificate.clone(),
        key: own.key.clone(),
        certificate_der: own.certificate_der.clone(),
        key_der: own.key_der.clone(),
    };
    Made { authority, server, now_s }
});

pub(super) fn pems() -> Vec<Vec<u8>> {
    let encrypted = include_bytes!("../../../crates/tls/tests/stores/aes256.key");
    let both = format!("{}{}", MADE.server.key, MADE.server.certificate);
    vec![both.into_bytes(), MADE.authority.certificate.clone().into_bytes(), encrypted.to_vec()]
}

pub(super) fn run_pem(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _certificates = decode::pem_certificates(&text);
    let _plain = decode::pem_private_key(&text, None, ITERATIONS_MAX);
    let _opened = decode::pem_private_key(&text, Some(PASSWORD), ITERATIONS_MAX);
}

pub(super) fn stores() -> Vec<Vec<u8>> {
    let seal = StoreSeal { password: PASSWORD, time_ms: 1, fill: &|bytes| bytes.fill(3) };
    let keys = key_store(&MADE.server, &MADE.authority, &seal);
    let trust = trust_store(&MADE.authority, &seal);
    let mut all = vec![keys.pkcs12, keys.jks, trust.pkcs12, trust.jks];
    all.extend(OF_OTHERS.iter().map(|bytes| bytes.to_vec()));
    all
}

/// Few changed stores have the right digest, so what is behind it is reached without one.
pub(super) fn run_store(input: &[u8]) {
    for password in [Some(PASSWORD), None] {
        let _counts = decode::store(input, password, ITERATIONS_MAX);
    }
}

pub(super) fn certificates() -> Vec<Vec<u8>> {
    vec![MADE.server.certificate_der.clone(), MADE.authority.certificate_der.clone()]
}

pub(super) fn run_certificate(input: &[u8]) {
    let _names = (uris(input), common_name(input));
    let _at = helenus_tls::is_for_address(&input.into(), std::net::IpAddr::from([127, 0, 0, 1]));
}

static SERVER: LazyLock<ServerTls> = LazyLock::new(|| {
    let both = format!("{}{}", MADE.server.key, MADE.server.certificate);
    let parameters = PemParameters {
        private_key: Some(both),
        trusted_certificates: Some(MADE.authority.certificate.clone()),
        ..PemParameters::default()
    };
    let options = EncryptionOptions {
        enabled: true,
        client_certificates: ClientCertificates::Optional,
        factory: Factory::Pem(parameters),
        ..EncryptionOptions::default()
    };
    let nothing: ReadFile = Arc::new(|_| Err(std::io::ErrorKind::NotFound.into()));
    let loaded = ServerTls::load(&options, nothing, MADE.now_s).unwrap_or_else(|error| panic!("{error}"));
    loaded.unwrap_or_else(|| panic!("no TLS"))
});

/// What a client sends first, and other beginnings.
pub(super) fn hellos() -> Vec<Vec<u8>> {
    let ca = MADE.authority.certificate.clone().into_bytes();
    let read: ReadFile = Arc::new(move |_| Ok(ca.clone()));
    let trust = ServerTrust::File("ca.pem".to_owned());
    let config = client_config(&ClientOptions { trust, certificate: None, key: None }, &read);
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    let name = server_name("localhost").unwrap_or_else(|error| panic!("{error}"));
    let mut client = ClientConnection::new(config, name).unwrap_or_else(|error| panic!("{error}"));
    let mut hello = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut hello).unwrap_or_else(|error| panic!("{error}"));
    }
    let twice = hello.repeat(2);
    let in_pieces: Vec<u8> = hello
        .get(5..)
        .unwrap_or_default()
        .chunks(7)
        .flat_map(|part| [&[22, 3, 1, 0, part.len() as u8][..], part].concat())
        .collect();
    vec![
        hello,
        twice,
        in_pieces,
        vec![21, 3, 3, 0, 2, 1, 0],
        vec![22, 3, 3, 0xFF, 0xFF],
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
    ]
}

pub(super) fn run_hello(input: &[u8]) {
    let mut session = ServerConnection::new(SERVER.config()).unwrap_or_else(|error| panic!("{error}"));
    let mut rest = input;
    while !rest.is_empty() {
        if session.read_tls(&mut rest).is_err() || session.process_new_packets().is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    while session.wants_write() && session.write_tls(&mut answer).is_ok() {}
    assert!(answer.len() < 64 << 10, "{} bytes of answer", answer.len());
}

pub(super) fn tokens() -> Vec<Vec<u8>> {
    vec![b"\0cassandra\0cassandra".to_vec(), b"other\0user\0password".to_vec(), b"\0\0".to_vec(), Vec::new()]
}

pub(super) fn run_token(input: &[u8]) {
    if let Ok((user, password)) = helenus_cql::sasl_plain(input) {
        assert!(!user.is_empty() && !password.is_empty());
        assert!(!user.contains('\0') && !password.contains('\0'));
    }
}
