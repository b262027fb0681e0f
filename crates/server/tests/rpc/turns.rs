//! One event loop and several clients: none of them takes it alone, whatever it sends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{SystemTime, UNIX_EPOCH};

use helenus_cql::LocalOptions;
use helenus_host::{Host, Signal, TaskHandle, Tasks, Worker};
use helenus_rpc::{Node, Rpc};
use helenus_server::rpc::RpcServer;
use helenus_tls::rustls::{ClientConnection, StreamOwned};
use helenus_tls::{
    Authority, CertificateRequest, ClientOptions, EncryptionOptions, Factory, PemParameters, ReadFile,
    ServerTls, ServerTrust, TlsClient,
};
use helenus_wire::thrift::{Method, Nothing};

use crate::server::{
    LONG, WithLogins, answer_of, call, connect, name_and_number, parts, read_answer, server_with, start,
    statement,
};

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// The settings of a server that wants TLS, and of its clients.
fn tls() -> (Arc<ServerTls>, TlsClient) {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let authority = Authority::new("authority", now_s, 30).unwrap();
    let hosts = vec!["127.0.0.1".to_owned()];
    let request = CertificateRequest { name: "server".into(), hosts, uris: vec![], is_for_server: true };
    let own = authority.sign(&request).unwrap();
    let (own, of_authority) =
        (format!("{}{}", own.key, own.certificate), authority.own().certificate.clone());
    let read: ReadFile = Arc::new(move |path| {
        let text = if path.ends_with("ca.pem") { &of_authority } else { &own };
        Ok(text.clone().into_bytes())
    });
    let options = EncryptionOptions {
        enabled: true,
        keystore: Some("server.pem".to_owned()),
        factory: Factory::Pem(PemParameters::default()),
        ..EncryptionOptions::default()
    };
    let server = ServerTls::load(&options, Arc::clone(&read), now_s).unwrap().unwrap();
    let trust = ServerTrust::File("ca.pem".to_owned());
    let client = TlsClient::new(ClientOptions { trust, certificate: None, key: None }, &read).unwrap();
    (Arc::new(server), client)
}

fn connect_by_tls(address: SocketAddr, tls: &TlsClient) -> TlsStream {
    StreamOwned::new(tls.session("127.0.0.1").unwrap(), connect(address))
}

fn ask(client: &mut TlsStream, call: &[u8]) -> usize {
    client.write_all(call).unwrap();
    client.flush().unwrap();
    read_answer(client)
}

/// A task of tokio may read or write a socket 128 times before it must give way: 2 MiB of records of TLS.
#[test]
fn a_long_call_and_its_long_answer_by_tls_leave_other_clients_their_turn() {
    let directory = tempfile::tempdir().unwrap();
    let (settings, tls) = tls();
    let server = server_with(directory.path(), usize::MAX, |limits| limits.tls = Some(settings));
    let address = server.address();
    let mut client = connect_by_tls(address, &tls);
    for text in [
        "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE k.t (k int PRIMARY KEY, v text)",
    ] {
        ask(&mut client, &statement(text));
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let served = scope.spawn(|| {
            let mut other = connect_by_tls(address, &tls);
            let mut served = 0;
            while !done.load(Ordering::Acquire) {
                assert!(ask(&mut other, &call(Method::DescribeVersion, &Nothing {})) > 10);
                served += 1;
            }
            served
        });
        for mebibytes in [3, 8] {
            let length = mebibytes << 20;
            let insert = format!("INSERT INTO k.t (k, v) VALUES (0, '{}')", "v".repeat(length));
            ask(&mut client, &statement(&insert));
            assert!(ask(&mut client, &statement("SELECT v FROM k.t WHERE k = 0")) > length);
        }
        done.store(true, Ordering::Release);
        assert!(served.join().unwrap() > 0);
    });
}

/// Sends calls for ever, and reads their answers, until the connection ends.
fn pipeline_for_ever(client: TcpStream) -> [std::thread::JoinHandle<()>; 2] {
    let (mut writer, mut reader) = (client.try_clone().unwrap(), client);
    let calls = call(Method::DescribeVersion, &Nothing {}).repeat(10_000);
    let writes = std::thread::spawn(move || while writer.write_all(&calls).is_ok() {});
    let reads = std::thread::spawn(move || {
        let mut answers = vec![0; 1 << 20];
        while reader.read(&mut answers).is_ok_and(|count| count > 0) {}
    });
    [writes, reads]
}

/// Other clients are served, and the server stops, while clients pipeline calls for ever.
fn is_shared(server: RpcServer, greedy: Vec<TcpStream>) {
    let threads: Vec<_> = greedy.into_iter().flat_map(pipeline_for_ever).collect();
    for _ in 0..20 {
        let mut other = connect(server.address());
        other.write_all(&call(Method::DescribeVersion, &Nothing {})).unwrap();
        assert_eq!(name_and_number(&answer_of(&mut other)).0, "describe_version");
    }
    let (stopped, stops) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        server.stop();
        stopped.send(()).unwrap();
    });
    assert!(stops.recv_timeout(LONG).is_ok(), "the server does not stop");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_client_that_pipelines_for_ever_leaves_others_their_turn_and_the_server_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let server = server_with(directory.path(), usize::MAX, |_| {});
    let greedy = vec![connect(server.address())];
    is_shared(server, greedy);
}

#[test]
fn a_client_that_pipelines_for_ever_leaves_others_their_turn_before_its_login_and_after() {
    let directory = tempfile::tempdir().unwrap();
    let with_logins = WithLogins::start(directory.path(), |_| {});
    let greedy = vec![connect(with_logins.server.address()), with_logins.bob()];
    is_shared(with_logins.server, greedy);
}

/// Gives no thread for calls that wait, while it is told so.
struct NoThreads {
    refuses: AtomicBool,
    refused: AtomicUsize,
    real: Host,
}

impl Tasks for NoThreads {
    fn start(&self, name: &str, worker: Box<dyn Worker>) -> Arc<dyn TaskHandle> {
        self.real.tasks.start(name, worker)
    }

    fn try_start(&self, name: &str, worker: Box<dyn Worker>) -> std::io::Result<Arc<dyn TaskHandle>> {
        if self.refuses.load(Ordering::Acquire) {
            self.refused.fetch_add(1, Ordering::AcqRel);
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        Ok(self.start(name, worker))
    }

    fn wait_until(&self, signal: &Signal, ready: &mut dyn FnMut() -> bool) {
        self.real.tasks.wait_until(signal, ready);
    }
}

#[test]
fn a_call_for_which_the_system_gives_no_thread_is_refused_in_words_and_the_next_one_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let real = helenus_host::real::host();
    let tasks = Arc::new(NoThreads { refuses: false.into(), refused: 0.into(), real: real.clone() });
    let host = Host { tasks: tasks.clone(), ..real };
    let (server, _) = start(&host, directory.path(), LocalOptions::default(), |_| {});
    let mut client = connect(server.address());
    for (refuses, expected) in [(true, "no thread"), (false, "system"), (true, "system")] {
        tasks.refuses.store(refuses, Ordering::Release);
        client.write_all(&call(Method::DescribeKeyspaces, &Nothing {})).unwrap();
        let answer = answer_of(&mut client);
        assert_eq!(name_and_number(&answer), ("describe_keyspaces".to_owned(), 1));
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains(expected), "{text:.300}");
    }
    assert_eq!(tasks.refused.load(Ordering::Acquire), 1, "a thread that was started stays");
}

/// Gives no thread of one name, while it is told so.
struct WithoutThread {
    name: &'static str,
    refuses: AtomicBool,
    real: Host,
}

impl Tasks for WithoutThread {
    fn start(&self, name: &str, worker: Box<dyn Worker>) -> Arc<dyn TaskHandle> {
        self.try_start(name, worker).unwrap()
    }

    fn try_start(&self, name: &str, worker: Box<dyn Worker>) -> std::io::Result<Arc<dyn TaskHandle>> {
        match self.refuses.load(Ordering::Acquire) && name == self.name {
            true => Err(std::io::ErrorKind::WouldBlock.into()),
            false => self.real.tasks.try_start(name, worker),
        }
    }

    fn wait_until(&self, signal: &Signal, ready: &mut dyn FnMut() -> bool) {
        self.real.tasks.wait_until(signal, ready);
    }
}

#[test]
fn a_server_for_which_the_system_gives_no_thread_says_so_and_serves_when_it_is_told_again() {
    for name in ["rpc-accept", "rpc-0", "rpc-1", "rpc-handshakes"] {
        let directory = tempfile::tempdir().unwrap();
        let real = helenus_host::real::host();
        let tasks = Arc::new(WithoutThread { name, refuses: true.into(), real: real.clone() });
        let host = Host { tasks: tasks.clone(), ..real };
        let (settings, client) = tls();
        let (rpc, limits, backend) = parts(directory.path(), LocalOptions::default(), |limits| {
            (limits.threads, limits.tls) = (2, Some(settings));
        });
        let server = RpcServer::bind(&host, "127.0.0.1:0".parse().unwrap(), limits, None).unwrap();
        let refused = server.serve(rpc, 1).unwrap_err();
        assert!(refused.to_string().contains("cannot start"), "{name}: {refused}");
        tasks.refuses.store(false, Ordering::Release);
        let node = Node {
            cluster_name: "tests".into(),
            datacenter: "datacenter1".into(),
            rack: "rack1".into(),
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        };
        server.serve(Rpc::new(backend, node), 1).unwrap();
        let mut client = connect_by_tls(server.address(), &client);
        assert!(ask(&mut client, &call(Method::DescribeVersion, &Nothing {})) > 10, "{name}");
    }
}
