//! Runs every client of `tests/drivers/` against the binary, each with a server of its own.

use end_to_end::{Client, Oracle, Server};

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

/// Validates the programs: Cassandra must pass them too.
#[test]
#[ignore = "for changes of the programs: takes two minutes and says nothing about the binary"]
fn against_cassandra() {
    let oracle = Oracle::shared();
    for client in Client::ALL {
        client.passes(oracle.address(), &[]);
    }
}
