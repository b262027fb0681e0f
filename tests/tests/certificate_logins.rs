//! Logins by the certificate that a client shows to TLS: identities of both kinds, their roles, and what is refused.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use end_to_end::raw::{AUTH_RESPONSE, AUTH_SUCCESS, AUTHENTICATE, ERROR, Raw, STARTUP, frame, startup};
use end_to_end::{Server, binary, refused, tool};
use helenus_tls::rustls::{ClientConnection, StreamOwned};
use helenus_tls::{ClientOptions, ReadFile, ServerTrust, client_config, server_name};
use tempfile::TempDir;

const BAD_CREDENTIALS: i32 = 0x0100;
const IDENTITY: &str = "spiffe://example/app";

struct Certificates(TempDir);

impl Certificates {
    /// A client's certificate has the common name `app` and the URI.
    fn make(uri: &str) -> Certificates {
        let folder = TempDir::with_prefix("helenus-identities-").expect("a temporary directory");
        let certs = folder.path().join("certs");
        tool(&["cert", certs.to_str().expect("UTF-8"), "--client", "app", "--client-uri", uri]);
        Certificates(folder)
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join("certs").join(name).to_str().expect("UTF-8").to_owned()
    }

    fn serve(&self, more: &[&str]) -> Server {
        let (cert, ca) = (self.at("server.pem"), self.at("ca.pem"));
        Server::start_with(&[&["--tls-cert", &cert, "--tls-client-ca", &ca], more].concat())
    }

    /// Connects with the client's certificate and logs in with an empty token: the class that asks, and the answer.
    fn log_in(&self, server: &Server) -> (String, Result<(), (i32, String)>) {
        let options = ClientOptions {
            trust: ServerTrust::File(self.at("ca.pem")),
            certificate: Some(self.at("client.pem")),
            key: None,
        };
        let read: ReadFile = Arc::new(|path: &Path| fs::read(path));
        let config = client_config(&options, &read).expect("certificates");
        let socket = TcpStream::connect(server.address()).expect("a server");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
        let name = server_name("127.0.0.1").expect("a name");
        let session = ClientConnection::new(config, name).expect("a session");
        let mut stream = StreamOwned::new(session, socket);
        let mut ask = |opcode: u8, body: &[u8]| {
            stream.write_all(&frame(4, 0, 0, opcode, body)).expect("sent");
            let mut head = [0; 9];
            stream.read_exact(&mut head).expect("an answer");
            let mut body = vec![0; u32::from_be_bytes([head[5], head[6], head[7], head[8]]) as usize];
            stream.read_exact(&mut body).expect("an answer");
            (head[4], body)
        };
        let (opcode, body) = ask(STARTUP, &startup());
        assert_eq!(opcode, AUTHENTICATE);
        let class = String::from_utf8_lossy(body.get(2..).expect("a class")).into_owned();
        let (opcode, body) = ask(AUTH_RESPONSE, &0_i32.to_be_bytes());
        if opcode == AUTH_SUCCESS {
            return (class, Ok(()));
        }
        assert_eq!(opcode, ERROR);
        let code = i32::from_be_bytes(body[..4].try_into().expect("a code"));
        (class, Err((code, String::from_utf8_lossy(&body[6..]).into_owned())))
    }
}

fn refusal(text: &str) -> Result<(), (i32, String)> {
    Err((BAD_CREDENTIALS, text.to_owned()))
}

#[test]
fn a_certificate_logs_in_as_the_role_of_its_identity_and_others_by_password() {
    let certificates = Certificates::make(IDENTITY);
    let server = certificates.serve(&[
        "--tls-optional",
        "--authenticator",
        "MutualTlsWithPasswordFallbackAuthenticator",
        "--certificate-validator",
        "SpiffeCertificateValidator",
    ]);
    let class = "org.apache.cassandra.auth.MutualTlsWithPasswordFallbackAuthenticator";
    let not_authorized = refusal(&format!("Certificate identity '{IDENTITY}' not authorized"));
    assert_eq!(certificates.log_in(&server), (class.to_owned(), not_authorized.clone()));

    let (mut owner, reply) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
    assert_eq!(reply.opcode, AUTH_SUCCESS);
    owner.run("CREATE ROLE app WITH LOGIN = true AND PASSWORD = 'pw'");
    owner.run("CREATE ROLE nobody");
    owner.run(&format!("ADD IDENTITY '{IDENTITY}' TO ROLE 'app'"));
    assert_eq!(certificates.log_in(&server).1, Ok(()));
    // The shell needs neither name nor password, over every version of the protocol.
    for version in ["3", "4", "5"] {
        let output = Command::new(binary())
            .args(["shell", server.address(), "--protocol-version", version])
            .args(["--cafile", &certificates.at("ca.pem"), "--cert", &certificates.at("client.pem")])
            .args(["-e", "SELECT username FROM system_views.clients"])
            .env("HOME", "/nowhere")
            .output()
            .expect("run the shell");
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains(" app"), "{text}");
    }
    owner.run(&format!("DROP IDENTITY '{IDENTITY}'"));
    assert_eq!(certificates.log_in(&server).1, not_authorized);
    owner.run(&format!("ADD IDENTITY '{IDENTITY}' TO ROLE 'nobody'"));
    assert_eq!(certificates.log_in(&server).1, refusal("nobody is not permitted to log in"));
    // Dropping a role drops its identities.
    owner.run("DROP ROLE nobody");
    assert_eq!(certificates.log_in(&server).1, not_authorized);
}

#[test]
fn a_certificate_without_an_identity_is_refused() {
    let certificates = Certificates::make("https://example/app");
    let server = certificates.serve(&[
        "--authenticator",
        "MutualTlsAuthenticator",
        "--certificate-validator",
        "SpiffeCertificateValidator",
    ]);
    let (class, answer) = certificates.log_in(&server);
    assert_eq!(class, "org.apache.cassandra.auth.MutualTlsAuthenticator");
    assert_eq!(answer, refusal("Unable to extract Spiffe from the certificate"));
}

#[test]
fn common_names_are_identities_where_that_is_asked_for() {
    let certificates = Certificates::make(IDENTITY);
    let config = certificates.at("cassandra.yaml");
    fs::write(&config, "authenticator: PasswordAuthenticator\n").expect("written");
    let (cert, ca) = (certificates.at("server.pem"), certificates.at("ca.pem"));
    let files = ["--config", &config, "--tls-cert", &cert, "--tls-client-ca", &ca];
    let mut server = Server::start_with(&files);
    // The owner adds the first identity while passwords count.
    let output = Command::new(binary())
        .args(["shell", server.address(), "-u", "cassandra", "--cafile", &ca])
        .args(["--cert", &certificates.at("client.pem"), "-e"])
        .arg("CREATE ROLE app WITH LOGIN = true AND SUPERUSER = true; ADD IDENTITY 'app' TO ROLE 'app'")
        .env("HOME", "/nowhere")
        .env("HELENUS_PASSWORD", "cassandra")
        .output()
        .expect("run the shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(server.stop().success());
    let text = "authenticator:\n  class_name: org.apache.cassandra.auth.MutualTlsAuthenticator\n  parameters:\n    \
                validator_class_name: CommonNameCertificateValidator\n";
    fs::write(&config, text).expect("written");
    server.restart();
    assert_eq!(certificates.log_in(&server).1, Ok(()));
    let shell = |statement: &str| {
        let output = Command::new(binary())
            .args(["shell", server.address(), "--cafile", &certificates.at("ca.pem")])
            .args(["--cert", &certificates.at("client.pem"), "-e", statement])
            .env("HOME", "/nowhere")
            .output()
            .expect("run the shell");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let text = shell("CREATE ROLE other WITH LOGIN = true AND PASSWORD = 'pw'");
    assert!(text.contains("CassandraRoleManager doesn't support PASSWORD"), "{text}");
}

#[test]
fn a_start_without_what_certificates_need_is_refused() {
    let certificates = Certificates::make(IDENTITY);
    let (cert, ca) = (certificates.at("server.pem"), certificates.at("ca.pem"));
    let serve = |args: &[&str]| {
        refused(
            &[
                &[
                    "serve",
                    "--memory",
                    "--listen",
                    "127.0.0.1:0",
                    "--authenticator",
                    "MutualTlsAuthenticator",
                ],
                args,
            ]
            .concat(),
        )
    };
    let validator = ["--certificate-validator", "SpiffeCertificateValidator"];
    let tls = ["--tls-cert", &cert, "--tls-client-ca", &ca];
    let text = serve(&tls);
    assert!(text.contains("authenticator.parameters.validator_class_name is not set"), "{text}");
    let needs = "MutualTlsAuthenticator requires client_encryption_options.enabled to be true & \
                 client_encryption_options.require_client_auth to be true";
    for args in [&validator[..], &[&validator[..], &tls[..2]].concat()] {
        let text = serve(args);
        assert!(text.contains(needs), "{text}");
    }
    let text = serve(&[&validator[..], &tls[..], &["--password-file", &ca]].concat());
    assert!(text.contains("takes no passwords"), "{text}");
    let text = serve(&[&["--certificate-validator", "OwnValidator"], &tls[..]].concat());
    assert!(text.contains("SpiffeCertificateValidator, CommonNameCertificateValidator"), "{text}");
}
