//! A client whose TLS handshake is half done when a cut is taken back is not served by the cluster afterwards: a write that was acknowledged
//! there would be lost.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use end_to_end::raw::{QUERY, READY, RESULT, STARTUP, frame, query, startup};
use end_to_end::{Cql, Server, tool};
use helenus_tls::rustls::{ClientConnection, StreamOwned};
use helenus_tls::{ClientOptions, ReadFile, ServerTrust, client_config, server_name};
use tempfile::TempDir;

#[path = "cluster/moving.rs"]
mod moving;

use moving::{until_done, wait_for_tail};

/// A client whose first bytes of TLS are held back from some place on.
struct Late {
    session: ClientConnection,
    socket: TcpStream,
    held_back: Vec<u8>,
}

impl Late {
    /// Connects, and sends this much of the first message.
    fn connect(address: &str, ca: &str, sent: usize) -> Late {
        let options = ClientOptions { trust: ServerTrust::File(ca.to_owned()), certificate: None, key: None };
        let read: ReadFile = Arc::new(|path: &Path| fs::read(path));
        let config = client_config(&options, &read).expect("certificates");
        let mut socket = TcpStream::connect(address).expect("a server");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket option");
        let name = server_name("127.0.0.1").expect("a name");
        let mut session = ClientConnection::new(config, name).expect("a session");
        let mut first = Vec::new();
        session.write_tls(&mut first).expect("the first message");
        let held_back = first.split_off(sent);
        socket.write_all(&first).expect("sent");
        Late { session, socket, held_back }
    }

    /// Completes the handshake and writes; whether the write was acknowledged.
    fn writes(mut self, statement: &str) -> bool {
        if self.socket.write_all(&self.held_back).is_err() {
            return false;
        }
        let mut stream = StreamOwned::new(self.session, self.socket);
        let mut ask = |opcode: u8, body: &[u8]| -> Option<u8> {
            stream.write_all(&frame(4, 0, 0, opcode, body)).ok()?;
            let mut head = [0; 9];
            stream.read_exact(&mut head).ok()?;
            let mut body = vec![0; u32::from_be_bytes([head[5], head[6], head[7], head[8]]) as usize];
            stream.read_exact(&mut body).ok()?;
            Some(head[4])
        };
        ask(STARTUP, &startup()) == Some(READY) && ask(QUERY, &query(4, statement, &[])) == Some(RESULT)
    }
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").to_string()
}

#[test]
fn a_half_done_handshake_does_not_outlive_the_gateway_that_began_it() {
    let folder = TempDir::with_prefix("helenus-late-").expect("a temporary directory");
    let text = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    tool(&["cert", &text("certs")]);
    let config = format!(
        "client_encryption_options:\n  enabled: true\n  optional: true\n  keystore: {}\n  ssl_context_factory:\n    class_name: \
         org.apache.cassandra.security.PEMBasedSslContextFactory\n",
        text("certs/server.pem")
    );
    fs::write(text("helenus.yaml"), config).expect("a file");
    let (config, ca, listen) = (text("helenus.yaml"), text("certs/ca.pem"), free_address());
    let source = Server::start_in(folder, &["--listen", &listen, "--config", &config]);
    let data = source.data().to_str().expect("UTF-8").to_owned();
    let target = Server::start_with(&["--memory"]);
    let cql = Cql::connect(source.address());
    cql.run("CREATE KEYSPACE app WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TABLE app.t (k int PRIMARY KEY)");
    drop(cql);
    let with_data = |args: &[&str]| {
        let args = [&["move"], args, &["--data", &data]].concat();
        args.into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    tool(&with_data(&["start", "--to", target.address()]));
    wait_for_tail(&data);
    until_done(&with_data(&["cutover", "--pause", "5s"]));

    let late: Vec<Late> =
        [0, 1, 5, 80].map(|sent| Late::connect(source.address(), &ca, sent)).into_iter().collect();
    // Connections are accepted in their order, so the gateway has those before this one.
    assert!(Late::connect(source.address(), &ca, 80).writes("INSERT INTO app.t (k) VALUES (0)"));
    until_done(&with_data(&["rollback", "--pause", "20s"]));
    for (k, late) in late.into_iter().enumerate() {
        let k = k + 1;
        assert!(!late.writes(&format!("INSERT INTO app.t (k) VALUES ({k})")), "{k} is acknowledged");
    }
    assert!(Late::connect(source.address(), &ca, 80).writes("INSERT INTO app.t (k) VALUES (9)"));
    let rows = Cql::connect(source.address()).rows("SELECT k FROM app.t");
    assert_eq!(rows.len(), 2, "{rows:?}");
}
