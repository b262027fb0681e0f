//! Tests that `helenus shell` waits after a schema change until the nodes of the cluster agree. The cluster is a real
//! server behind a relay, which answers for a second node.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use end_to_end::raw::frame;
use end_to_end::{Cql, Server, binary};
use tempfile::TempDir;

const KEYSPACE: &str = "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
/// v4, because its frames are not wrapped in segments.
const VERSION: u8 = 4;

/// A frame as received; `None` if its sender is gone.
fn receive(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut whole = vec![0; 9];
    stream.read_exact(&mut whole).ok()?;
    let length = u32::from_be_bytes(whole[5..9].try_into().expect("four bytes")) as usize;
    whole.resize(9 + length, 0);
    stream.read_exact(&mut whole[9..]).ok()?;
    Some(whole)
}

/// An answer with one row and one uuid: the schema version of the peer.
fn peers(stream_id: i16, version: [u8; 16]) -> Vec<u8> {
    let mut body = 2_i32.to_be_bytes().to_vec();
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    for text in ["system", "peers", "schema_version"] {
        body.extend_from_slice(&(text.len() as u16).to_be_bytes());
        body.extend_from_slice(text.as_bytes());
    }
    body.extend_from_slice(&0x0C_u16.to_be_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(&16_i32.to_be_bytes());
    body.extend_from_slice(&version);
    frame(VERSION | 0x80, 0, stream_id, 8, &body)
}

/// Relays to `server`, but answers the queries for the peer's schema version: the first `others` with a different
/// version, later ones with the server's. Returns the address and the count of these queries.
fn relay(server: &str, others: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    let (asked, server) = (Arc::new(AtomicUsize::new(0)), server.to_owned());
    let counted = Arc::clone(&asked);
    std::thread::spawn(move || {
        while let Ok((mut client, _)) = listener.accept() {
            let (server, asked) = (server.clone(), Arc::clone(&counted));
            std::thread::spawn(move || {
                let mut node = TcpStream::connect(&server).expect("the server");
                let cql = Cql::connect(&server);
                while let Some(request) = receive(&mut client) {
                    let text = String::from_utf8_lossy(&request[9..]).into_owned();
                    let answer = if text.contains("schema_version FROM system.peers") {
                        let rows = cql.rows("SELECT schema_version FROM system.local");
                        let own = rows[0][0].as_ref().and_then(|value| value.as_uuid()).expect("a version");
                        let is_other = asked.fetch_add(1, Ordering::SeqCst) < others;
                        let version = if is_other { [7; 16] } else { *own.as_bytes() };
                        peers(i16::from_be_bytes([request[2], request[3]]), version)
                    } else {
                        node.write_all(&request).expect("forward it");
                        receive(&mut node).expect("an answer")
                    };
                    if client.write_all(&answer).is_err() {
                        break;
                    }
                }
            });
        }
    });
    (address, asked)
}

/// The shell's standard error, and the time it took.
fn shell(address: &str, statement: &str) -> (String, Duration) {
    let folder = TempDir::with_prefix("helenus-agreement-").expect("a temporary directory");
    let mut command = Command::new(binary());
    command.args(["shell", address, "--protocol-version", "4", "-e", statement]);
    let begun = Instant::now();
    let output =
        command.current_dir(folder.path()).env("HOME", folder.path()).output().expect("run the shell");
    assert!(output.status.success(), "{output:?}");
    (String::from_utf8_lossy(&output.stderr).into_owned(), begun.elapsed())
}

#[test]
fn the_shell_waits_until_all_nodes_have_the_new_schema() {
    let server = Server::start();
    let (address, asked) = relay(server.address(), 3);
    let (errors, _) = shell(&address, &format!("CREATE KEYSPACE agreement_a {KEYSPACE}"));
    assert_eq!((errors.as_str(), asked.load(Ordering::SeqCst)), ("", 4), "asked until they agree");
    let (_, _) = shell(&address, "SELECT key FROM system.local");
    assert_eq!(asked.load(Ordering::SeqCst), 4, "not after a read");
}

#[test]
fn the_shell_warns_where_nodes_do_not_agree_within_ten_seconds() {
    let server = Server::start();
    let (address, asked) = relay(server.address(), usize::MAX);
    let (errors, took) = shell(&address, &format!("CREATE KEYSPACE agreement_b {KEYSPACE}"));
    assert_eq!(
        errors,
        "Warning: schema version mismatch detected; check the schema versions of your nodes in system.local and system.peers.\n"
    );
    assert!(took >= Duration::from_secs(10) && asked.load(Ordering::SeqCst) > 10, "{took:?}");
}
