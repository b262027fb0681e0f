//! Logins: over the real socket with tokens of every kind, by the shell, over the old interface, and at the server's start.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use end_to_end::draw::{Draw, rounds};
use end_to_end::raw::{
    AUTH_RESPONSE, AUTH_SUCCESS, AUTHENTICATE, OPTIONS, QUERY, READY, REGISTER, RESULT, Raw, STARTUP, query,
    startup,
};
use end_to_end::{Calls, Cql, Server, binary, refused};
use helenus_wire::thrift::{AuthenticationRequest, Field, Map, Method, args, begin_call, end_message};
use tempfile::TempDir;

const BAD_CREDENTIALS: i32 = 0x0100;
const PROTOCOL: i32 = 0x000A;
const UNAUTHORIZED: i32 = 0x2100;
const INVALID: i32 = 0x2200;
const OVERLOADED: i32 = 0x1001;
const CLASS: &str = "org.apache.cassandra.auth.PasswordAuthenticator";

fn with_logins(more: &[&str]) -> Server {
    Server::start_with(&[&["--memory", "--authenticator", "PasswordAuthenticator"], more].concat())
}

fn as_cassandra(server: &Server) -> Raw {
    let (raw, reply) = Raw::login(server.address(), 4, ("cassandra", "cassandra"));
    assert_eq!(reply.opcode, AUTH_SUCCESS, "{reply:?}");
    raw
}

fn shell(server: &Server, arguments: &[&str]) -> Output {
    let (host, port) = server.address().rsplit_once(':').expect("HOST:PORT");
    let mut command = Command::new(binary());
    command.args(["shell", host, port]).args(arguments).output().expect("run the shell")
}

#[test]
fn a_client_logs_in_in_every_version_of_the_protocol() {
    let server = with_logins(&[]);
    for version in 3..=5 {
        let (mut raw, reply) = Raw::greeted(server.address(), version);
        assert_eq!(reply.opcode, AUTHENTICATE);
        assert_eq!(String::from_utf8_lossy(&reply.body[2..]), CLASS);
        let reply = raw.authenticate(b"\0cassandra\0cassandra");
        assert_eq!((reply.opcode, &reply.body[..]), (AUTH_SUCCESS, &(-1_i32).to_be_bytes()[..]));
        assert_eq!(raw.query("SELECT role FROM system_auth.roles").opcode, RESULT);
    }
}

#[test]
fn tokens_are_refused_in_cassandra_s_words_and_another_may_follow() {
    let server = with_logins(&[]);
    let incorrect = |user: &str| format!("Provided username {user} and/or password are incorrect");
    let (mut raw, _) = Raw::greeted(server.address(), 4);
    for (token, text) in [
        (&b"cassandra\0cassandra"[..], "Authentication ID must not be null".to_owned()),
        (
            b"\0cassandra\0cassandra\0",
            "Credential format error: username or password is empty or contains NUL(\\0) character"
                .to_owned(),
        ),
        (b"", "Password must not be null".to_owned()),
        (b"\0\0cassandra", "Authentication ID must not be null".to_owned()),
        (b"\0cassandra\0wrong", incorrect("cassandra")),
        (b"\0Cassandra\0cassandra", incorrect("Cassandra")),
        (b"\0nobody\0x", incorrect("nobody")),
    ] {
        assert_eq!(raw.authenticate(token).error(), (BAD_CREDENTIALS, text), "{token:?}");
    }
    let null = raw.ask(AUTH_RESPONSE, &(-1_i32).to_be_bytes()).error();
    assert_eq!(null.0, 0, "{null:?}");
    assert_eq!(raw.authenticate(b"other\0cassandra\0cassandra").opcode, AUTH_SUCCESS);
    // A wrong login afterwards leaves the connection as it is.
    assert_eq!(raw.authenticate(b"\0cassandra\0x").error().0, BAD_CREDENTIALS);
    assert_eq!(raw.query("LIST ROLES").opcode, RESULT);
}

#[test]
fn garbage_for_a_token_is_refused_and_harms_nobody() {
    let server = with_logins(&[]);
    let mut draw = Draw::new("garbage_for_a_token", 1);
    for _ in 0..rounds(12) {
        let version = *draw.one(&[3, 4, 5]);
        let (mut raw, _) = Raw::greeted(server.address(), version);
        let length = *draw.one(&[0, 1, 7, 300, 4_000]);
        let token: Vec<u8> = (0..length)
            .map(|_| match draw.below(4) {
                0 => 0,
                1 => b'a',
                _ => draw.below(256) as u8,
            })
            .collect();
        assert_eq!(raw.authenticate(&token).error().0, BAD_CREDENTIALS);
        assert_eq!(raw.authenticate(b"\0cassandra\0cassandra").opcode, AUTH_SUCCESS);
    }
}

#[test]
fn requests_before_the_login_are_refused_and_the_connection_stays() {
    let server = with_logins(&[]);
    for version in [4, 5] {
        let (mut raw, _) = Raw::greeted(server.address(), version);
        let body = query(version, "SELECT * FROM system.local", &[]);
        for (opcode, name, body) in [
            (QUERY, "QUERY", &body[..]),
            (OPTIONS, "OPTIONS", &[]),
            (STARTUP, "STARTUP", &startup()),
            (REGISTER, "REGISTER", &[0, 0]),
        ] {
            let text = format!("Unexpected message {name}, expecting SASL_RESPONSE");
            assert_eq!(raw.ask(opcode, body).error(), (PROTOCOL, text));
        }
        assert_eq!(raw.authenticate(b"\0cassandra\0cassandra").opcode, AUTH_SUCCESS);
        assert_eq!(raw.query("SELECT key FROM system.local").opcode, RESULT);
    }
    let mut raw = Raw::connect(server.address(), 4);
    let refusal = raw.ask(AUTH_RESPONSE, &[0, 0, 0, 0]).error();
    assert_eq!(
        refusal,
        (PROTOCOL, "Unexpected message AUTH_RESPONSE, expecting STARTUP or OPTIONS".to_owned())
    );
}

#[test]
fn a_role_is_made_changed_and_dropped_and_its_login_follows() {
    let server = with_logins(&[]);
    let mut admin = as_cassandra(&server);
    let login = |user, password| Raw::login(server.address(), 4, (user, password));
    admin.run("CREATE ROLE alice WITH PASSWORD = 'one'");
    // At once: five seconds later it is allowed.
    assert_eq!(
        admin.query("ALTER ROLE alice WITH PASSWORD = 'two'").error(),
        (OVERLOADED, "Password for role alice can only be changed every 5000ms.".to_owned())
    );
    assert_eq!(
        login("alice", "one").1.error(),
        (BAD_CREDENTIALS, "alice is not permitted to log in".to_owned())
    );
    assert_eq!(login("alice", "two").1.error().0, BAD_CREDENTIALS);
    admin.run("ALTER ROLE alice WITH LOGIN = true");
    let (mut alice, reply) = login("alice", "one");
    assert_eq!(reply.opcode, AUTH_SUCCESS);
    // The hash of `two`.
    admin.run("ALTER ROLE alice WITH HASHED PASSWORD = '$2a$04$JSEVJfVYJoYTzM7vKuVAO.dHKS9ZGjV7vrCPJqxRPbYxyyLHPzQUu'");
    assert_eq!(login("alice", "one").1.error().0, BAD_CREDENTIALS);
    assert_eq!(
        alice.query("CREATE ROLE x WITH SUPERUSER = true").error(),
        (UNAUTHORIZED, "Only superusers can create a role with superuser status".to_owned())
    );
    assert_eq!(
        alice.query("DROP ROLE cassandra").error(),
        (UNAUTHORIZED, "Only superusers can drop a role with superuser status".to_owned())
    );
    assert_eq!(
        admin.query("DROP ROLE cassandra").error(),
        (INVALID, "Cannot DROP primary role for current login".to_owned())
    );
    admin.run("DROP ROLE alice");
    assert_eq!(login("alice", "one").1.error().0, BAD_CREDENTIALS);
}

/// Each check of such a hash occupies a thread for seconds, so a role could shut the others out with its own right password.
#[test]
fn a_hash_that_takes_long_to_check_is_set_by_superusers_alone() {
    let server = with_logins(&["--authorizer", "CassandraAuthorizer"]);
    let mut admin = as_cassandra(&server);
    for statement in [
        "CREATE ROLE alice WITH PASSWORD = 'a' AND LOGIN = true",
        "CREATE ROLE slow WITH PASSWORD = 'a' AND LOGIN = true",
        "GRANT CREATE ON ALL ROLES TO alice",
        "GRANT ALTER ON ROLE slow TO alice",
    ] {
        admin.run(statement);
    }
    // Hashes of `two`.
    let costs_12 = "$2a$12$N9qo8uLOickgx2ZMRZoMyefqgdKwArsNY1NjKISXLgnmXoTHz7izy";
    let costs_13 = "$2a$13$N9qo8uLOickgx2ZMRZoMyeu.pfNoWmF6xM.AukYTZtm.4xJohzQJu";
    let (mut alice, reply) = Raw::login(server.address(), 4, ("alice", "a"));
    assert_eq!(reply.opcode, AUTH_SUCCESS);
    for role in ["ALTER ROLE alice", "ALTER ROLE slow", "CREATE ROLE another"] {
        let (code, text) = alice.query(&format!("{role} WITH HASHED PASSWORD = '{costs_13}'")).error();
        assert_eq!(code, UNAUTHORIZED, "{role}");
        assert!(text.contains("of cost 13") && text.contains("of cost 12 or less"), "{text}");
    }
    alice.run(&format!("ALTER ROLE alice WITH HASHED PASSWORD = '{costs_12}'"));
    admin.run(&format!("ALTER ROLE slow WITH HASHED PASSWORD = '{costs_13}'"));
    for role in ["alice", "slow"] {
        assert_eq!(Raw::login(server.address(), 4, (role, "two")).1.opcode, AUTH_SUCCESS, "{role}");
    }
}

#[test]
fn the_rust_driver_logs_in() {
    let server = with_logins(&[]);
    let session = Cql::connect_as(server.address(), ("cassandra", "cassandra")).expect("a login");
    assert_eq!(session.rows("LIST ROLES").len(), 1);
    assert!(Cql::connect_as(server.address(), ("cassandra", "wrong")).is_err());
}

#[test]
fn a_role_does_what_was_granted_to_it_and_nothing_else() {
    let server = with_logins(&["--authorizer", "CassandraAuthorizer"]);
    let mut admin = as_cassandra(&server);
    admin.run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    admin.run("CREATE TABLE ks.t (k int PRIMARY KEY, v int)");
    admin.run("CREATE USER bob WITH PASSWORD 'b'");
    let (mut bob, _) = Raw::login(server.address(), 5, ("bob", "b"));
    let refused = |permission: &str| {
        (
            UNAUTHORIZED,
            format!("User bob has no {permission} permission on <table ks.t> or any of its parents"),
        )
    };
    assert_eq!(bob.query("SELECT * FROM ks.t").error(), refused("SELECT"));
    admin.run("GRANT SELECT ON KEYSPACE ks TO bob");
    assert_eq!(bob.query("SELECT * FROM ks.t").opcode, RESULT);
    assert_eq!(bob.query("INSERT INTO ks.t (k) VALUES (1)").error(), refused("MODIFY"));
    assert_eq!(bob.query("SELECT * FROM system_auth.roles").error().0, UNAUTHORIZED);
    admin.run("REVOKE SELECT ON KEYSPACE ks FROM bob");
    assert_eq!(bob.query("SELECT * FROM ks.t").error(), refused("SELECT"));
    assert_eq!(bob.query("CREATE ROLE x").error().0, UNAUTHORIZED);
}

/// This machine's address on a network, if it has one beside the loopback.
fn own_address() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then(|| address.to_string())
}

#[test]
fn the_default_password_is_refused_from_elsewhere() {
    let Some(address) = own_address() else { return };
    let at = |server: &Server| {
        let (_, port) = server.address().rsplit_once(':').expect("HOST:PORT");
        format!("{address}:{port}")
    };
    let listen = format!("{address}:0");
    let start = |more: &[&str]| {
        Server::start_with(
            &[&["--authenticator", "PasswordAuthenticator", "--listen", &listen], more].concat(),
        )
    };
    let server = start(&[]);
    let (code, text) = Raw::login(&at(&server), 4, ("cassandra", "cassandra")).1.error();
    assert_eq!(code, BAD_CREDENTIALS);
    assert!(text.contains("--password-file") && text.contains("--allow-default-password"), "{text}");
    let wrong = Raw::login(&at(&server), 4, ("cassandra", "x")).1.error().1;
    assert_eq!(wrong, "Provided username cassandra and/or password are incorrect");
    let server = start(&["--allow-default-password"]);
    assert_eq!(Raw::login(&at(&server), 4, ("cassandra", "cassandra")).1.opcode, AUTH_SUCCESS);
}

#[test]
fn a_password_file_sets_the_first_password_and_never_brings_one_back() {
    let folder = TempDir::with_prefix("helenus-logins-").expect("a temporary directory");
    let file: PathBuf = folder.path().join("password");
    std::fs::write(&file, "s3cret\n").expect("a password");
    let with_mode = |mode| std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("a mode");
    let warns = |server: &Server| server.head().iter().any(|line| line.contains("chmod 600"));
    with_mode(0o644);
    let mut server = Server::start_with(&["--password-file", file.to_str().expect("UTF-8")]);
    assert!(warns(&server), "{:?}", server.head());
    assert!(!server.head().iter().any(|line| line.contains("default password")), "{:?}", server.head());
    let roles = ["-e", "SELECT role FROM system_auth.roles"];
    let with = |password| [&["-u", "cassandra", "-p", password], &roles[..]].concat();
    let output = shell(&server, &with("s3cret"));
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("cassandra"), "{output:?}");
    let output = shell(&server, &with("cassandra"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("are incorrect"), "{said}");
    let output = shell(&server, &roles);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("--username"), "{said}");
    std::fs::write(&file, "other").expect("a password");
    server.stop();
    with_mode(0o600);
    server.restart();
    assert!(!warns(&server), "{:?}", server.head());
    let said = server.head().join("\n");
    assert!(said.contains("helenus admin passwd cassandra"), "{said}");
    assert!(shell(&server, &with("s3cret")).status.success());
    assert!(!shell(&server, &with("other")).status.success());
}

#[test]
fn a_password_role_that_is_there_is_not_raised() {
    let folder = TempDir::with_prefix("helenus-logins-").expect("a temporary directory");
    let (file, config) = (folder.path().join("password"), folder.path().join("server.yaml"));
    std::fs::write(&file, "given\n").expect("a password");
    std::fs::write(&config, "authenticator: PasswordAuthenticator\n").expect("a configuration");
    let mut server = Server::start_in(folder, &["--config", config.to_str().expect("UTF-8")]);
    let mut own = as_cassandra(&server);
    own.run("CREATE ROLE plain WITH LOGIN = true AND PASSWORD = 'own'");
    own.run("CREATE ROLE locked WITH LOGIN = false");
    for (role, password) in [("plain", "own"), ("locked", "given")] {
        let text = format!(
            "authenticator: PasswordAuthenticator\npassword_file: {}\npassword_role: {role}\n",
            file.display()
        );
        std::fs::write(&config, text).expect("a configuration");
        server.stop();
        server.restart();
        let said = server.head().join("\n");
        assert!(said.contains("no superuser") && said.contains(role), "{said}");
        assert_eq!(said.contains("helenus admin passwd plain"), role == "plain", "{said}");
        let (mut client, reply) = Raw::login(server.address(), 4, (role, password));
        assert_eq!(reply.opcode == AUTH_SUCCESS, role == "plain", "{role}");
        if role == "plain" {
            let refused = client.query("CREATE ROLE s WITH SUPERUSER = true").error();
            assert!(refused.1.contains("Only superusers"), "{refused:?}");
        }
    }
}

/// The first superuser is dropped as the last step of an installation. A start of the same options does not bring it back.
#[test]
fn a_first_superuser_that_was_dropped_is_not_made_again() {
    let folder = TempDir::with_prefix("helenus-logins-").expect("a temporary directory");
    let file = folder.path().join("password");
    std::fs::write(&file, "s3cret\n").expect("a password");
    let file = file.to_str().expect("UTF-8").to_owned();
    let mut server = Server::start_in(folder, &["--password-file", &file]);
    let (mut first, reply) = Raw::login(server.address(), 4, ("cassandra", "s3cret"));
    assert_eq!(reply.opcode, AUTH_SUCCESS);
    first.run("CREATE ROLE root WITH SUPERUSER = true AND LOGIN = true AND PASSWORD = 'pw'");
    let (mut root, _) = Raw::login(server.address(), 4, ("root", "pw"));
    root.run("DROP ROLE cassandra");
    server.stop();
    server.restart();
    let said = server.head().join("\n");
    assert!(
        said.contains("cassandra of --password-file is not there") && said.contains("admin passwd"),
        "{said}"
    );
    assert_ne!(Raw::login(server.address(), 4, ("cassandra", "s3cret")).1.opcode, AUTH_SUCCESS);
    assert_eq!(Raw::login(server.address(), 4, ("root", "pw")).1.opcode, AUTH_SUCCESS);
}

/// The native protocol, in every version and by every request, and the old interface. Afterwards the connection is closed.
#[test]
fn the_sessions_of_a_dropped_or_locked_role_end_at_their_next_request() {
    let server = with_logins(&["--rpc", "127.0.0.1:0"]);
    let mut own = as_cassandra(&server);
    let request = |raw: &mut Raw, number: usize| match number {
        0 => raw.query("SELECT key FROM system.local"),
        1 => raw.query("USE system"),
        _ => raw.ask(0x09, &[&28_u32.to_be_bytes()[..], b"SELECT key FROM system.local", &[]].concat()),
    };
    let (drop, lock) = ("DROP ROLE app", "ALTER ROLE app WITH LOGIN = false");
    // While the session is idle another role gets the name, or the role may log in again.
    let (again, unlock) =
        ("CREATE ROLE app WITH PASSWORD = 'other' AND LOGIN = true", "ALTER ROLE app WITH LOGIN = true");
    for end in [&[drop][..], &[lock], &[drop, again], &[lock, unlock]] {
        for version in 3..=5 {
            for number in 0..if version < 5 { 3 } else { 2 } {
                own.run("CREATE ROLE IF NOT EXISTS app WITH PASSWORD = 'pw' AND LOGIN = true");
                let (mut raw, reply) = Raw::login(server.address(), version, ("app", "pw"));
                assert_eq!(reply.opcode, AUTH_SUCCESS);
                assert_eq!(request(&mut raw, number).opcode, RESULT);
                end.iter().for_each(|statement| own.run(statement));
                let (code, text) = request(&mut raw, number).error();
                assert_eq!(code, UNAUTHORIZED, "{text}");
                assert!(text.contains("session has ended") && text.contains("app"), "{text}");
                assert!(raw.try_query("SELECT key FROM system.local").is_none(), "v{version}: {number}");
                own.run("DROP ROLE IF EXISTS app");
            }
        }
        own.run("CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true");
        let mut calls = Calls::connect(&Calls::address_of(&server));
        let credentials = [("username", "app"), ("password", "pw")];
        let credentials = Map(credentials.map(|(key, value)| (key.into(), value.into())).to_vec());
        calls.answer(Method::Login, &args::Login { auth_request: AuthenticationRequest { credentials } });
        calls.answer(Method::DescribeKeyspace, &args::OfKeyspace { keyspace: "system" });
        end.iter().for_each(|statement| own.run(statement));
        let refused = calls.exception(Method::DescribeKeyspace, &args::OfKeyspace { keyspace: "system" });
        assert!(String::from_utf8_lossy(&refused).contains("session has ended"));
        assert!(calls.is_closed(), "the connection ends with that answer");
        own.run("DROP ROLE IF EXISTS app");
    }
}

#[test]
fn tools_log_in_by_a_file_by_the_environment_and_by_a_warned_option() {
    let folder = TempDir::with_prefix("helenus-logins-").expect("a temporary directory");
    let file = folder.path().join("password");
    std::fs::write(&file, "cassandra\n").expect("a password");
    let file = file.to_str().expect("UTF-8");
    let server = with_logins(&["--rpc", "127.0.0.1:0"]);
    let line = server.head().iter().find(|line| line.starts_with("rpc")).expect("the interface's address");
    let rpc = line.split_whitespace().nth(1).expect("an address");
    let script = folder.path().join("script");
    std::fs::write(&script, "show keyspaces;\n").expect("a script");
    let script = script.to_str().expect("UTF-8");
    let run = |arguments: &[&str], password: Option<&str>| {
        let mut command = Command::new(binary());
        command.args(arguments).env_remove("HELENUS_PASSWORD").stdin(std::process::Stdio::null());
        command.envs(password.map(|password| ("HELENUS_PASSWORD", password)));
        let output = command.output().expect("run helenus");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    let stress = ["stress", "insert", "--rows", "50", "--quiet", "--host", server.address()];
    let over_rpc = ["stress", "insert", "--rows", "50", "--quiet", "--keyspace", "old", "--rpc", rpc];
    let cli = ["cli", "--address", rpc, "-f", script];
    let (host, port) = server.address().rsplit_once(':').expect("HOST:PORT");
    let shell = ["shell", host, port, "-e", "SELECT role FROM system_auth.roles"];
    for arguments in [&stress[..], &over_rpc, &cli, &shell] {
        let with = |more: &[&str], password| run(&[arguments, more].concat(), password);
        let (is_done, said) = with(&["-u", "cassandra", "--password-file", file], None);
        assert!(is_done && !said.contains("WARNING"), "{arguments:?}: {said}");
        let (is_done, said) = with(&["-u", "cassandra"], Some("cassandra"));
        assert!(is_done && !said.contains("WARNING"), "{arguments:?}: {said}");
        let (is_done, said) = with(&["-u", "cassandra", "-p", "cassandra"], None);
        assert!(is_done && said.contains("list of processes"), "{arguments:?}: {said}");
        let (is_done, said) = with(&["-u", "cassandra"], None);
        assert!(!is_done && said.contains("--password-file"), "{arguments:?}: {said}");
        let (is_done, said) = with(&["-u", "cassandra"], Some("wrong"));
        assert!(!is_done && said.contains("are incorrect"), "{arguments:?}: {said}");
        let (is_done, _) = with(&[], None);
        assert!(!is_done, "{arguments:?}: no login");
    }
}

/// The answer to a call of the old interface, as text.
fn call<'a>(socket: &mut TcpStream, method: Method, asked: &impl Field<'a>) -> String {
    let mut message = Vec::new();
    let at = begin_call(method, 1, &mut message);
    asked.write(&mut message);
    end_message(at, &mut message);
    socket.write_all(&message).expect("write");
    let mut length = [0; 4];
    socket.read_exact(&mut length).expect("a frame");
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    socket.read_exact(&mut answer).expect("its message");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn the_old_interface_wants_the_same_login_and_the_same_permissions() {
    let server = with_logins(&["--authorizer", "CassandraAuthorizer", "--rpc", "127.0.0.1:0"]);
    let line = server.head().iter().find(|line| line.starts_with("rpc")).expect("the interface's address");
    let mut socket =
        TcpStream::connect(line.split_whitespace().nth(1).expect("an address")).expect("connect");
    let login = |pairs: &[(&'static str, &'static str)]| {
        let credentials = pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        args::Login { auth_request: AuthenticationRequest { credentials: Map(credentials) } }
    };
    let mut admin = as_cassandra(&server);
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k blob PRIMARY KEY, v blob) WITH COMPACT STORAGE",
        "CREATE USER bob WITH PASSWORD 'b'",
    ] {
        admin.run(statement);
    }
    let keyspace = args::OfKeyspace { keyspace: "ks" };
    let truncate = args::OfColumnFamily { column_family: "t" };
    assert!(call(&mut socket, Method::SetKeyspace, &keyspace).contains("You have not logged in"));
    assert!(call(&mut socket, Method::Truncate, &truncate).contains("You have not logged in"));
    for (credentials, expected) in [
        (&[("password", "b")][..], "Required key 'username' is missing"),
        (&[("username", "bob")], "Required key 'password' is missing for provided username bob"),
        (&[("username", "bob"), ("password", "x")], "Provided username bob and/or password are incorrect"),
    ] {
        let answer = call(&mut socket, Method::Login, &login(credentials));
        assert!(answer.contains(expected), "{answer}");
    }
    let answer = call(&mut socket, Method::Login, &login(&[("username", "bob"), ("password", "b")]));
    assert!(answer.ends_with("\u{1}\0"), "a reply without an exception: {answer:?}");
    call(&mut socket, Method::SetKeyspace, &keyspace);
    let refused = "User bob has no MODIFY permission on <table ks.t> or any of its parents";
    assert!(call(&mut socket, Method::Truncate, &truncate).contains(refused));
    admin.run("GRANT MODIFY ON ks.t TO bob");
    assert!(!call(&mut socket, Method::Truncate, &truncate).contains("permission"));
}

/// The limits of a role hold for all interfaces together.
#[test]
fn the_limits_of_a_role_are_counted_over_every_interface() {
    // With a data directory, because changes are read from its log.
    let server = Server::start_with(&[
        "--authenticator",
        "PasswordAuthenticator",
        "--authorizer",
        "CassandraAuthorizer",
        "--rpc",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
    ]);
    let address = |name: &str| {
        let line = server.head().iter().find(|line| line.starts_with(name)).expect("an interface");
        line.split_whitespace().nth(1).expect("an address").to_owned()
    };
    let mut admin = as_cassandra(&server);
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k blob PRIMARY KEY, v blob) WITH COMPACT STORAGE AND cdc = true",
        "CREATE ROLE bob WITH PASSWORD = 'b' AND LOGIN = true AND OPTIONS = {'connections_max': '2'}",
        "GRANT SELECT ON KEYSPACE ks TO bob",
    ] {
        admin.run(statement);
    }
    let native = |version| Raw::login(server.address(), version, ("bob", "b"));
    let rpc = || {
        let mut socket = TcpStream::connect(address("rpc")).expect("connect");
        let credentials = Map(vec![("username".into(), "bob".into()), ("password".into(), "b".into())]);
        let login = args::Login { auth_request: AuthenticationRequest { credentials } };
        let answer = call(&mut socket, Method::Login, &login);
        (socket, answer)
    };
    // bob:b
    let http = || {
        let mut socket = TcpStream::connect(address("http")).expect("connect");
        let request = format!(
            "GET /changes/ks/t HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Basic Ym9iOmI=\r\n\r\n",
            address("http")
        );
        socket.write_all(request.as_bytes()).expect("sent");
        let mut answer = [0; 4096];
        let count = socket.read(&mut answer).expect("an answer");
        (socket, String::from_utf8_lossy(&answer[..count]).into_owned())
    };
    let refusal =
        "Role bob has 2 connections, as many as it may have; close some (its option connections_max)";
    let (mut first, reply) = native(4);
    assert_eq!(reply.opcode, AUTH_SUCCESS);
    let (mut second, answer) = rpc();
    assert!(!answer.contains("connections_max"), "{answer}");
    let (code, text) = native(5).1.error();
    assert_eq!((code, &*text), (OVERLOADED, refusal));
    assert!(rpc().1.contains(refusal) && http().1.contains(refusal));
    // A change acts at once, also on those that are there.
    admin.run("ALTER ROLE bob WITH OPTIONS = {'connections_max': '3', 'requests_max': '1'}");
    let (stream, answer) = http();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (code, text) = first.query("SELECT * FROM ks.t").error();
    assert!(code == OVERLOADED && text.contains("requests_max"), "the stream is one: {text}");
    let keyspace = args::OfKeyspace { keyspace: "ks" };
    assert!(call(&mut second, Method::SetKeyspace, &keyspace).contains("requests_max"));
    let shown = admin.query("SELECT connections, requests FROM system_views.role_limits WHERE role = 'bob'");
    assert_eq!(shown.opcode, RESULT);
    admin.run("ALTER ROLE bob WITH OPTIONS = {'requests_max': '2'}");
    first.run("SELECT * FROM ks.t");
    drop((stream, first));
    assert!(!call(&mut second, Method::SetKeyspace, &keyspace).contains("requests_max"));
    admin.run("ALTER ROLE bob WITH OPTIONS = {'requests_max': '', 'request_bytes_max': '1KiB', 'statement_timeout': '10m'}");
    assert!(!call(&mut second, Method::SetKeyspace, &keyspace).contains("Role bob"));
}

/// The number of logins that the login pool has taken: those that are active and those that are completed.
fn taken_logins(server: &Server) -> u64 {
    let shown = server.admin(&["tpstats"]);
    let line = shown.lines().find(|line| line.starts_with("Native-Transport-Auth-Requests"));
    let figures: Vec<u64> =
        line.unwrap_or(&shown).split_whitespace().filter_map(|word| word.parse().ok()).collect();
    figures[0] + figures[2]
}

/// A check takes a core for long, so those of all interfaces share the few threads that are meant for them.
#[test]
fn logins_of_every_interface_are_checked_by_the_same_threads() {
    let options =
        ["--authenticator", "PasswordAuthenticator", "--rpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let server = Server::start_with(&options);
    let address = |name: &str| {
        let line = server.head().iter().find(|line| line.starts_with(name)).expect("an interface");
        line.split_whitespace().nth(1).expect("an address").to_owned()
    };
    let before = taken_logins(&server);
    as_cassandra(&server);
    assert_eq!(taken_logins(&server), before + 1);
    let mut socket = TcpStream::connect(address("rpc")).expect("connect");
    let credentials = [("username", "cassandra"), ("password", "cassandra")];
    let credentials = Map(credentials.map(|(key, value)| (key.into(), value.into())).to_vec());
    call(&mut socket, Method::Login, &args::Login { auth_request: AuthenticationRequest { credentials } });
    assert_eq!(taken_logins(&server), before + 2);
    let mut socket = TcpStream::connect(address("http")).expect("connect");
    // cassandra:cassandra
    let request = format!(
        "GET /changes/ks/t HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Basic Y2Fzc2FuZHJhOmNhc3NhbmRyYQ==\r\n\r\n",
        address("http")
    );
    socket.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400"), "no such table, after the login: {answer}");
    assert_eq!(taken_logins(&server), before + 3);
}

#[test]
fn what_cannot_be_kept_is_refused_at_the_start() {
    let folder = TempDir::with_prefix("helenus-logins-").expect("a temporary directory");
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").expect("an empty file");
    let empty = empty.to_str().expect("UTF-8");
    let no_text = folder.path().join("no-text");
    std::fs::write(&no_text, [0xFF; 20]).expect("a file");
    let no_text = no_text.to_str().expect("UTF-8");
    for (arguments, expected) in [
        (&["--authenticator", "LdapAuthenticator"][..], "AllowAllAuthenticator, PasswordAuthenticator"),
        (&["--authorizer", "CassandraAuthorizer"], "give authenticator: PasswordAuthenticator"),
        (
            &["--authenticator", "AllowAllAuthenticator", "--password-file", empty],
            "AllowAllAuthenticator asks for no password",
        ),
        (&["--password-file", empty], "its first line is empty"),
        (&["--password-file", "/no/such/file"], "/no/such/file"),
        (&["--password-file", folder.path().to_str().expect("UTF-8")], "Is a directory"),
        (&["--password-file", no_text], "is no text in UTF-8"),
    ] {
        let said = refused(&[&["serve", "--memory", "--listen", "127.0.0.1:0"], arguments].concat());
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn no_password_is_left_in_a_trace_or_in_the_log() {
    let folder = TempDir::with_prefix("helenus-logins-").expect("a temporary directory");
    let config = folder.path().join("server.yaml");
    let yaml = "authenticator:\n  class_name: org.apache.cassandra.auth.PasswordAuthenticator\n\
                slow_query_log_timeout: 1ms\nlog_values: true\nlog_level: debug\n";
    std::fs::write(&config, yaml).expect("a configuration");
    let server = Server::start_with(&["--memory", "--config", config.to_str().expect("UTF-8")]);
    let mut admin = as_cassandra(&server);
    let statement = "CREATE ROLE traced WITH PASSWORD = 'topsecret'";
    let traced = end_to_end::raw::frame(4, 0x02, 1, QUERY, &query(4, statement, &[]));
    admin.send(&traced);
    assert_eq!(admin.receive().expect("an answer").opcode, RESULT);
    admin.query("CREATE ROLE x WITH PASSWORD = 'topsecret' AND nonsense");
    let shown = admin.query("SELECT parameters FROM system_traces.sessions");
    let shown = String::from_utf8_lossy(&shown.body).into_owned();
    assert!(shown.contains("PASSWORD = '*******'") && !shown.contains("topsecret"), "{shown}");
    let log = server.log();
    assert!(log.contains("CREATE ROLE") && !log.contains("topsecret"), "{log}");
}

#[test]
fn without_logins_nothing_has_changed() {
    let server = Server::start_with(&["--memory"]);
    let (mut raw, reply) = Raw::greeted(server.address(), 4);
    assert_eq!(reply.opcode, READY);
    assert_eq!(raw.authenticate(b"any").opcode, AUTH_SUCCESS);
    let text = "You have to be logged in and not anonymous to perform this request";
    assert_eq!(raw.query("LIST ROLES").error(), (UNAUTHORIZED, text.to_owned()));
}

/// Whoever sees masks may not ask for the values behind them, by a condition or by an order.
#[test]
fn masked_columns_are_not_searched_without_the_permission() {
    let server =
        with_logins(&["--authorizer", "CassandraAuthorizer", "--set", "dynamic_data_masking_enabled=true"]);
    let mut admin = as_cassandra(&server);
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, e vector<float, 2> MASKED WITH DEFAULT, v int MASKED WITH DEFAULT)",
        "CREATE CUSTOM INDEX ON ks.t (e) USING 'StorageAttachedIndex'",
        "INSERT INTO ks.t (k, e, v) VALUES (1, [1, 2], 3)",
        "CREATE ROLE bob WITH PASSWORD = 'b' AND LOGIN = true",
        "GRANT SELECT ON ks.t TO bob",
    ] {
        admin.run(text);
    }
    let (mut bob, _) = Raw::login(server.address(), 4, ("bob", "b"));
    let nearest = "SELECT k FROM ks.t ORDER BY e ANN OF [1, 2] LIMIT 1";
    for (text, column) in [(nearest, "[e]"), ("SELECT k FROM ks.t WHERE v = 3 ALLOW FILTERING", "[v]")] {
        let (code, why) = bob.query(text).error();
        assert!(
            code == UNAUTHORIZED && why.ends_with(&format!("cannot query masked columns {column}")),
            "{why}"
        );
    }
    bob.run("SELECT k, e FROM ks.t");
    admin.run("GRANT SELECT_MASKED ON ks.t TO bob");
    bob.run(nearest);
}

/// bcrypt makes the same hash of a password and of its repetitions with NULs between.
#[test]
fn a_password_with_nul_is_refused() {
    let server = with_logins(&["--rpc", "127.0.0.1:0"]);
    let mut admin = as_cassandra(&server);
    let (code, why) = admin.query("CREATE ROLE a WITH PASSWORD = 'x\0x'").error();
    assert!(code == INVALID && why.contains("NUL"), "{why}");
    let mut calls = Calls::connect(&Calls::address_of(&server));
    let login = |password| {
        let credentials = Map(vec![("username".into(), "cassandra".into()), ("password".into(), password)]);
        args::Login { auth_request: AuthenticationRequest { credentials } }
    };
    let refused = calls.exception(Method::Login, &login("cassandra\0cassandra".into()));
    assert!(String::from_utf8_lossy(&refused).contains("incorrect"), "{}", String::from_utf8_lossy(&refused));
    calls.answer(Method::Login, &login("cassandra".into()));
}
