//! Bad files and settings of TLS: each is refused with its file, the reason and what to do, and never does a server start
//! without what was asked for.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use end_to_end::{Server, binary, refused, tool};
use helenus_tls::rustls::crypto::ring;
use helenus_tls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use helenus_tls::rustls::{ServerConfig, ServerConnection};
use helenus_tls::{Authority, CertificateRequest, MadeCertificate, StoreSeal, key_store};
use tempfile::TempDir;

const DAY_S: i64 = 86_400;
/// The password of the stores that `helenus cert` makes.
const PASSWORD: &str = "changeit";

/// A folder with the files of `helenus cert`, and bad ones beside them.
struct Files {
    folder: TempDir,
}

impl Files {
    fn make() -> Files {
        let folder = TempDir::with_prefix("helenus-bad-tls-").expect("a temporary directory");
        tool(&["cert", folder.path().join("certs").to_str().expect("UTF-8")]);
        Files { folder }
    }

    fn at(&self, name: &str) -> String {
        self.folder.path().join("certs").join(name).to_str().expect("UTF-8").to_owned()
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.at(name), bytes).expect("written");
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).expect("a file")
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).expect("a file")
    }

    /// The words of a start that is refused, by a `cassandra.yaml` with these options of TLS.
    fn refusal(&self, options: &str) -> String {
        let config = self.at("cassandra.yaml");
        fs::write(&config, format!("client_encryption_options:\n{options}")).expect("written");
        self.refused_start(&["--config", &config])
    }

    fn refused_start(&self, args: &[&str]) -> String {
        let data = self.at("data");
        refused(&[&["serve", "--listen", "127.0.0.1:0", "--data", &data][..], args].concat())
    }

    /// Options that name a store and its password.
    fn stores(&self, keystore: &str, password: &str, more: &str) -> String {
        format!("  enabled: true\n  keystore: {}\n  keystore_password: {password}\n{more}", self.at(keystore))
    }

    /// Options that name a file of PEM.
    fn pem(&self, keystore: &str, more: &str) -> String {
        let factory = "  ssl_context_factory: {class_name: PEMBasedSslContextFactory}\n";
        format!("  enabled: true\n  keystore: {}\n{factory}{more}", self.at(keystore))
    }

    /// Options that ask clients for certificates, which this store checks.
    fn asking(&self, truststore: &str, password: &str) -> String {
        let text = format!(
            "  require_client_auth: true\n  truststore: {}\n  truststore_password: {password}\n",
            self.at(truststore)
        );
        self.stores("server.p12", PASSWORD, &text)
    }
}

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    i64::try_from(since.as_secs()).expect("a time")
}

/// An authority whose certificates are valid for 30 days from about this many days from now on.
fn authority(days_from_now: i64) -> Authority {
    Authority::new("authority of a test", now_s() + days_from_now * DAY_S, 30).expect("an authority")
}

fn made(authority: &Authority, is_for_server: bool) -> MadeCertificate {
    let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let request = CertificateRequest { name: "test".to_owned(), hosts, uris: Vec::new(), is_for_server };
    authority.sign(&request).expect("a certificate")
}

fn both(made: &MadeCertificate) -> String {
    format!("{}{}", made.key, made.certificate)
}

/// Files that are damaged in the ways that files are: empty, cut, garbled, of another kind, or no files at all.
fn damage(files: &Files) {
    files.put("empty", "");
    files.put("garbled", [0x9C; 3000]);
    files.put("text", "This is no certificate.\n");
    files.put("no-base64.pem", "-----BEGIN CERTIFICATE-----\n&&&&\n-----END CERTIFICATE-----\n");
    files.put("no-der.pem", "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n");
    fs::create_dir(files.at("directory")).expect("a directory");
    symlink("loop", files.at("loop")).expect("a link");
    for ending in ["p12", "jks"] {
        let whole = files.bytes(&format!("server.{ending}"));
        files.put(&format!("cut.{ending}"), &whole[..whole.len() / 2]);
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x40;
        files.put(&format!("flipped.{ending}"), &flipped);
    }
    // An entry count that the file does not have.
    let mut many = files.bytes("server.jks");
    many[8..12].fill(0xFF);
    files.put("many.jks", &many);
    // A length of DER that is beyond the end.
    files.put("long.p12", [&[0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 2, 1, 3][..], &[0; 50]].concat());
}

/// Starts with each option and asserts that the words of the refusal name the file and what is wrong with it.
fn assert_refused(files: &Files, cases: &[(String, &str, &[&str])]) {
    for (options, file, words) in cases {
        let said = files.refusal(options);
        for word in [&[*file][..], words].concat() {
            assert!(said.contains(word), "{options}\nshould say {word:?}:\n{said}");
        }
        assert!(!said.contains("panicked") && !said.contains("listening"), "{said}");
        for secret in ["wrong-password", PASSWORD] {
            assert!(!said.contains(secret), "a password is shown: {said}");
        }
    }
}

#[test]
fn a_key_store_that_cannot_be_used_is_named_with_its_reason() {
    let files = Files::make();
    damage(&files);
    let key = |file: &str| files.stores(file, PASSWORD, "");
    let no_store: &[&str] = &["neither a PKCS#12 nor a JKS store", "PEMBasedSslContextFactory"];
    let password: &[&str] = &["keystore_password is not its password"];
    let damaged: &[&str] = &["it is damaged"];
    let of_password = |file: &str| files.stores(file, "wrong-password", "");
    assert_refused(
        &files,
        &[
            (of_password("server.p12"), "server.p12", password),
            (of_password("server.jks"), "server.jks", password),
            (files.stores("server.p12", "", ""), "server.p12", &["keystore_password"]),
            (key("ca.p12"), "ca.p12", &["no private key", "trust store"]),
            (key("ca.jks"), "ca.jks", &["no private key", "trust store"]),
            (key("empty"), "empty", no_store),
            (key("garbled"), "garbled", no_store),
            (key("text"), "text", no_store),
            (key("server.pem"), "server.pem", no_store),
            (key("cut.p12"), "cut.p12", &[]),
            (key("long.p12"), "long.p12", no_store),
            (key("cut.jks"), "cut.jks", damaged),
            (key("many.jks"), "many.jks", damaged),
            (key("flipped.p12"), "flipped.p12", &[]),
            (key("flipped.jks"), "flipped.jks", &[]),
            (key("absent"), "cannot read keystore", &["absent", "No such file"]),
            (key("directory"), "cannot read keystore", &["directory", "Is a directory"]),
            (key("loop"), "cannot read keystore", &["loop", "symbolic links"]),
            (key("server.p12/x"), "cannot read keystore", &["server.p12/x", "Not a directory"]),
        ],
    );
}

#[test]
fn pem_that_cannot_be_used_is_named_with_its_reason() {
    let files = Files::make();
    damage(&files);
    let server = files.text("server.crt");
    files.put("other-key.pem", format!("{}{server}", files.text("client.key")));
    files.put("cut-key.pem", files.text("server.pem").replacen("-----END", "-----CUT", 1));
    files.put(
        "no-key-bytes.pem",
        format!("-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n{server}"),
    );
    files.put("no-der-both.pem", format!("{}{}", files.text("server.key"), files.text("no-der.pem")));
    let key = |file: &str| files.pem(file, "");
    assert_refused(
        &files,
        &[
            (key("server.crt"), "server.crt", &["no private key"]),
            (key("server.key"), "server.key", &["no certificate"]),
            (key("other-key.pem"), "other-key.pem", &["not that of the first certificate"]),
            (key("cut-key.pem"), "cut-key.pem", &["no private key"]),
            (key("no-key-bytes.pem"), "no-key-bytes.pem", &["private key cannot be used"]),
            (key("no-der-both.pem"), "no-der-both.pem", &["damaged"]),
            (key("no-base64.pem"), "no-base64.pem", &["not Base64"]),
            (key("empty"), "empty", &["no certificate"]),
            (key("text"), "text", &["no certificate"]),
            (key("garbled"), "garbled", &["not PEM"]),
            (key("server.p12"), "server.p12", &["not PEM", "store_type"]),
            (key("absent"), "cannot read keystore", &["absent", "No such file"]),
            (key("directory"), "cannot read keystore", &["directory", "Is a directory"]),
        ],
    );
    // The flags say the same.
    for (cert, key, words) in [
        ("directory", None, "Is a directory"),
        ("server.crt", Some("directory"), "Is a directory"),
        ("server.crt", Some("absent"), "No such file"),
        ("server.crt", Some("empty"), "no private key"),
        ("server.crt", Some("client.key"), "not that of the first certificate"),
        ("empty", Some("server.key"), "no certificate"),
    ] {
        let (cert, key) = (files.at(cert), key.map(|key| files.at(key)));
        let mut args = vec!["--tls-cert", &*cert];
        args.extend(key.iter().flat_map(|key| ["--tls-key", key.as_str()]));
        let said = files.refused_start(&args);
        // Without a certificate the key is not looked at.
        let named = key.as_ref().filter(|_| words != "no certificate").unwrap_or(&cert);
        assert!(said.contains(words) && said.contains(named), "{args:?}: {said}");
    }
}

#[test]
fn a_trust_store_that_cannot_be_used_is_named_with_its_reason() {
    let files = Files::make();
    damage(&files);
    let with = |file: &str| files.asking(file, PASSWORD);
    let pem = |file: &str| {
        let text = format!("  require_client_auth: true\n  truststore: {}\n", files.at(file));
        files.pem("server.pem", &text)
    };
    // A store of Java without any entry.
    let seal = [&b"\xFE\xED\xFE\xED\0\0\0\x02\0\0\0\0"[..]].concat();
    files.put("no-entry.jks", [&seal[..], &[0; 20]].concat());
    assert_refused(
        &files,
        &[
            (
                files.asking("ca.p12", "wrong-password"),
                "ca.p12",
                &["truststore_password is not its password"],
            ),
            (
                files.asking("ca.jks", "wrong-password"),
                "ca.jks",
                &["truststore_password is not its password"],
            ),
            (files.asking("no-entry.jks", "\"\""), "no-entry.jks", &["no certificate to trust"]),
            (with("empty"), "empty", &["neither a PKCS#12 nor a JKS store"]),
            (with("cut.jks"), "cut.jks", &["damaged"]),
            (with("absent"), "cannot read truststore", &["absent", "No such file"]),
            (with("directory"), "cannot read truststore", &["directory", "Is a directory"]),
            (pem("empty"), "empty", &["no certificate to trust"]),
            (pem("server.key"), "server.key", &["no certificate to trust"]),
            (pem("no-der.pem"), "no-der.pem", &["certificate 1 is damaged"]),
            (pem("no-base64.pem"), "no-base64.pem", &["not Base64"]),
            (pem("garbled"), "garbled", &["not PEM"]),
        ],
    );
}

#[test]
fn a_certificate_of_another_time_serves_and_the_log_says_its_day() {
    let files = Files::make();
    let seal = StoreSeal { password: PASSWORD, time_ms: 0, fill: &|bytes| bytes.fill(7) };
    for (days, name, words) in
        [(-90, "expired", "its certificate expired on "), (90, "young", "its certificate is valid from ")]
    {
        let authority = authority(days);
        let made = made(&authority, true);
        files.put(&format!("{name}.pem"), both(&made));
        let stores = key_store(&made, authority.own(), &seal);
        files.put(&format!("{name}.p12"), stores.pkcs12);
        files.put(&format!("{name}.jks"), stores.jks);
        for (ending, options) in [
            ("pem", files.pem(&format!("{name}.pem"), "")),
            ("p12", files.stores(&format!("{name}.p12"), PASSWORD, "")),
            ("jks", files.stores(&format!("{name}.jks"), PASSWORD, "")),
        ] {
            let config = files.at("cassandra.yaml");
            fs::write(&config, format!("client_encryption_options:\n{options}")).expect("written");
            let server = Server::start_with(&["--config", &config]);
            logged(&server, words);
            let said = server.log();
            let day = said.split_once(words).unwrap_or_else(|| panic!("{said}")).1;
            let is_day = |text: &str| text.len() == 10 && text.matches('-').count() == 2;
            assert!(is_day(day.get(..10).expect("a day")), "{said}");
            assert!(said.contains(&format!("{name}.{ending}")), "{said}");
        }
    }
}

#[test]
fn unknown_names_and_values_are_refused_with_those_there_are() {
    let files = Files::make();
    let with = |line: &str| files.stores("server.p12", PASSWORD, &format!("  {line}\n"));
    let cases: &[(&str, &str, &[&str])] = &[
        ("accepted_protocols: [SSLv3, TLSv1.1]", "accepted_protocols", &["TLSv1.3, TLSv1.2"]),
        ("protocol: SSLv3", "accepted_protocols", &["TLSv1.3, TLSv1.2"]),
        ("cipher_suites: [TLS_RSA_WITH_RC4_128_MD5]", "cipher_suites", &["TLS_AES_256_GCM_SHA384"]),
        ("store_type: PEM", "store_type", &["JKS, PKCS12"]),
        ("require_client_auth: perhaps", "require_client_auth", &["true, false, optional"]),
        ("optional: 3", "optional", &["true or false"]),
        (
            "ssl_context_factory: {class_name: com.acme.Factory}",
            "ssl_context_factory",
            &["PEMBasedSslContextFactory"],
        ),
        ("key_store: /x", "key_store", &["keystore"]),
    ];
    let cases: Vec<_> = cases.iter().map(|(line, name, words)| (with(line), *name, *words)).collect();
    assert_refused(&files, &cases);
    // One that is known remains: the others are named in a warning.
    let config = files.at("mixed.yaml");
    let text = with("accepted_protocols: [TLSv1.1, TLSv1.2]");
    fs::write(&config, format!("client_encryption_options:\n{text}")).expect("written");
    let server = Server::start_with(&["--config", &config]);
    logged(&server, "TLSv1.1 is not supported");
}

/// TLS that is not enabled is optional where the key store is there: then a store that cannot be used is an error too.
#[test]
fn optional_tls_does_not_vanish_with_a_bad_store() {
    let files = Files::make();
    damage(&files);
    let with = |file: &str, password: &str| {
        format!("  enabled: false\n  keystore: {}\n  keystore_password: {password}\n", files.at(file))
    };
    assert_refused(
        &files,
        &[
            (with("server.p12", "wrong-password"), "server.p12", &["keystore_password is not its password"]),
            (with("empty", PASSWORD), "empty", &["neither a PKCS#12 nor a JKS store"]),
            (with("directory", PASSWORD), "cannot read keystore", &["Is a directory"]),
            (with("loop", PASSWORD), "cannot read keystore", &["symbolic links"]),
        ],
    );
}

/// Waits for words in the log, which is written behind the answers.
fn logged(server: &Server, words: &str) {
    let began = Instant::now();
    while !server.log().contains(words) {
        assert!(began.elapsed() < Duration::from_secs(60), "no {words:?} in {}", server.log());
        std::thread::yield_now();
    }
}

fn shell(address: &str, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    for name in ["HELENUS_PASSWORD", "CQLSH_HOST", "CQLSH_PORT", "SSL_CERTFILE", "SSL_VALIDATE"] {
        command.env_remove(name);
    }
    command.args(["shell", address, "-e", "SELECT key FROM system.local"]).args(args);
    command.env("HOME", "/nowhere").output().expect("run the shell")
}

fn refused_shell(address: &str, args: &[&str]) -> String {
    let output = shell(address, args);
    assert!(!output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_client_whose_certificate_is_of_another_time_is_refused_and_told_why() {
    let files = Files::make();
    let (old, young, good) = (authority(-90), authority(90), authority(0));
    let all = [&old, &young, &good].map(|authority| authority.own().certificate.clone()).concat();
    files.put("all.pem", all);
    for (name, authority) in [("old.pem", &old), ("young.pem", &young), ("good.pem", &good)] {
        files.put(name, both(&made(authority, false)));
    }
    let (cert, trusted, ca) = (files.at("server.pem"), files.at("all.pem"), files.at("ca.pem"));
    let serve = || Server::start_with(&["--tls-cert", &cert, "--tls-client-ca", &trusted]);
    let server = serve();
    let with = |name: &str| ["--cafile".to_owned(), ca.clone(), "--cert".to_owned(), files.at(name)];
    let args = |name: &str| with(name);
    let good = args("good.pem");
    let output = shell(server.address(), &good.each_ref().map(String::as_str));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (name, words) in [("old.pem", "expired"), ("young.pem", "not valid yet")] {
        // A server of its own, because the log has few lines about failed handshakes.
        let server = serve();
        let said = refused_shell(server.address(), &args(name).each_ref().map(String::as_str));
        assert!(said.contains(name), "{said}");
        if name == "old.pem" {
            assert!(said.contains(words), "{said}");
        }
        logged(&server, words);
    }
}

/// Serves handshakes of TLS with a certificate, and nothing behind them, until dropped clients have come.
fn serve_handshakes(made: &MadeCertificate, clients: usize) -> (String, JoinHandle<()>) {
    let chain = vec![CertificateDer::from(made.certificate_der.clone())];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.key_der.clone()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocols")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a certificate");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address").to_string();
    let thread = std::thread::spawn(move || {
        for _ in 0..clients {
            let (mut socket, _) = listener.accept().expect("a client");
            socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
            let mut session = ServerConnection::new(Arc::clone(&config)).expect("a session");
            // The client ends it, with an alert.
            let _ended = session.complete_io(&mut socket);
        }
    });
    (address, thread)
}

#[test]
fn our_tools_refuse_a_server_whose_certificate_is_of_another_time() {
    let files = Files::make();
    for (days, words) in [(-90, "its certificate expired on "), (90, "its certificate is valid from ")] {
        let authority = authority(days);
        files.put("trusted.pem", &authority.own().certificate);
        let own = files.at("trusted.pem");
        let (address, thread) = serve_handshakes(&made(&authority, true), 2);
        let said = refused_shell(&address, &["--cafile", &own]);
        assert!(said.contains(words) && said.contains(&address), "{said}");
        let said = refused(&["stress", "read", "--host", &address, "--rows", "1", "--cafile", &own]);
        assert!(said.contains(words), "{said}");
        thread.join().expect("handshakes");
    }
}

#[test]
fn files_that_a_tool_cannot_use_are_named_with_their_option() {
    let files = Files::make();
    damage(&files);
    let ca = files.at("ca.pem");
    let client = files.at("client.crt");
    for (file, words) in [
        ("directory", "Is a directory"),
        ("loop", "symbolic links"),
        ("empty", "no certificate"),
        ("garbled", "not PEM"),
        ("server.p12", "not PEM"),
        ("no-base64.pem", "not Base64"),
        ("no-der.pem", "damaged"),
    ] {
        let said = refused_shell("127.0.0.1:1", &["--cafile", &files.at(file)]);
        assert!(said.contains(words) && said.contains(&files.at(file)), "--cafile {file}: {said}");
        let said = refused_shell(
            "127.0.0.1:1",
            &["--cafile", &ca, "--cert", &files.at(file), "--key", &files.at("client.key")],
        );
        assert!(said.contains(words) && said.contains(&files.at(file)), "--cert {file}: {said}");
    }
    for (file, words) in [
        ("directory", "Is a directory"),
        ("empty", "no private key"),
        ("garbled", "not PEM"),
        ("server.key", "not that of the first certificate"),
    ] {
        let said =
            refused_shell("127.0.0.1:1", &["--cafile", &ca, "--cert", &client, "--key", &files.at(file)]);
        assert!(said.contains(words) && said.contains(&files.at(file)), "--key {file}: {said}");
    }
}

#[test]
fn a_running_server_keeps_its_certificate_when_the_file_breaks() {
    let files = Files::make();
    let (cert, ca) = (files.at("server.pem"), files.at("ca.pem"));
    let server = Server::start_with(&["--tls-cert", &cert]);
    let whole = files.text("server.pem");
    for (broken, words) in [
        (String::new(), "no certificate"),
        (whole.replacen("-----END", "-----CUT", 1), "no private key"),
        (
            format!("{}{}", files.text("client.key"), files.text("server.crt")),
            "not that of the first certificate",
        ),
        (both(&made(&authority(-90), true)), "its certificate expired on"),
    ] {
        files.put("server.pem", &broken);
        let said = refused(&["admin", "reloadssl", "--data", server.data().to_str().expect("UTF-8")]);
        assert!(
            said.contains("stay in use") && said.contains(words) && said.contains("server.pem"),
            "{said}"
        );
        let output = shell(server.address(), &["--cafile", &ca]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    logged(&server, "the former keys and certificates stay in use");
    // A whole one is taken over.
    let others = Files::make();
    files.put("server.pem", others.text("server.pem"));
    server.admin(&["reloadssl"]);
    let output = shell(server.address(), &["--cafile", &others.at("ca.pem")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    refused_shell(server.address(), &["--cafile", &ca]);
}
