//! TLS on the native port: with certificates of `helenus cert`, by a client of its own that can also send garbage.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use end_to_end::raw::{ERROR, READY, RESULT, Raw, STARTUP, frame, query, startup};
use end_to_end::{Server, refused, tool};
use helenus_tls::rustls::{ClientConnection, StreamOwned};
use helenus_tls::{ClientOptions, ReadFile, ServerTrust, client_config, server_name};
use tempfile::TempDir;

/// A folder with the files of `helenus cert`.
struct Certificates {
    folder: TempDir,
}

impl Certificates {
    fn make() -> Certificates {
        let folder = TempDir::with_prefix("helenus-tls-").expect("a temporary directory");
        tool(&["cert", folder.path().join("certs").to_str().expect("UTF-8")]);
        Certificates { folder }
    }

    fn at(&self, name: &str) -> String {
        let path: PathBuf = self.folder.path().join("certs").join(name);
        path.to_str().expect("UTF-8").to_owned()
    }
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

fn connect(address: &str, certificates: &Certificates, own: Option<&str>) -> Stream {
    let options = ClientOptions {
        trust: ServerTrust::File(certificates.at("ca.pem")),
        certificate: own.map(|name| certificates.at(name)),
        key: None,
    };
    let read: ReadFile = Arc::new(|path: &Path| fs::read(path));
    let config = client_config(&options, &read).expect("certificates");
    let socket = TcpStream::connect(address).expect("a server");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
    let session =
        ClientConnection::new(config, server_name("127.0.0.1").expect("a name")).expect("a session");
    StreamOwned::new(session, socket)
}

/// Sends a frame of version 4 and reads its answer: opcode and body.
fn ask(stream: &mut Stream, opcode: u8, body: &[u8]) -> std::io::Result<(u8, Vec<u8>)> {
    stream.write_all(&frame(4, 0, 0, opcode, body))?;
    stream.flush()?;
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body)?;
    Ok((head[4], body))
}

fn ready(stream: &mut Stream) -> std::io::Result<()> {
    assert_eq!(ask(stream, STARTUP, &startup())?.0, READY);
    Ok(())
}

fn select(stream: &mut Stream, text: &str) -> Vec<u8> {
    let (opcode, body) = ask(stream, 0x07, &query(4, text, &[])).expect("an answer");
    assert_eq!(opcode, RESULT, "{}", String::from_utf8_lossy(&body));
    body
}

fn contains(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Whether the server closes a connection after these bytes, and answers none of them in the clear.
fn is_closed_after(address: &str, bytes: &[u8]) -> bool {
    let mut socket = TcpStream::connect(address).expect("a server");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
    let _may_be_closed_already = socket.write_all(bytes);
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        // An alert at most.
        Ok(_) => answer.first().is_none_or(|first| *first == 21),
        Err(error) => matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
    }
}

#[test]
fn cert_makes_files_of_their_owner_alone_and_overwrites_none() {
    let certificates = Certificates::make();
    let folder = certificates.folder.path().join("certs");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).expect("a folder") {
        let entry = entry.expect("an entry");
        assert_eq!(entry.metadata().expect("a file").mode() & 0o777, 0o600);
        names.push(entry.file_name().into_string().expect("UTF-8"));
    }
    names.sort();
    let mut all = vec!["ca.key".to_owned(), "ca.pem".to_owned(), "ca.jks".to_owned(), "ca.p12".to_owned()];
    for name in ["server", "client"] {
        all.extend(["crt", "jks", "key", "p12", "pem"].map(|ending| format!("{name}.{ending}")));
    }
    all.sort();
    assert_eq!(names, all);
    assert_eq!(fs::metadata(&folder).expect("a folder").mode() & 0o777, 0o700);
    let error = refused(&["cert", folder.to_str().expect("UTF-8")]);
    assert!(error.contains("is there already"), "{error}");
}

#[test]
fn a_port_of_tls_serves_those_who_use_it_and_closes_the_others() {
    let certificates = Certificates::make();
    let server = Server::start_with(&["--tls-cert", &certificates.at("server.pem")]);
    let mut client = connect(server.address(), &certificates, None);
    ready(&mut client).expect("READY");
    let body =
        select(&mut client, "SELECT ssl_enabled, ssl_protocol, ssl_cipher_suite FROM system_views.clients");
    assert!(contains(&body, "TLSv1.3") && contains(&body, "TLS_AES_"), "{body:?}");

    let in_the_clear = frame(4, 0, 0, STARTUP, &startup());
    // The head of a record of a handshake, its body garbage, and one that is longer than a record may be.
    let garbage = [&[22, 3, 1, 0, 5][..], b"hello"].concat();
    let too_long = [&[22, 3, 3, 0xFF, 0xFF][..], &[7; 100]].concat();
    let not_hello = [&[22, 3, 3, 0, 4, 2, 0, 0, 0][..]].concat();
    for bytes in [&in_the_clear[..], b"GET / HTTP/1.1\r\n\r\n", &[0; 64], &garbage, &too_long, &not_hello] {
        assert!(is_closed_after(server.address(), bytes), "{bytes:?}");
    }
    // Garbage after the handshake ends that connection.
    let mut harmed = connect(server.address(), &certificates, None);
    ready(&mut harmed).expect("READY");
    harmed
        .sock
        .write_all(&[23, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20])
        .expect("sent");
    assert!(ask(&mut harmed, STARTUP, &startup()).is_err());
    // The first connection has felt nothing of it, and long values pass.
    select(&mut client, "SELECT key FROM system.local");
    let long = "x".repeat(3 << 20);
    select(
        &mut client,
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    select(&mut client, "CREATE TABLE k.t (k int PRIMARY KEY, v text)");
    select(&mut client, &format!("INSERT INTO k.t (k, v) VALUES (1, '{long}')"));
    assert!(contains(&select(&mut client, "SELECT v FROM k.t WHERE k = 1"), &long));
    assert!(server.log().contains("it does not use TLS"), "{}", server.log());
}

#[test]
fn one_port_serves_both_where_tls_is_optional() {
    let certificates = Certificates::make();
    let server = Server::start_with(&["--tls-cert", &certificates.at("server.pem"), "--tls-optional"]);
    ready(&mut connect(server.address(), &certificates, None)).expect("READY");
    for version in [3, 4, 5] {
        Raw::ready(server.address(), version).run("SELECT key FROM system.local");
    }
    let mut old = Raw::connect(server.address(), 4);
    old.send(&[1, 0, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(old.receive().expect("an answer").opcode, ERROR);
}

#[test]
fn a_client_certificate_is_required_where_there_are_authorities_for_it() {
    let certificates = Certificates::make();
    let own = certificates.at("server.crt");
    let server = Server::start_with(&[
        "--tls-cert",
        &own,
        "--tls-key",
        &certificates.at("server.key"),
        "--tls-client-ca",
        &certificates.at("ca.pem"),
    ]);
    ready(&mut connect(server.address(), &certificates, Some("client.pem"))).expect("READY");
    assert!(ready(&mut connect(server.address(), &certificates, None)).is_err());
    let others = Certificates::make();
    fs::copy(others.at("client.pem"), certificates.at("other.pem")).expect("copied");
    assert!(ready(&mut connect(server.address(), &certificates, Some("other.pem"))).is_err());
}

#[test]
fn a_second_port_is_for_tls_while_the_first_is_in_the_clear() {
    let certificates = Certificates::make();
    let config = certificates.at("cassandra.yaml");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let encrypted = free.local_addr().expect("its address").to_string();
    drop(free);
    let (_, port) = encrypted.rsplit_once(':').expect("a port");
    let pem = format!(
        "client_encryption_options:\n  enabled: true\n  keystore: {}\n  ssl_context_factory:\n    class_name: org.apache.cassandra.security.PEMBasedSslContextFactory\n",
        certificates.at("server.pem")
    );
    fs::write(&config, format!("native_transport_port_ssl: {port}\n{pem}")).expect("written");
    let server = Server::start_with(&["--config", &config]);
    Raw::ready(server.address(), 4).run("SELECT key FROM system.local");
    ready(&mut connect(&encrypted, &certificates, None)).expect("READY");
    assert!(is_closed_after(&encrypted, &frame(4, 0, 0, STARTUP, &startup())));
}

#[test]
fn a_start_without_what_was_asked_for_is_refused() {
    let certificates = Certificates::make();
    let data = certificates.at("data");
    let serve =
        |args: &[&str]| refused(&[&["serve", "--listen", "127.0.0.1:0", "--data", &data][..], args].concat());
    let error = serve(&["--tls-cert", &certificates.at("server.crt")]);
    assert!(error.contains("server.crt: it has no private key"), "{error}");
    let error =
        serve(&["--tls-cert", &certificates.at("server.crt"), "--tls-key", &certificates.at("client.key")]);
    assert!(error.contains("the private key is not that of the first certificate"), "{error}");
    let error = serve(&["--tls-optional"]);
    assert!(error.contains("give tls_cert"), "{error}");
    let config = certificates.at("cassandra.yaml");
    fs::write(&config, "native_transport_port_ssl: 9142\n").expect("written");
    let error = serve(&["--config", &config]);
    assert!(error.contains("Encryption must be enabled in client_encryption_options"), "{error}");
}
