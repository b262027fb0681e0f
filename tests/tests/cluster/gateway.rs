//! `helenus serve --gateway`: the Python driver in versions 3, 4 and 5 through it, and a node that is killed under load. A fourth
//! client comes to a gateway with `--show-nodes`, and must go to the nodes by itself.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use end_to_end::{Client, Server};

use crate::ring::Ring;

/// The node that is killed; the gateway was told of another.
const VICTIM: u32 = 3;

pub fn passes(ring: &Ring) {
    let gateway = Server::start_with(&["--gateway", &ring.address(1)]);
    let address = gateway.address();
    // At another address than the nodes', as drivers tell hosts apart by it.
    let showing = ["--gateway", &ring.address(1), "--show-nodes", "--listen", "127.0.0.9:0"];
    let showing = Server::start_with(&showing);
    let mut clients: Vec<_> = ["3", "4", "5"].map(|version| (version, start(address, version))).into();
    clients.push(("that sees the nodes", start_with_nodes(showing.address())));
    // Each has written for a while by now, so that requests are in flight.
    let mut outputs: Vec<_> =
        clients.iter_mut().map(|(version, client)| output_until_kill(version, client)).collect();
    ring.kill(VICTIM);
    for (_, client) in &mut clients {
        let input = client.stdin.as_mut().expect("its input");
        input.write_all(b"killed\n").expect("it waits for the node's end");
    }
    for ((version, mut client), output) in clients.into_iter().zip(&mut outputs) {
        for line in client.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            output.push(line.expect("text"));
        }
        let status = client.wait().expect("its end");
        assert!(status.success(), "version {version}: {output:#?}\n{}{}", gateway.log(), showing.log());
    }
    ring.restart(VICTIM);
}

fn start(address: &str, version: &str) -> Child {
    let mut command = Client::program("python/gateway.py");
    command.args([address, version, "kill"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("the client starts")
}

fn start_with_nodes(address: &str) -> Child {
    let mut command = Client::program("python/gateway_nodes.py");
    command.args([address, "3", "kill"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("the client starts")
}

/// Reads until the client asks for the end of a node.
fn output_until_kill(version: &str, client: &mut Child) -> Vec<String> {
    let mut lines = Vec::new();
    let mut stdout = client.stdout.take().expect("its output");
    loop {
        let line = read_line(&mut stdout);
        match line.as_str() {
            "" => panic!("version {version} ended: {lines:#?}"),
            "kill\n" => break,
            _ => lines.push(line.trim_end().to_owned()),
        }
    }
    client.stdout = Some(stdout);
    lines
}

/// Reads a line, and not a byte more.
fn read_line(from: &mut impl std::io::Read) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while from.read(&mut byte).is_ok_and(|count| count == 1) {
        line.push(byte[0]);
        if byte[0] == b'\n' {
            break;
        }
    }
    String::from_utf8(line).expect("text")
}
