//! TLS in the tools: shell, stress, profile and cli reach a server by TLS, and say why when they cannot.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use end_to_end::{Server, binary, tool};
use tempfile::TempDir;

/// A folder with the files of `helenus cert`, beside others.
struct Certificates {
    folder: TempDir,
}

impl Certificates {
    fn make(more: &[&str]) -> Certificates {
        let folder = TempDir::with_prefix("helenus-tls-").expect("a temporary directory");
        let certs = folder.path().join("certs");
        tool(&[&["cert", certs.to_str().expect("UTF-8")], more].concat());
        Certificates { folder }
    }

    fn at(&self, name: &str) -> String {
        let path: PathBuf = self.folder.path().join("certs").join(name);
        path.to_str().expect("UTF-8").to_owned()
    }
}

fn run(args: &[&str]) -> Output {
    // No settings of the person who runs the tests.
    let variables = ["HELENUS_PASSWORD", "CQLSH_HOST", "CQLSH_PORT", "SSL_CERTFILE", "SSL_VALIDATE"];
    let mut command = Command::new(binary());
    variables.iter().for_each(|name| _ = command.env_remove(name));
    command.args(args).env("HOME", "/nowhere").output().expect("run helenus")
}

fn done(args: &[&str]) -> String {
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}\n{errors}");
    format!("{}{errors}", String::from_utf8_lossy(&output.stdout))
}

fn refused(args: &[&str]) -> String {
    let output = run(args);
    assert!(!output.status.success(), "{args:?}\n{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server of TLS that wants client certificates and logins, and serves the old interface.
fn strict(certificates: &Certificates) -> (Server, String, String) {
    let password = certificates.at("password");
    fs::write(&password, "a long password\n").expect("written");
    let server = Server::start_with(&[
        "--tls-cert",
        &certificates.at("server.pem"),
        "--tls-client-ca",
        &certificates.at("ca.pem"),
        "--password-file",
        &password,
        "--rpc",
        "127.0.0.1:0",
        // A check of a password takes long where the binary is not optimised.
        "--set",
        "handshake_timeout=60s",
    ]);
    let line = server.head().iter().find(|line| line.starts_with("rpc")).expect("the interface's address");
    let rpc = line.split_whitespace().nth(1).expect("an address").to_owned();
    (server, rpc, password)
}

#[test]
fn every_tool_reaches_a_server_of_tls_with_client_certificates_and_logins() {
    let certificates = Certificates::make(&[]);
    let (server, rpc, password) = strict(&certificates);
    let (ca, own, key) =
        (certificates.at("ca.pem"), certificates.at("client.crt"), certificates.at("client.key"));
    let access =
        ["--cafile", &ca, "--cert", &own, "--key", &key, "-u", "cassandra", "--password-file", &password];
    let address = server.address();
    let with = |args: &[&str]| done(&[args, &access].concat());
    for version in ["3", "4", "5"] {
        let select = "SELECT username, ssl_enabled FROM system_views.clients";
        let text = with(&["shell", address, "--protocol-version", version, "-e", select]);
        assert!(text.contains("cassandra") && text.contains("True"), "{text}");
    }
    // Many requests in flight over several connections, and answers longer than a record.
    with(&["stress", "insert", "--host", address, "--rows", "20000", "--quiet", "--fresh"]);
    with(&["stress", "read", "--host", address, "--rows", "20000", "--operations", "20000", "--quiet"]);
    let wide = ["--host", address, "--rows", "20000", "--keyspace", "wide", "--quiet"];
    with(&[&["stress", "load", "--threads", "2"], &wide[..]].concat());
    with(&[&["stress", "slice", "--limit", "5000", "--operations", "50"], &wide[..]].concat());
    // One request in flight blocks on the socket; a fixed rate waits for the time.
    let one =
        ["stress", "read", "--host", address, "--in-flight", "1", "--connections", "1", "--rows", "20000"];
    with(&[&one[..], &["--operations", "500", "--quiet"]].concat());
    let paced =
        ["stress", "read", "--host", address, "--rate", "2000", "--rows", "20000", "--operations", "500"];
    with(&[&paced[..], &["--quiet"]].concat());
    with(&["stress", "insert", "--rpc", &rpc, "--rows", "5000", "--quiet", "--keyspace", "old", "--fresh"]);
    let rows = ["--rows", "ten-thousand", "--cases", "names", "--repeats", "5", "--discard", "0"];
    with(&[&["profile", "--cql", address], &rows[..]].concat());
    let script = certificates.at("script.cli");
    fs::write(&script, "show keyspaces;\n").expect("written");
    let text = with(&["cli", "--address", &rpc, "-f", &script]);
    assert!(text.contains("stress"), "{text}");
}

#[test]
fn a_table_is_copied_to_a_file_and_back_by_tls() {
    let certificates = Certificates::make(&[]);
    let server = Server::start_with(&["--tls-cert", &certificates.at("server.pem")]);
    let (address, ca, file) = (server.address(), certificates.at("ca.pem"), certificates.at("rows.csv"));
    let shell = |text: &str| done(&["shell", address, "--cafile", &ca, "-e", text]);
    shell("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    shell("CREATE TABLE k.t (k int PRIMARY KEY, v text)");
    let rows: String = (0..3000).map(|key| format!("{key},{}\n", "x".repeat(200))).collect();
    fs::write(&file, &rows).expect("written");
    shell(&format!("COPY k.t FROM '{file}'"));
    shell(&format!("COPY k.t TO '{file}'"));
    let mut found: Vec<String> =
        fs::read_to_string(&file).expect("a file").lines().map(str::to_owned).collect();
    found.sort();
    let mut expected: Vec<&str> = rows.lines().collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_connection_that_cannot_be_says_why_and_what_to_do() {
    let certificates = Certificates::make(&[]);
    let others = Certificates::make(&[]);
    let server = Server::start_with(&["--tls-cert", &certificates.at("server.pem")]);
    let address = server.address();
    let port = address.rsplit_once(':').expect("a port").1;
    let ca = certificates.at("ca.pem");
    let shell = |address: &str, args: &[&str]| {
        refused(&[&["shell", address, "-e", "SELECT key FROM system.local"], args].concat())
    };
    let text = shell(address, &["--cafile", &others.at("ca.pem")]);
    assert!(text.contains("not trusted") && text.contains(&others.at("ca.pem")), "{text}");
    let text = shell(address, &["--tls"]);
    assert!(text.contains("not trusted") || text.contains("has no certificate to trust"), "{text}");
    assert!(text.contains("--cafile"), "{text}");
    let text = shell(&format!("127.0.0.2:{port}"), &["--cafile", &ca]);
    assert!(text.contains("cannot connect") || text.contains("not for 127.0.0.2"), "{text}");
    let text = shell(address, &[]);
    assert!(text.contains("--tls"), "{text}");
    let text = refused(&["stress", "read", "--host", address, "--rows", "1"]);
    assert!(text.contains("--tls"), "{text}");
    let text = shell(address, &["--cafile", &certificates.at("nothing.pem")]);
    assert!(text.contains("nothing.pem") && text.contains("No such file"), "{text}");
    let text = shell(address, &["--cafile", &certificates.at("server.key")]);
    assert!(text.contains("server.key") && text.contains("no certificate"), "{text}");
    let text = shell(address, &["--cafile", &ca, "--cert", &certificates.at("client.crt")]);
    assert!(text.contains("client.crt") && text.contains("no private key"), "{text}");
    let text = shell(address, &["--cafile", &ca, "--key", &certificates.at("client.key")]);
    assert!(text.contains("--cert"), "{text}");
    let pair = ["--cert", &certificates.at("client.crt"), "--key", &certificates.at("server.key")];
    let text = shell(address, &[&["--cafile", &ca], &pair[..]].concat());
    assert!(text.contains("is not that of the first certificate"), "{text}");

    let clear = Server::start();
    let text = shell(clear.address(), &["--cafile", &ca]);
    assert!(text.contains("no TLS on this port"), "{text}");

    let (strict, ..) = strict(&certificates);
    let text = shell(strict.address(), &["--cafile", &ca]);
    assert!(text.contains("--cert"), "{text}");
    let text = shell(strict.address(), &["--cafile", &ca, "--cert", &others.at("client.pem")]);
    assert!(text.contains("client.pem") || text.contains("--cert"), "{text}");
    // Nobody is asked for trust.
    done(&["shell", address, "--insecure", "-e", "SELECT key FROM system.local"]);
}

#[test]
fn a_certificate_of_another_host_is_named_with_its_own() {
    let certificates = Certificates::make(&["--host", "db.example"]);
    let server = Server::start_with(&["--tls-cert", &certificates.at("server.pem")]);
    let port = server.address().rsplit_once(':').expect("a port").1;
    // The same loopback by a name that the certificate does not have.
    let text = refused(&[
        "shell",
        &format!("[::ffff:127.0.0.1]:{port}"),
        "--cafile",
        &certificates.at("ca.pem"),
        "-e",
        "x",
    ]);
    assert!(text.contains("its certificate is for") && text.contains("db.example"), "{text}");
}

#[test]
fn cqlshrc_is_read_as_cqlsh_reads_it() {
    let certificates = Certificates::make(&[]);
    let server = Server::start_with(&[
        "--tls-cert",
        &certificates.at("server.pem"),
        "--tls-client-ca",
        &certificates.at("ca.pem"),
    ]);
    let rc = certificates.at("cqlshrc");
    let ssl = format!(
        "certfile = {}\nuserkey = {}\nusercert = {}\n",
        certificates.at("ca.pem"),
        certificates.at("client.key"),
        certificates.at("client.crt")
    );
    let port = server.address().rsplit_once(':').expect("a port").1;
    let select = ["--cqlshrc", &rc, "-e", "SELECT ssl_enabled FROM system_views.clients"];
    let write = |text: String| fs::write(&rc, text).expect("written");
    write(format!("[connection]\nssl = true\nfactory = cqlshlib.ssl.ssl_transport_factory\n[ssl]\n{ssl}"));
    // cqlsh does not compare names.
    for address in [server.address().to_owned(), format!("[::ffff:127.0.0.1]:{port}")] {
        let text = done(&[&["shell", &address], &select[..]].concat());
        assert!(text.contains("True") && text.contains("factory"), "{text}");
    }
    write(format!("[ssl]\n{ssl}"));
    done(&[&["shell", server.address(), "--ssl"], &select[..]].concat());
    refused(&[&["shell", server.address()], &select[..]].concat());
    write(format!("[ssl]\n{}validate = false\n", ssl.replace("certfile", "; certfile")));
    done(&[&["shell", server.address(), "--ssl"], &select[..]].concat());
    write(format!("[ssl]\n{}", ssl.replace("certfile", "; certfile")));
    let text = refused(&[&["shell", server.address(), "--ssl"], &select[..]].concat());
    assert!(text.contains("--cafile"), "{text}");
}
