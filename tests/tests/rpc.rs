//! The old RPC interface: real clients of it, the scripts of the old texts, and what no client sends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::{Client, Server, root};

/// A server with the interface, and where it serves it.
fn server() -> (Server, String) {
    let server = Server::start_with(&["--rpc", "127.0.0.1:0"]);
    let line = server.head().iter().find(|line| line.starts_with("rpc")).expect("the interface's address");
    let address = line.split_whitespace().nth(1).expect("an address").to_owned();
    (server, address)
}

fn cli(address: &str, script: &Path) -> String {
    let output = Command::new(end_to_end::binary())
        .args(["cli", "--address", address, "-f"])
        .arg(script)
        .output()
        .expect("run helenus cli");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {errors}", script.display());
    String::from_utf8(output.stdout).expect("text")
}

fn text(name: &str) -> std::path::PathBuf {
    root().join("tests/texts").join(name)
}

#[test]
fn a_python_client_passes_framed_and_not_strict_and_not() {
    let (_server, address) = server();
    Client::Thrift.passes(&address, &[]);
}

#[test]
fn the_generated_java_client_and_hector_pass() {
    let (_server, address) = server();
    Client::ThriftJava.passes(&address, &[]);
}

#[test]
fn the_scripts_of_the_old_texts_run_as_they_stand() {
    let (_server, address) = server();
    for name in ["reversed_comparators.cli", "query_plans.cli"] {
        assert!(cli(&address, &text(name)).contains("Authenticated to keyspace"), "{name}");
    }
    let shown = cli(&address, &text("mailings.cli"));
    assert!(shown.contains("=> (name=send_dates_2009-09-30, value=2245"), "{shown}");
}

#[test]
fn garbage_closes_its_connection_and_no_other() {
    let (_server, address) = server();
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x7f, 0xff, 0xff, 0xff, 0x80], &[0, 0, 0, 2, 0x80, 0]] {
        let mut socket = TcpStream::connect(&address).expect("connect");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        socket.write_all(garbage).expect("write");
        let mut rest = Vec::new();
        let _reset_or_end = socket.read_to_end(&mut rest);
        assert_eq!(rest, b"", "{garbage:?}");
    }
    Client::Thrift.passes(&address, &["framed"]);
}

#[test]
fn an_unknown_call_and_missing_arguments_are_answered_with_the_protocols_own_exception() {
    let (_server, address) = server();
    let mut socket = TcpStream::connect(&address).expect("connect");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    for (name, expected) in
        [("nonsense", "Invalid method name: 'nonsense'"), ("get_slice", "Required field 'key'")]
    {
        let mut message = vec![0x80, 1, 0, 1];
        message.extend_from_slice(&(name.len() as u32).to_be_bytes());
        message.extend_from_slice(name.as_bytes());
        message.extend_from_slice(&[0, 0, 0, 9, 0]);
        let mut frame = (message.len() as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(&message);
        socket.write_all(&frame).expect("write");
        let mut length = [0; 4];
        socket.read_exact(&mut length).expect("a frame");
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        socket.read_exact(&mut answer).expect("its message");
        assert_eq!(answer[..4], [0x80, 1, 0, 3], "an exception");
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains(expected), "{text}");
    }
}
