//! Changes of the schema that the gateway is not told of, because the node that tells it is cut off: clients get the events later.
//!
//! The gateway reaches its first node through a relay, which first holds back what the node sends and then ends the connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use end_to_end::raw::{EVENT, REGISTER, Raw, frame};
use end_to_end::{Cql, Server};

use crate::ring::Ring;

const KEYSPACE: &str = "gate_missed";

pub fn passes(ring: &Ring) {
    let cluster = Cql::connect(&ring.address(2));
    cluster.run(&format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"));
    cluster.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 3}}"
    ));
    cluster.run(&format!("CREATE TABLE {KEYSPACE}.old (k int PRIMARY KEY)"));
    cluster.run(&format!("CREATE TABLE {KEYSPACE}.altered (k int PRIMARY KEY)"));
    let relay = Relay::start(ring.address(1));
    let gateway = Server::start_with(&["--gateway", &relay.address]);
    let mut client = Raw::ready(gateway.address(), 4);
    let kinds = [&[0, 1][..], &[0, 13], b"SCHEMA_CHANGE"].concat();
    client.send(&frame(4, 0, 1, REGISTER, &kinds));
    client.receive().expect("READY");
    // Once the client is told of this one, the gateway knows the tables before it, and no event of them is under way.
    cluster.run(&format!("CREATE TABLE {KEYSPACE}.last (k int PRIMARY KEY)"));
    while !event(&mut client).ends_with("last") {}
    relay.hold();
    cluster.run(&format!("CREATE TABLE {KEYSPACE}.new (k int PRIMARY KEY)"));
    cluster.run(&format!("ALTER TABLE {KEYSPACE}.altered ADD v int"));
    cluster.run(&format!("DROP TABLE {KEYSPACE}.old"));
    relay.cut();
    let mut told = Vec::new();
    while told.len() < 3 {
        told.push(event(&mut client));
    }
    for (verb, table) in [("DROPPED", "old"), ("UPDATED", "altered"), ("CREATED", "new")] {
        let is_it =
            |event: &String| event.contains(verb) && event.ends_with(table) && event.contains(KEYSPACE);
        assert!(told.iter().any(is_it), "{verb} {table}: {told:?}");
    }
    cluster.run(&format!("DROP KEYSPACE {KEYSPACE}"));
}

fn event(client: &mut Raw) -> String {
    let event = client.receive().expect("an event");
    assert_eq!(event.opcode, EVENT);
    String::from_utf8_lossy(&event.body).into_owned()
}

/// Passes connections on to a node.
struct Relay {
    address: String,
    holds: Arc<AtomicBool>,
    is_cut: Arc<AtomicBool>,
    sockets: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn start(node: String) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let relay = Relay { address, holds: Arc::default(), is_cut: Arc::default(), sockets: Arc::default() };
        let (holds, is_cut, sockets) =
            (Arc::clone(&relay.holds), Arc::clone(&relay.is_cut), Arc::clone(&relay.sockets));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.expect("a connection");
                if is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let node = TcpStream::connect(&node).expect("the node listens");
                let copy = |socket: &TcpStream| socket.try_clone().expect("another handle");
                sockets.lock().expect("not poisoned").extend([copy(&client), copy(&node)]);
                let never = Arc::new(AtomicBool::new(false));
                let (to_client, to_node) = (copy(&client), copy(&node));
                let holds = Arc::clone(&holds);
                std::thread::spawn(move || pass_on(client, to_node, &never));
                std::thread::spawn(move || pass_on(node, to_client, &holds));
            }
        });
        relay
    }

    /// From now on nothing that the node sends arrives.
    fn hold(&self) {
        self.holds.store(true, Ordering::SeqCst);
    }

    /// Ends all connections, and takes no other.
    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for socket in self.sockets.lock().expect("not poisoned").drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, holds: &AtomicBool) {
    let mut bytes = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !holds.load(Ordering::SeqCst) && to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
