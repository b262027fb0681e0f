//! Runs every client of `tests/drivers/` against the binary, each with a server of its own.

use std::fs;

use end_to_end::{Client, Oracle, Server, tool};
use tempfile::TempDir;

fn passes_against_the_binary(client: Client) {
    let server = Server::start();
    client.passes(server.address(), &[]);
}

#[test]
fn the_python_driver_passes() {
    passes_against_the_binary(Client::Python);
}

#[test]
fn cqlsh_passes() {
    passes_against_the_binary(Client::Cqlsh);
}

#[test]
fn the_node_driver_passes() {
    passes_against_the_binary(Client::Node);
}

#[test]
fn gocql_passes() {
    passes_against_the_binary(Client::Go);
}

#[test]
fn the_java_driver_passes() {
    passes_against_the_binary(Client::Java);
}

#[test]
fn the_rust_driver_passes() {
    passes_against_the_binary(Client::Rust);
}

#[test]
fn the_drivers_pass_against_a_server_without_a_disk() {
    let server = Server::start_with(&["--memory"]);
    Client::Python.passes(server.address(), &[]);
}

#[test]
fn the_python_driver_logs_in() {
    let logins =
        ["--memory", "--authenticator", "PasswordAuthenticator", "--authorizer", "CassandraAuthorizer"];
    let server = Server::start_with(&logins);
    Client::PythonLogins.passes(server.address(), &[]);
}

/// Every case of a driver by TLS, with a client certificate, as a role that may do everything. The server's key is in a store
/// of Java.
fn passes_by_tls(client: Client) {
    let folder = TempDir::with_prefix("helenus-drivers-").expect("a temporary directory");
    let certificates = folder.path().join("certs");
    tool(&["cert", certificates.to_str().expect("UTF-8")]);
    let config = folder.path().join("cassandra.yaml");
    let at = |name: &str| certificates.join(name).display().to_string();
    let text = format!(
        "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\nclient_encryption_options:\n  enabled: true\n  \
         require_client_auth: true\n  keystore: {}\n  keystore_password: changeit\n  truststore: {}\n  truststore_password: \
         changeit\n  store_type: PKCS12\n",
        at("server.p12"),
        at("ca.jks"),
    );
    fs::write(&config, text).expect("written");
    let server = Server::start_with(&["--config", config.to_str().expect("UTF-8")]);
    client.passes_by_tls(server.address(), &certificates, ("cassandra", "cassandra"));
}

#[test]
fn the_python_driver_passes_by_tls() {
    passes_by_tls(Client::Python);
}

#[test]
fn cqlsh_passes_by_tls() {
    passes_by_tls(Client::Cqlsh);
}

#[test]
fn the_node_driver_passes_by_tls() {
    passes_by_tls(Client::Node);
}

#[test]
fn gocql_passes_by_tls() {
    passes_by_tls(Client::Go);
}

#[test]
fn the_java_driver_passes_by_tls() {
    passes_by_tls(Client::Java);
}

#[test]
fn the_rust_driver_passes_by_tls() {
    passes_by_tls(Client::RustTls);
}

/// Validates the programs: Cassandra must pass them too.
#[test]
#[ignore = "for changes of the programs: takes two minutes and says nothing about the binary"]
fn against_cassandra() {
    let oracle = Oracle::shared();
    for client in Client::ALL {
        client.passes(oracle.address(), &[]);
    }
}
