//! A server with logins, a second port for TLS and the old RPC interface is cut over to a cluster with logins, and back: roles go with their
//! passwords and permissions, clients log in again by themselves, and every acknowledged write is there once.
//!
//! The target is a Helenus with logins, which answers as a node of Cassandra does. By hand, with three real nodes:
//!
//!     tests/tools/cluster.sh start 3 /tmp/secure --port 9242 --logins --tls
//!     HELENUS_SECURE_RING=/tmp/secure cargo test -p end-to-end --test move_logins

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

use end_to_end::raw::{ERROR, Raw};
use end_to_end::{Client, Cql, Server, refused, tool};
use helenus_wire::thrift::{
    AuthenticationRequest, Column, ColumnParent, ColumnPath, ConsistencyLevel, Field, Map, Method, args,
    begin_call, end_message,
};
use tempfile::TempDir;

#[path = "cluster/moving.rs"]
mod moving;

use moving::{until_done, wait_for_tail};

/// Keyspaces of the loads: at the cut in the clear and by TLS, at the rollback, and what the old interface writes.
const KEYSPACES: [&str; 4] = ["sec_clear", "sec_tls", "sec_back", "sec_old"];
const ROLES: [&str; 4] = ["sec_app", "sec_team", "sec_late", "sec_gone"];

#[test]
fn a_server_with_logins_and_all_its_ports_is_cut_over_and_back() {
    let target = Target::start();
    let mut source = Source::start();
    let admin = Cql::connect_as(source.server.address(), ("cassandra", "first")).expect("the first login");
    make_tables_and_roles(&admin);

    // Without their roles nobody could log in after the cut.
    source.moving(&target.order("start", &[]));
    wait_for_tail(&source.data);
    let told = refused(&source.with_data(&["cutover", "--dry-run"]));
    assert!(told.contains("cannot log in there: sec_app, sec_gone") && told.contains("--roles"), "{told}");
    source.moving(&["abort"]);
    let plan = source.moving(&target.order("plan", &["--roles"]));
    for part in ["GRANT sec_team TO sec_app", "HASHED PASSWORD = '...'", "cassandra is not moved"] {
        assert!(plan.contains(part) && !plan.contains("$2"), "{part}: {plan}");
    }
    source.moving(&target.order("start", &["--roles"]));
    wait_for_tail(&source.data);
    // No node keeps limits of roles, and that they end is said first.
    admin.run("ALTER ROLE sec_app WITH OPTIONS = {'connections_max': '50'}");
    let told = refused(&source.with_data(&["cutover", "--dry-run"]));
    assert!(told.contains("limits here (OPTIONS)") && told.contains("sec_app"), "{told}");
    until_done(&source.with_data(&["cutover", "--dry-run", "--accept-differences"]));
    admin.run("ALTER ROLE sec_app WITH OPTIONS = {'connections_max': ''}");
    // What is changed during the move goes too.
    for statement in [
        "CREATE ROLE sec_late WITH LOGIN = true AND PASSWORD = 'late'",
        "GRANT SELECT ON KEYSPACE sec_clear TO sec_late",
        "DROP ROLE sec_gone",
    ] {
        admin.run(statement);
    }
    drop(admin);
    let state = std::fs::read_to_string(Path::new(&source.data).join("move/state.json")).expect("the state");
    assert!(state.contains("sec_app") && !state.contains("$2"), "{state}");

    let mut loads = [
        Load::start(source.server.address(), "sec_clear", None),
        Load::start(&source.encrypted, "sec_tls", Some(&source.certificate("ca.pem"))),
    ];
    loads.iter_mut().for_each(Load::runs);
    let mut old = OldClient::connect(&source.old);
    old.insert(1);
    println!("{}", until_done(&source.with_data(&["cutover", "--pause", "5s"])).trim());
    assert!(old.is_closed(), "a connection of the old interface outlives the cut");
    loads.into_iter().for_each(Load::ends_well);

    for is_after_restart in [false, true] {
        if is_after_restart {
            source.server.kill();
            source.server.restart();
        }
        // It is the target that answers and permits.
        let late = Cql::connect_as(source.server.address(), ("sec_late", "late")).expect("its login");
        assert!(!late.rows("SELECT k FROM sec_clear.rows").is_empty());
        assert!(late.refusal("SELECT k FROM sec_back.rows").contains("no SELECT permission"));
        for login in [("sec_gone", "gone"), ("cassandra", "first")] {
            assert_eq!(Raw::login(source.server.address(), 4, login).1.opcode, ERROR, "{login:?}");
        }
        let by_tls = source.by_tls("SELECT k FROM sec_tls.rows WHERE k = 0");
        assert!(by_tls.contains('0'), "{by_tls}");
        let mut old = OldClient::connect(&source.old);
        assert!(old.has(1));
        let number = 2 + u8::from(is_after_restart);
        old.insert(number);
        assert!(target.run(&format!("SELECT value FROM sec_old.t WHERE key = 0x0{number}")).contains("0x78"));
    }

    let mut load = Load::start(source.server.address(), "sec_back", None);
    load.runs();
    let mut old = OldClient::connect(&source.old);
    println!("{}", until_done(&source.with_data(&["rollback", "--pause", "20s"])).trim());
    assert!(old.is_closed(), "a connection of the old interface outlives the rollback");
    load.ends_well();
    // The logins of this server again.
    let admin = Cql::connect_as(source.server.address(), ("cassandra", "first")).expect("its own password");
    assert!(!admin.rows("SELECT k FROM sec_tls.rows").is_empty());
    source.by_tls("SELECT k FROM sec_tls.rows WHERE k = 0");
    let mut old = OldClient::connect(&source.old);
    assert!(old.has(1) && old.has(2) && old.has(3));
    old.insert(4);
    wait_for_tail(&source.data);
    assert!(target.run("SELECT value FROM sec_old.t WHERE key = 0x04").contains("0x78"));
    source.moving(&["abort"]);
    target.clear();
}

fn make_tables_and_roles(admin: &Cql) {
    for keyspace in KEYSPACES {
        admin.run(&format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
    }
    for role in ["sec_app WITH LOGIN = true AND PASSWORD = 'app'", "sec_team", "sec_gone WITH LOGIN = true"] {
        admin.run(&format!("CREATE ROLE {role}"));
    }
    admin.run("GRANT sec_team TO sec_app");
    for keyspace in &KEYSPACES[..3] {
        for table in ["rows (k int PRIMARY KEY, v int)", "lists (k int PRIMARY KEY, l list<int>)"] {
            admin.run(&format!("CREATE TABLE {keyspace}.{table}"));
        }
        admin.run(&format!("CREATE TABLE {keyspace}.counts (k int PRIMARY KEY, n counter)"));
        admin.run(&format!("CREATE TABLE {keyspace}.closed (k int PRIMARY KEY)"));
        for table in ["rows", "lists"] {
            admin.run(&format!("GRANT SELECT ON TABLE {keyspace}.{table} TO sec_team"));
            admin.run(&format!("GRANT MODIFY ON TABLE {keyspace}.{table} TO sec_app"));
        }
        admin.run(&format!("GRANT ALL ON TABLE {keyspace}.counts TO sec_app"));
    }
    let table = "sec_old.t (key blob, column1 text, value blob, PRIMARY KEY (key, column1))";
    admin.run(&format!("CREATE TABLE {table} WITH COMPACT STORAGE"));
    admin.run("GRANT ALL ON KEYSPACE sec_old TO sec_app");
}

/// The cluster that takes the tables.
struct Target {
    address: String,
    tls: Vec<String>,
    password: PathBuf,
    _folder: TempDir,
    _server: Option<Server>,
}

impl Target {
    fn start() -> Target {
        let folder = TempDir::with_prefix("helenus-target-").expect("a temporary directory");
        let password = folder.path().join("password");
        std::fs::write(&password, "cassandra\n").expect("a file");
        let (address, tls, server) = match std::env::var("HELENUS_SECURE_RING") {
            Ok(ring) => {
                let settings = std::fs::read_to_string(format!("{ring}/cluster")).expect("a cluster");
                let port = settings.split_whitespace().find_map(|word| word.strip_prefix("port="));
                let tls = vec!["--cafile".to_owned(), format!("{ring}/tls/ca.pem")];
                (format!("127.0.0.1:{}", port.expect("its port")), tls, None)
            }
            Err(_) => {
                let logins =
                    ["--authenticator", "PasswordAuthenticator", "--authorizer", "CassandraAuthorizer"];
                let server =
                    Server::start_with(&[&logins[..], &["--set", "permissions_validity=0ms"]].concat());
                (server.address().to_owned(), Vec::new(), Some(server))
            }
        };
        let target = Target { address, tls, password, _folder: folder, _server: server };
        target.clear();
        target
    }

    fn access(&self) -> Vec<&str> {
        let password = self.password.to_str().expect("UTF-8");
        let login = ["--username", "cassandra", "--password-file", password];
        login.into_iter().chain(self.tls.iter().map(String::as_str)).collect()
    }

    /// A verb of `helenus move` to this target.
    fn order<'a>(&'a self, verb: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [&[verb, "--to", &self.address][..], more, &self.access()].concat()
    }

    fn run(&self, statement: &str) -> String {
        tool(&[&["shell", &self.address, "-e", statement][..], &self.access()].concat())
    }

    /// Removes what the test makes.
    fn clear(&self) {
        KEYSPACES.iter().for_each(|name| drop(self.run(&format!("DROP KEYSPACE IF EXISTS {name}"))));
        ROLES.iter().for_each(|name| drop(self.run(&format!("DROP ROLE IF EXISTS {name}"))));
    }
}

/// The server that is moved.
struct Source {
    server: Server,
    data: String,
    encrypted: String,
    old: String,
}

impl Source {
    fn start() -> Source {
        let folder = TempDir::with_prefix("helenus-move-").expect("a temporary directory");
        let text = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        tool(&["cert", &text("certs")]);
        let (listen, encrypted, old) = (free_address(), free_address(), free_address());
        let (_, port) = encrypted.rsplit_once(':').expect("a port");
        let config = format!(
            "authenticator: PasswordAuthenticator\nauthorizer: CassandraAuthorizer\npermissions_validity: 0ms\n\
             native_transport_port_ssl: {port}\nclient_encryption_options:\n  enabled: true\n  optional: true\n  keystore: {}\n  \
             ssl_context_factory:\n    class_name: org.apache.cassandra.security.PEMBasedSslContextFactory\n",
            text("certs/server.pem")
        );
        std::fs::write(text("cassandra.yaml"), config).expect("a file");
        std::fs::write(text("password"), "first\n").expect("a file");
        std::fs::write(text("of_app"), "app\n").expect("a file");
        let (config, password) = (text("cassandra.yaml"), text("password"));
        let options = ["--listen", &listen, "--rpc", &old, "--config", &config, "--password-file", &password];
        let server = Server::start_in(folder, &options);
        let data = server.data().to_str().expect("UTF-8").to_owned();
        Source { server, data, encrypted, old }
    }

    /// A file beside the data.
    fn file(&self, name: &str) -> String {
        self.server.data().with_file_name(name).to_str().expect("UTF-8").to_owned()
    }

    fn certificate(&self, name: &str) -> String {
        self.file(&format!("certs/{name}"))
    }

    fn with_data<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [&["move"], args, &["--data", &self.data]].concat()
    }

    fn moving(&self, args: &[&str]) -> String {
        tool(&self.with_data(args))
    }

    /// What the port for TLS answers to the role `sec_app`.
    fn by_tls(&self, statement: &str) -> String {
        let (trusted, password) = (self.certificate("ca.pem"), self.file("of_app"));
        let access = ["--cafile", &trusted, "--username", "sec_app", "--password-file", &password];
        tool(&[&["shell", &self.encrypted, "-e", statement], &access[..]].concat())
    }
}

fn free_address() -> String {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    free.local_addr().expect("its address").to_string()
}

/// The Python driver, which writes without pause.
struct Load {
    keyspace: &'static str,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Load {
    fn start(address: &str, keyspace: &'static str, trusted: Option<&str>) -> Load {
        let mut command = Client::program("python/cut_logins.py");
        command.args([address, keyspace, "sec_app", "app"]).args(trusted);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Load { keyspace, child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    fn runs(&mut self) {
        assert_eq!(self.line(), "running", "{}", self.keyspace);
    }

    fn ends_well(mut self) {
        self.child.stdin.as_mut().expect("its input").write_all(b"end\n").expect("it waits");
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("text");
        println!("{}: {}", self.keyspace, text.trim());
        assert!(self.child.wait().expect("its end").success() && text.starts_with("ok "), "{text}");
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the old interface that has logged in.
struct OldClient(TcpStream);

impl OldClient {
    fn connect(address: &str) -> OldClient {
        let mut client = OldClient(TcpStream::connect(address).expect("connect"));
        let credentials = [("username", "sec_app"), ("password", "app")];
        let credentials = credentials.map(|(name, value)| (name.into(), value.into()));
        let auth_request = AuthenticationRequest { credentials: Map(credentials.into()) };
        client.call(Method::Login, &args::Login { auth_request });
        client.call(Method::SetKeyspace, &args::OfKeyspace { keyspace: "sec_old" });
        client
    }

    fn answer<'a>(&mut self, method: Method, asked: &impl Field<'a>) -> std::io::Result<Vec<u8>> {
        let mut message = Vec::new();
        let at = begin_call(method, 1, &mut message);
        asked.write(&mut message);
        end_message(at, &mut message);
        self.0.write_all(&message)?;
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut answer)?;
        Ok(answer)
    }

    /// The result's fields.
    fn call<'a>(&mut self, method: Method, asked: &impl Field<'a>) -> Vec<u8> {
        let answer = self.answer(method, asked).expect("an answer");
        let result = answer[12 + method.name().len()..].to_vec();
        let is_result = answer[3] == 2 && (result == [0] || result[1..3] == [0, 0]);
        assert!(is_result, "{}: {}", method.name(), String::from_utf8_lossy(&answer));
        result
    }

    fn insert(&mut self, key: u8) {
        let column = Column { name: b"c", value: Some(b"x"), timestamp: Some(1), ttl: None };
        let column_parent = ColumnParent { column_family: "t", super_column: None };
        let consistency_level = ConsistencyLevel::Quorum;
        self.call(Method::Insert, &args::Insert { key: &[key], column_parent, column, consistency_level });
    }

    fn has(&mut self, key: u8) -> bool {
        let column_path = ColumnPath { column_family: "t", super_column: None, column: Some(b"c") };
        let consistency_level = ConsistencyLevel::Quorum;
        let found = self.call(Method::Get, &args::Get { key: &[key], column_path, consistency_level });
        found.contains(&b'x')
    }

    fn is_closed(&mut self) -> bool {
        self.0.read(&mut [0]).is_ok_and(|count| count == 0)
    }
}

#[test]
fn a_server_that_logs_in_by_certificates_is_not_cut_over() {
    let node = Server::start_with(&["--memory"]);
    let folder = TempDir::with_prefix("helenus-move-").expect("a temporary directory");
    let text = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    tool(&["cert", &text("certs")]);
    std::fs::create_dir(text("init")).expect("a folder");
    let schema = "CREATE KEYSPACE by_certificate WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n\
                  CREATE TABLE by_certificate.t (k int PRIMARY KEY);";
    std::fs::write(text("init/1.cql"), schema).expect("a file");
    let (certificate, authority, init) = (text("certs/server.pem"), text("certs/ca.pem"), text("init"));
    let tls = ["--tls-cert", &certificate, "--tls-client-ca", &authority, "--init", &init];
    let logins = [
        "--authenticator",
        "MutualTlsAuthenticator",
        "--certificate-validator",
        "CommonNameCertificateValidator",
    ];
    let server = Server::start_in(folder, &[&tls[..], &logins].concat());
    let data = server.data().to_str().expect("UTF-8").to_owned();
    tool(&["move", "start", "--to", node.address(), "--data", &data]);
    wait_for_tail(&data);
    let told = refused(&["move", "cutover", "--dry-run", "--data", &data]);
    assert!(told.contains("logins by certificates"), "{told}");
}
