//! What a server that others reach asks of them: it is not started open by mistake, and guessing passwords takes time.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;

use end_to_end::raw::{AUTH_SUCCESS, Raw};
use end_to_end::{Server, refused, tool};
use tempfile::TempDir;

const BAD_CREDENTIALS: i32 = 0x0100;
const OVERLOADED: i32 = 0x1001;
const PROTOCOL: i32 = 0x000A;

/// This machine's address on a network, if it has one beside the loopback.
fn own_address() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then(|| address.to_string())
}

/// The address that the server printed at its start after a key word.
fn printed(server: &Server, word: &str) -> String {
    let line = server.head().iter().find(|line| line.split_whitespace().next() == Some(word));
    let line = line.unwrap_or_else(|| panic!("no {word} in {:?}", server.head()));
    line.split_whitespace().nth(1).expect("an address").to_owned()
}

/// The answer of the HTTP port, with a header of the request.
fn get(address: &str, path: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connect");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{header}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_server_that_others_reach_is_not_started_without_a_login() {
    let folder = TempDir::with_prefix("helenus-exposure-").expect("a temporary directory");
    let config = folder.path().join("server.yaml");
    let config_text = config.to_str().expect("UTF-8");
    let near = ["--listen", "127.0.0.1:0"];
    for (yaml, arguments, open) in [
        ("", &["--listen", "0.0.0.0:0"][..], &["CQL"][..]),
        ("", &["--listen", "[::]:0"], &["CQL"]),
        ("", &[near[0], near[1], "--rpc", "0.0.0.0:0"], &["RPC"]),
        ("", &[near[0], near[1], "--http", "0.0.0.0:0"], &["HTTP"]),
        ("rpc_address: 0.0.0.0\nbroadcast_rpc_address: 127.0.0.1\n", &[], &["CQL"]),
        (
            "authenticator: AllowAllAuthenticator\n",
            &["--listen", "0.0.0.0:0", "--rpc", "[::]:0"],
            &["CQL", "RPC"],
        ),
    ] {
        std::fs::write(&config, yaml).expect("a configuration");
        let said = refused(&[&["serve", "--memory", "--config", config_text], arguments].concat());
        assert!(said.contains("--password-file FILE") && said.contains("--insecure-no-login"), "{said}");
        for name in ["CQL", "RPC", "HTTP"] {
            let is_named = said.contains(&format!("{name} listens on"));
            assert_eq!(is_named, open.contains(&name), "{arguments:?} {yaml}: {said}");
        }
    }
    for (yaml, arguments) in [
        ("authenticator: PasswordAuthenticator\n", &["--listen", "0.0.0.0:0", "--http", "0.0.0.0:0"][..]),
        ("insecure_no_login: true\n", &["--listen", "0.0.0.0:0"]),
        ("", &["--listen", "0.0.0.0:0", "--insecure-no-login"]),
        ("", &["--listen", "127.0.0.1:0"]),
    ] {
        std::fs::write(&config, yaml).expect("a configuration");
        Server::start_with(&[&["--memory", "--config", config_text], arguments].concat());
    }
}

#[test]
fn certificates_of_clients_stand_for_a_login() {
    let folder = TempDir::with_prefix("helenus-exposure-").expect("a temporary directory");
    let certs = folder.path().join("certs");
    tool(&["cert", certs.to_str().expect("UTF-8")]);
    let at = |name: &str| certs.join(name).to_str().expect("UTF-8").to_owned();
    let (cert, ca) = (at("server.pem"), at("ca.pem"));
    let all = [
        "--memory",
        "--listen",
        "0.0.0.0:0",
        "--rpc",
        "0.0.0.0:0",
        "--http",
        "0.0.0.0:0",
        "--tls-cert",
        &cert,
    ];
    for (more, open) in [
        (&[][..], &["CQL", "RPC", "HTTP"][..]),
        (&["--tls-client-ca", &ca], &["HTTP"]),
        (&["--tls-client-ca", &ca, "--http-tls", "optional"], &["HTTP"]),
        (&["--tls-client-ca", &ca, "--http-tls", "on", "--tls-optional"], &["CQL", "RPC"]),
        (&["--tls-client-ca", &ca, "--http-tls", "on", "--set", "native_transport_port_ssl=19143"], &["CQL"]),
    ] {
        let said = refused(&[&["serve"], &all[..], more].concat());
        assert!(said.contains("--tls-client-ca FILE"), "{said}");
        for name in ["CQL", "RPC", "HTTP"] {
            let is_named = said.contains(&format!("{name} listens on"));
            assert_eq!(is_named, open.contains(&name), "{more:?}: {said}");
        }
    }
    let server = Server::start_with(&[&all[..], &["--tls-client-ca", &ca, "--http-tls", "on"]].concat());
    assert!(!server.log().contains("asks nobody"), "{}", server.log());
}

#[test]
fn metrics_ask_for_a_login_where_others_reach_them() {
    let Some(address) = own_address() else { return };
    let far = format!("{address}:0");
    // With a directory: without one there is no socket for the admin tool.
    let logins = ["--authenticator", "PasswordAuthenticator", "--allow-default-password"];
    let server = Server::start_with(&[&logins[..], &["--http", &far]].concat());
    let http = printed(&server, "http");
    for (header, is_let_in) in [
        ("", false),
        // cassandra:cassandra
        ("Authorization: Basic Y2Fzc2FuZHJhOmNhc3NhbmRyYQ==\r\n", true),
        // cassandra:wrong
        ("Authorization: Basic Y2Fzc2FuZHJhOndyb25n\r\n", false),
        ("Authorization: Basic !\r\n", false),
        ("Authorization: Bearer Y2Fzc2FuZHJhOmNhc3NhbmRyYQ==\r\n", false),
    ] {
        let answer = get(&http, "/metrics", header);
        let expected = if is_let_in { "HTTP/1.1 200" } else { "HTTP/1.1 401" };
        assert!(answer.starts_with(expected), "{header}: {answer}");
        assert_eq!(answer.contains("helenus_"), is_let_in, "{header}: {answer}");
        assert_eq!(answer.to_lowercase().contains("www-authenticate: basic"), !is_let_in, "{answer}");
        // Probes of a supervisor have no password.
        assert!(get(&http, "/health", header).starts_with("HTTP/1.1 200"));
    }
    let warns = |server: &Server| {
        let told = server.head().iter().any(|line| line.contains("passwords in the clear"));
        let shown = server.admin(&["overview"]).contains("passwords in the clear");
        assert_eq!(told, shown, "where it is started, and to whoever looks later");
        told
    };
    assert!(warns(&server));
    let server = Server::start_with(&[&logins[..], &["--http", "127.0.0.1:0"]].concat());
    assert!(get(&printed(&server, "http"), "/metrics", "").starts_with("HTTP/1.1 200"), "on this machine");
    assert!(!warns(&server));
}

#[test]
fn a_storm_of_wrong_passwords_is_held_up_and_nobody_else_is() {
    let server = Server::start_with(&["--memory", "--authenticator", "PasswordAuthenticator"]);
    let (mut admin, reply) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
    assert_eq!(reply.opcode, AUTH_SUCCESS);
    admin.run("CREATE ROLE other WITH PASSWORD = 'p' AND LOGIN = true");
    let mut storm: Vec<Raw> = (0..60).map(|_| Raw::greeted(server.address(), 4).0).collect();
    for raw in &mut storm {
        raw.send_login(b"\0victim\0guess");
    }
    for _ in 0..3 {
        assert_eq!(Raw::login(server.address(), 4, ("other", "p")).1.opcode, AUTH_SUCCESS);
        assert_eq!(Raw::login(server.address(), 5, ("cassandra", "cassandra")).1.opcode, AUTH_SUCCESS);
    }
    let codes: Vec<i32> = storm.iter_mut().map(|raw| raw.receive().expect("an answer").error().0).collect();
    let of = |code: i32| codes.iter().filter(|found| **found == code).count();
    assert_eq!(of(BAD_CREDENTIALS) + of(OVERLOADED), codes.len(), "{codes:?}");
    assert!(of(BAD_CREDENTIALS) >= 3, "the first ones are checked: {codes:?}");
}

#[test]
fn a_frame_that_no_login_needs_ends_the_connection() {
    let server = Server::start_with(&["--memory", "--authenticator", "PasswordAuthenticator"]);
    for version in [4, 5] {
        let (mut raw, _) = Raw::greeted(server.address(), version);
        let (code, text) = raw.authenticate(&vec![b'a'; 1 << 20]).error();
        assert_eq!(code, PROTOCOL, "{text}");
        // With Cassandra's words where a whole segment has come.
        let is_cassandras = version == 5 && text.contains("authentication is still pending");
        assert!(is_cassandras || text.contains("before the login"), "{text}");
        assert!(raw.receive().is_none(), "closed");
    }
}

#[test]
fn the_owner_of_the_machine_sets_a_lost_password() {
    let folder = TempDir::with_prefix("helenus-exposure-").expect("a temporary directory");
    let file = folder.path().join("password");
    std::fs::write(&file, "found again\nsecond line\n").expect("a password");
    let file = file.to_str().expect("UTF-8");
    let server = Server::start_with(&["--authenticator", "PasswordAuthenticator"]);
    assert!(server.admin(&["overview"]).contains("has its default password"));
    server.admin(&["passwd", "--password-file", file]);
    assert!(!server.admin(&["overview"]).contains("has its default password"));
    let login = |user, password| Raw::login(server.address(), 4, (user, password));
    assert_eq!(login("cassandra", "cassandra").1.error().0, BAD_CREDENTIALS);
    let (mut admin, reply) = login("cassandra", "found again");
    assert_eq!(reply.opcode, AUTH_SUCCESS);
    admin.run("CREATE ROLE app WITH PASSWORD = 'one' AND LOGIN = true");
    server.admin(&["passwd", "app", "--password-file", file]);
    assert_eq!(login("app", "found again").1.opcode, AUTH_SUCCESS);
    assert_eq!(login("app", "one").1.error().0, BAD_CREDENTIALS);
    let mut log = String::new();
    let _infallible = write!(log, "{:?}{}", server.head(), server.log());
    assert!(!log.contains("found again"), "{log}");
}
