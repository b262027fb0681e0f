//! Roles that are limited to datacenters and networks, and nodetool's verbs for groups of networks. The words are those of
//! Cassandra 5.0.9 (`ClientState.validateLogin`, `CassandraCIDRAuthorizer`).

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use end_to_end::raw::{AUTH_SUCCESS, BATCH, OPTIONS, PREPARE, QUERY, READY, REGISTER, RESULT, Raw, query};
use end_to_end::{Server, refused};
use tempfile::TempDir;

const SUPPORTED: u8 = 0x06;
const UNAUTHORIZED: i32 = 0x2100;
const INVALID: i32 = 0x2200;
const ELSEWHERE: &str = "You do not have access from this IP 127.0.0.1";

/// A server with logins and these further lines of configuration.
fn limited(lines: &str) -> Server {
    let folder = TempDir::with_prefix("helenus-networks-").expect("a temporary directory");
    let config = folder.path().join("server.yaml");
    fs::write(&config, format!("authenticator: PasswordAuthenticator\n{lines}\n")).expect("a configuration");
    Server::start_in(folder, &["--config", config.to_str().expect("UTF-8")])
}

fn login(server: &Server, user: &str) -> Raw {
    let password = if user == "cassandra" { "cassandra" } else { "pw" };
    let (raw, reply) = Raw::login(server.address(), 4, (user, password));
    assert_eq!(reply.opcode, AUTH_SUCCESS, "{reply:?}");
    raw
}

/// The cells of the rows of an answer, as text.
fn text(raw: &mut Raw, query: &str) -> String {
    let reply = raw.query(query);
    assert_eq!(reply.opcode, RESULT, "{query}: {:?}", reply.error());
    String::from_utf8_lossy(&reply.body).into_owned()
}

#[test]
fn a_role_uses_the_server_in_its_datacenters_alone() {
    let mut server = limited("network_authorizer: CassandraNetworkAuthorizer");
    let mut admin = login(&server, "cassandra");
    let refusal = admin.query("CREATE ROLE x WITH ACCESS TO DATACENTERS {'nosuch'}").error();
    let words = "Invalid value(s) for DATACENTERS '[nosuch]',All values must be valid datacenters";
    assert_eq!(refusal, (INVALID, words.to_owned()));
    admin.run(
        "CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true AND ACCESS TO DATACENTERS {'datacenter1'}",
    );
    admin.run("CREATE ROLE free WITH PASSWORD = 'pw' AND LOGIN = true");
    let listed = text(&mut admin, "LIST ROLES");
    assert!(listed.contains("datacenter1") && listed.contains("ALL"), "{listed}");
    login(&server, "app").run("SELECT key FROM system.local");
    server.stop();
    server.add_args(&["--datacenter", "elsewhere"]);
    server.restart();
    let mut app = login(&server, "app");
    let words = "You do not have access to this datacenter (elsewhere)";
    for statement in ["SELECT key FROM system.local", "USE system", "DESCRIBE TABLES", "LIST ROLES"] {
        assert_eq!(app.query(statement).error(), (UNAUTHORIZED, words.to_owned()), "{statement}");
    }
    login(&server, "free").run("SELECT key FROM system.local");
    let mut admin = login(&server, "cassandra");
    admin.run("ALTER ROLE app WITH ACCESS TO ALL DATACENTERS");
    app.run("SELECT key FROM system.local");
    admin.run("ALTER ROLE app WITH ACCESS TO DATACENTERS {'elsewhere'}");
    app.run("SELECT key FROM system.local");
    admin.run("ALTER ROLE app WITH LOGIN = false");
    let (code, text) = app.query("USE system").error();
    assert!(code == UNAUTHORIZED && text.contains("may not log in any more"), "{text}");
}

#[test]
fn a_role_uses_the_server_from_its_networks_alone() {
    let server = limited(
        "cidr_authorizer: {class_name: CassandraCIDRAuthorizer, parameters: {cidr_authorizer_mode: ENFORCE}}\nhttp: 0.0.0.0:0",
    );
    let line =
        server.head().iter().find_map(|line| line.trim().strip_prefix("http ")).expect("the HTTP port");
    let port = line
        .split_whitespace()
        .next()
        .and_then(|address| address.rsplit(':').next())
        .expect("a port")
        .to_owned();
    // Names and passwords of app, free and nobody.
    let metrics = |login: &str| {
        let mut socket = TcpStream::connect(format!("127.0.0.1:{port}")).expect("the HTTP port");
        let head = format!("Host: 127.0.0.1:{port}\r\nConnection: close\r\nAuthorization: Basic {login}");
        socket.write_all(format!("GET /metrics HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        answer.split(' ').nth(1).expect("a status").to_owned()
    };
    let (app_login, free_login) = ("YXBwOnB3", "ZnJlZTpwdw==");
    let mut admin = login(&server, "cassandra");
    let refusal = admin.query("CREATE ROLE x WITH ACCESS FROM CIDRS {'office'}").error();
    assert_eq!(
        refusal,
        (INVALID, "Invalid CIDR group(s): [office]. Available CIDR Groups are: []".to_owned())
    );
    assert_eq!(server.admin(&["listcidrgroups"]), "");
    server.admin(&["updatecidrgroup", "office", "10.1.2.3/8", "2001:db8::/32"]);
    server.admin(&["updatecidrgroup", "here", "127.0.0.0/8"]);
    assert_eq!(server.admin(&["listcidrgroups", "office"]), "CIDRs:       \n10.0.0.0/8   \n2001:db8::/32\n");
    admin.run("CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true AND ACCESS FROM CIDRS {'office'}");
    admin.run("CREATE ROLE free WITH PASSWORD = 'pw' AND LOGIN = true");
    server.admin(&["reloadcidrgroupscache"]);
    let mut app = login(&server, "app");
    for statement in ["SELECT key FROM system.local", "USE system", "DESCRIBE TABLES"] {
        assert_eq!(app.query(statement).error(), (UNAUTHORIZED, ELSEWHERE.to_owned()), "{statement}");
    }
    // Every kind of request, whether it needs a permission or not.
    let query = query(4, "SELECT key FROM system.local", &[]);
    let prepare = [&28_u32.to_be_bytes()[..], b"SELECT key FROM system.local"].concat();
    let events = b"\0\x02\0\x0dSCHEMA_CHANGE\0\x0dSTATUS_CHANGE".to_vec();
    let batch = b"\0\0\0\0\x01\0".to_vec();
    let requests = [(QUERY, query), (PREPARE, prepare), (REGISTER, events.clone()), (BATCH, batch)];
    for (opcode, body) in requests {
        assert_eq!(app.ask(opcode, &body).error(), (UNAUTHORIZED, ELSEWHERE.to_owned()), "opcode {opcode}");
    }
    assert_eq!([app_login, free_login, "YTpi"].map(metrics), ["403", "200", "401"]);
    admin.run("CREATE KEYSPACE seen WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    assert_eq!(app.ask(OPTIONS, &[]).opcode, SUPPORTED, "and no event before");
    assert_eq!(login(&server, "free").ask(REGISTER, &events).opcode, READY);
    login(&server, "free").run("SELECT key FROM system.local");
    admin.run("ALTER ROLE app WITH ACCESS FROM CIDRS {'office', 'here'}");
    app.run("SELECT key FROM system.local");
    assert_eq!(metrics(app_login), "200");
    assert_eq!(app.ask(REGISTER, &events).opcode, READY);
    assert_eq!(server.admin(&["getcidrgroupsofip", "127.0.0.1"]), "CIDR Groups: \nhere         \n");
    assert_eq!(server.admin(&["getcidrgroupsofip", "9.9.9.9"]), "");
    // The narrowest network counts, and this one has another group.
    server.admin(&["updatecidrgroup", "one", "127.0.0.1/32"]);
    server.admin(&["reloadcidrgroupscache"]);
    assert_eq!(app.query("USE system").error(), (UNAUTHORIZED, ELSEWHERE.to_owned()));
    assert_eq!(server.admin(&["dropcidrgroup", "one"]), "Deleted CIDR group one\n");
    server.admin(&["reloadcidrgroupscache"]);
    app.run("USE system");
    let stats = server.admin(&["cidrfilteringstats"]);
    for line in [
        "accepted from CIDR group - here",
        "rejected from CIDR group - here",
        "rejected from CIDR group - one",
    ] {
        assert!(stats.contains(line), "{stats}");
    }
    assert!(stats.contains("CIDR groups cache reload count"), "{stats}");
    let told = server.admin(&["invalidatecidrpermissionscache", "app", "nosuch"]);
    assert!(
        told.contains("Invalidated the role app from") && told.contains("Not found role nosuch in"),
        "{told}"
    );
    let data = server.data();
    let data = data.to_str().expect("UTF-8");
    for (words, expected) in [
        (&["updatecidrgroup", "office", "10.0.0.0/99"][..], "10.0.0.0/99 is not a valid CIDR String"),
        (&["updatecidrgroup", "office"], "requires a cidr group name and atleast one CIDR"),
        (&["dropcidrgroup", "nosuch"], "CIDR group 'nosuch' doesn't exists"),
        (&["getcidrgroupsofip", "nowhere"], "Invalid IP nowhere"),
    ] {
        let said = refused(&[&["admin", "--data", data], words].concat());
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}

#[test]
fn access_from_other_networks_is_only_logged_where_they_are_monitored() {
    let server = limited("cidr_authorizer: {class_name: CassandraCIDRAuthorizer}");
    let mut admin = login(&server, "cassandra");
    server.admin(&["updatecidrgroup", "office", "10.0.0.0/8"]);
    admin.run("CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true AND ACCESS FROM CIDRS {'office'}");
    login(&server, "app").run("SELECT key FROM system.local");
    let stats = server.admin(&["cidrfilteringstats"]);
    assert!(stats.contains("accepted from CIDR group - Undefined"), "{stats}");
    let words = "Role app accessed from unauthorized IP 127.0.0.1";
    while !server.log().contains(words) {
        std::thread::yield_now();
    }
}

#[test]
fn without_the_authorizers_limits_are_refused_or_kept_as_by_cassandra() {
    let server = limited("");
    let mut admin = login(&server, "cassandra");
    admin.run("CREATE ROLE app WITH PASSWORD = 'pw' AND LOGIN = true");
    let refusal = admin.query("ALTER ROLE app WITH ACCESS TO DATACENTERS {'datacenter1'}").error();
    let words = "ACCESS TO DATACENTERS operations not supported by AllowAllNetworkAuthorizer";
    assert_eq!(refusal, (INVALID, words.to_owned()));
    server.admin(&["updatecidrgroup", "office", "10.0.0.0/8"]);
    admin.run("ALTER ROLE app WITH ACCESS FROM CIDRS {'office'}");
    login(&server, "app").run("SELECT key FROM system.local");
    let data = server.data();
    for verb in [
        &["getcidrgroupsofip", "127.0.0.1"][..],
        &["reloadcidrgroupscache"],
        &["invalidatecidrpermissionscache"],
    ] {
        let said = refused(&[&["admin", "--data", data.to_str().expect("UTF-8")], verb].concat());
        assert!(said.contains("operation not supported by AllowAllCIDRAuthorizer"), "{said}");
    }
}
