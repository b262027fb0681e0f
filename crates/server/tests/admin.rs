//! The admin socket on a database of its own: verbs, wrong lines, stale files, long paths.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_server::admin::*;

/// A server without clients or listeners.
struct Closed;

impl ServerControl for Closed {
    fn connections(&self) -> usize {
        3
    }
    fn pools(&self) -> Vec<Pool> {
        Vec::new()
    }
    fn request_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
    fn resident_bytes(&self) -> Option<u64> {
        None
    }
    fn trace_probability(&self) -> f64 {
        0.0
    }
    fn set_trace_probability(&self, _: f64) {}
    fn close(&self) {}
    fn are_open(&self) -> bool {
        true
    }
    fn resume(&self) -> Result<(), String> {
        Ok(())
    }
    fn pause(&self) -> Result<(), String> {
        Ok(())
    }
    fn clients(&self) -> ClientsSeen {
        ClientsSeen::default()
    }
    fn clear_clients(&self) {}
    fn enable_audit(&self, _: &AuditOverrides) -> Result<(), String> {
        Err("there is no audit log".to_owned())
    }
    fn disable_audit(&self) {}
    fn reload_tls(&self) -> Result<(), String> {
        Err("no TLS".to_owned())
    }

    fn audit_change(&self, _: helenus_cql::audit::EventType, _: &str) {}
    fn audit(&self) -> AuditState {
        AuditState::default()
    }
    fn setting(&self, _: &'static str) -> String {
        String::new()
    }
    fn set(&self, key: &'static str, _: Option<&str>) -> Result<(), String> {
        Err(format!("{key} stays as it is"))
    }
    fn reload(&self) -> Result<Reloaded, String> {
        Ok(Reloaded::default())
    }
}

fn facts() -> ServerInfo {
    ServerInfo {
        version: "1.2.3",
        listening: "127.0.0.1:9042".parse().unwrap(),
        rpc: None,
        directory: Some("/somewhere".into()),
        sync: Some("group"),
        warnings: vec!["open to all".to_owned()],
        control: Arc::new(Closed),
        further: Default::default(),
    }
}

fn backend(directory: &Path) -> Arc<LocalBackend> {
    let database = Database::open(helenus_host::real::host(), DatabaseOptions::new(directory)).unwrap().0;
    LocalBackend::new(database, LocalOptions::default())
}

#[test]
fn status_and_flush_are_answered_and_errors_say_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let host = helenus_host::real::host();
    let path = socket_for_data(directory.path());
    assert_eq!(path, directory.path().join("admin.sock"));
    let backend = backend(directory.path());
    let database = backend.database();
    let server = AdminServer::start(&host, &backend, &path, facts()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let AdminAnswer::Status(status) = ask(&path, &AdminRequest::Status).unwrap() else { panic!("status") };
    assert_eq!((status.version.as_str(), status.connections), ("1.2.3", 3));
    assert_eq!(status.host_id, database.host_id().to_string());

    let flush = |keyspace: Option<&str>, table: Option<&str>| {
        let keyspace = keyspace.map(str::to_owned);
        let which = TableSelection { keyspace, tables: table.map(str::to_owned).into_iter().collect() };
        ask(&path, &AdminRequest::Flush { which }).unwrap()
    };
    assert!(matches!(flush(None, None), AdminAnswer::Flushed(_)));
    let compact = |keyspace: &str| AdminRequest::Compact { which: TableSelection::keyspace(keyspace) };
    let AdminAnswer::Compaction(mut compaction) = ask(&path, &compact("system_schema")).unwrap() else {
        panic!("compact")
    };
    while !compaction.is_over {
        let AdminAnswer::Compaction(later) =
            ask(&path, &AdminRequest::Compaction { number: compaction.number }).unwrap()
        else {
            panic!("compaction")
        };
        compaction = later;
    }
    assert!(compaction.compactions >= 2 && compaction.sstables > 0, "{compaction:?}");
    let missing = AdminAnswer::Error("Keyspace [nowhere] does not exist.".into());
    assert_eq!(ask(&path, &compact("nowhere")).unwrap(), missing);
    assert!(matches!(flush(Some("system_schema"), Some("tables")), AdminAnswer::Flushed(_)));
    assert_eq!(flush(Some("nowhere"), None), AdminAnswer::Error("Keyspace [nowhere] does not exist.".into()));
    let missing = AdminAnswer::Error("Unknown keyspace/cf pair (system_schema.t)".into());
    assert_eq!(flush(Some("system_schema"), Some("t")), missing);
    let AdminAnswer::DiskUsage(usage) = ask(&path, &AdminRequest::DiskUsage).unwrap() else {
        panic!("space")
    };
    let has = |what: &str, table: &str| {
        usage.uses.iter().any(|line| line.what == what && line.table == table && line.bytes > 0)
    };
    assert!(has("SSTables", "tables") && has("commit log", "") && has("other", ""), "{usage:?}");
    assert!(!usage.uses.iter().any(|line| line.what == "waiting for removal"), "{usage:?}");
    assert!(usage.free_bytes.is_some() && usage.uses.is_sorted_by_key(|line| std::cmp::Reverse(line.bytes)));
    let AdminAnswer::Compactions(compactions) = ask(&path, &AdminRequest::Compactions).unwrap() else {
        panic!("compactions")
    };
    assert_eq!((compactions.troubles, compactions.reduced), (Vec::new(), 0));
    server.stop();
    assert!(!path.exists(), "the socket goes with the server");
    assert!(ask(&path, &AdminRequest::Status).unwrap_err().to_string().contains("no server answers at"));
    database.close().unwrap();
}

#[test]
fn wrong_lines_are_answered_and_the_connection_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let host = helenus_host::real::host();
    let path = socket_for_data(directory.path());
    let _server = AdminServer::start(&host, &backend(directory.path()), &path, facts()).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"hello\n{\"verb\":\"explode\"}\n{\"verb\":\"status\"}\n").unwrap();
    let lines: Vec<_> = BufReader::new(stream).lines().take(3).map(Result::unwrap).collect();
    assert!(lines[0].starts_with(r#"{"error":"not a request: "#), "{}", lines[0]);
    assert!(lines[1].contains("unknown variant"), "{}", lines[1]);
    assert!(lines[2].starts_with(r#"{"status":{"#), "{}", lines[2]);
}

#[test]
fn a_socket_left_by_a_killed_server_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let host = helenus_host::real::host();
    let path = socket_for_data(directory.path());
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "as a killed server leaves it");
    let _server = AdminServer::start(&host, &backend(directory.path()), &path, facts()).unwrap();
    assert!(matches!(ask(&path, &AdminRequest::Status), Ok(AdminAnswer::Status(_))));
}

#[test]
fn a_server_that_stops_removes_its_own_socket_and_no_other_file() {
    let directory = tempfile::tempdir().unwrap();
    let host = helenus_host::real::host();
    let backend = backend(directory.path());
    let path = socket_for_data(directory.path());
    let server = AdminServer::start(&host, &backend, &path, facts()).unwrap();
    server.stop();
    assert!(!path.exists(), "its own");
    let server = AdminServer::start(&host, &backend, &path, facts()).unwrap();
    // While the first is there, so that the second is another file for certain.
    let other = directory.path().join("other");
    let _listens = std::os::unix::net::UnixListener::bind(&other).unwrap();
    std::fs::rename(&other, &path).unwrap();
    server.stop();
    assert!(path.exists(), "the socket of another server");
    drop(server);
    assert!(path.exists(), "nor when it is dropped");
}

/// A part of the program whose answer comes when the test says so.
struct Slow {
    asked: std::sync::mpsc::SyncSender<()>,
    may_end: std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
}

impl FurtherVerbs for Slow {
    fn answer(&self, _: &str) -> Result<String, String> {
        self.asked.send(()).unwrap();
        self.may_end.lock().unwrap().recv().unwrap();
        Ok(String::new())
    }
}

#[test]
fn the_end_of_the_server_does_not_wait_for_what_another_part_does_for_a_tool() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket_for_data(directory.path());
    let (asked, is_asked) = std::sync::mpsc::sync_channel(1);
    let (let_end, may_end) = std::sync::mpsc::sync_channel(1);
    let slow: Arc<dyn FurtherVerbs> = Arc::new(Slow { asked, may_end: may_end.into() });
    let facts = ServerInfo { further: [("slow", slow)].into(), ..facts() };
    let server =
        AdminServer::start(&helenus_host::real::host(), &backend(directory.path()), &path, facts).unwrap();
    let request = AdminRequest::Further { tool: "slow".to_owned(), request: String::new() };
    let asking = std::thread::spawn(move || ask(&path, &request));
    is_asked.recv().unwrap();
    server.stop();
    assert!(asking.join().unwrap().is_err(), "its connection has ended");
    let_end.send(()).unwrap();
}

#[test]
fn a_path_too_long_for_a_socket_moves_it_to_the_users_folder() {
    let directory = tempfile::tempdir().unwrap();
    let long = directory.path().join("d".repeat(120));
    std::fs::create_dir(&long).unwrap();
    let host = helenus_host::real::host();
    let path = socket_for_data(&long);
    assert!(!path.starts_with(&long) && path == socket_for_data(&long));
    let _server = AdminServer::start(&host, &backend(&long), &path, facts()).unwrap();
    assert!(matches!(ask(&path, &AdminRequest::Status), Ok(AdminAnswer::Status(_))));
    let folder = std::fs::metadata(path.parent().unwrap()).unwrap();
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
}
