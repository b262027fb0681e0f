//! What a front refuses, and that clients are served by somebody again after a failure.

use super::*;
use crate::commands::serve::run::{local_options, open_quietly};
use helenus_engine::JournalSlot;
use helenus_mover::ClientsRole;
use helenus_server::audit::{AuditNode, AuditOverrides};
use helenus_server::config::Settings;
use helenus_server::log::Format;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// The front of a server that keeps everything in memory and has these settings. At the side of the cluster clients wait for a target that
/// is not connected.
fn front(settings: &[&str], side: Side) -> Arc<ServerFront> {
    front_in(settings, side, None)
}

/// The same, whose audit log is in this directory.
fn front_in(settings: &[&str], side: Side, directory: Option<PathBuf>) -> Arc<ServerFront> {
    let config = config(settings);
    let host = helenus_host::memory::host();
    let log = Log::start(&helenus_host::real::host(), Format::Text { coloured: false }, None);
    let database = open_quietly(&host, &config, (Arc::default(), JournalSlot::default()), true).unwrap();
    let local = LocalBackend::new(database, local_options(&config));
    local.begin_logins(None).unwrap();
    let native = NativeServer::start(&host, local.clone(), config.listen, config.limits.clone()).unwrap();
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let node = AuditNode { address, directory, memory_limit: config.memory_limit };
    let audit = Audit::new(&helenus_host::real::host(), &log, node, config.audit.clone()).unwrap();
    let parts =
        FrontParts { host, native: Arc::new(native), rpc: None, local, config, tls: None, log, audit };
    let front = ServerFront::new(parts, side).unwrap();
    if side == Side::Cluster {
        front.state.lock().listeners = front.parts.native.give_listeners().map(of_gateway);
    }
    front
}

fn config(settings: &[&str]) -> ServerConfig {
    let mut all = Settings::default();
    for text in ["memory=true", "native_transport_port=0"].iter().chain(settings) {
        all.set_key(text).unwrap();
    }
    ServerConfig::new(&all, 1 << 30, 1).unwrap()
}

/// A move to a port where nobody is.
fn order() -> MoveOrder {
    MoveOrder {
        to: vec!["127.0.0.1:1".to_owned()],
        local_dc: None,
        login: None,
        password_file: None,
        clients: None,
        tls: None,
        what: Vec::new(),
        replication: BTreeMap::new(),
        rows_per_second: 0,
        target_p99_ms: 100,
        ranges_at_once: 1,
        roles: false,
    }
}

fn refusal(connected: Result<(), FrontError>) -> String {
    connected.unwrap_err().to_string()
}

const LOGINS: &str = "authenticator=PasswordAuthenticator";

#[test]
fn a_start_after_a_cut_refuses_what_the_cut_refuses() {
    let clients = || Some(ClientsRole { user: "app".to_owned(), password_file: String::new() });
    let login = || Some(("mover".to_owned(), String::new()));
    for (settings, order, expected) in [
        (&[][..], MoveOrder { login: login(), ..order() }, "served as mover"),
        (
            &[LOGINS],
            MoveOrder { clients: clients(), login: login(), ..order() },
            "leave --clients-role app out",
        ),
        (&["keyspaces_fail_threshold=5"], order(), "guardrails"),
        (&[], order(), "the target:"),
        (&[LOGINS], order(), "the target:"),
    ] {
        for side in [Side::Local, Side::Cluster] {
            let front = front(settings, side);
            let said = refusal(front.make_ready(&order));
            assert!(said.contains(expected), "{settings:?}: {said}");
            // As at a start after a cut (`try_begin_at`).
            assert_eq!(refusal(front.connect(&order)), said);
        }
    }
}

#[test]
fn settings_that_changed_while_the_server_runs_count_until_the_moment_of_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let front = front_in(&[], Side::Local, Some(folder.path().to_owned()));
    let of_target = "the target is not connected";
    assert!(refusal(front.to_cluster(false)).contains(of_target));
    let live = |settings: &[&str]| front.parts.local.set_live_options(&local_options(&config(settings)));
    live(&["keyspaces_fail_threshold=5"]);
    for refused in [front.make_ready(&order()), front.to_cluster(false)] {
        assert!(refusal(refused).contains("guardrails"));
    }
    live(&[]);
    assert!(refusal(front.to_cluster(false)).contains(of_target));
    let to_file = AuditOverrides { logger: Some("FileAuditLogger".to_owned()), ..AuditOverrides::default() };
    front.change_here(|| front.parts.audit.enable(&to_file)).unwrap().unwrap();
    for refused in [front.make_ready(&order()), front.to_cluster(false)] {
        assert!(refusal(refused).contains("audit_logging_options"));
    }
    front.parts.audit.disable();
    assert!(refusal(front.to_cluster(false)).contains(of_target));
    assert!(front.is_open(), "clients are served here");
}

#[test]
fn no_limit_is_set_where_clients_are_served_by_the_target() {
    let front = front(&[], Side::Cluster);
    assert_eq!(front.change_here(|| panic!("it is made")), None::<()>);
}

#[test]
fn clients_that_nobody_serves_are_served_once_it_can_be_done() {
    let front = front(&[], Side::Cluster);
    // As after a pause that failed, with a target that cannot be reached.
    front.go_on();
    let is_waiting = || {
        let state = front.state.lock();
        (state.is_paused, state.tries_again)
    };
    assert_eq!(is_waiting(), (true, true));
    assert!(refusal(front.pause(Duration::ZERO)).contains("not served at this moment"));
    front.go_on();
    assert_eq!(is_waiting(), (true, true), "it is tried again");
    front.to_local().unwrap();
    assert_eq!((is_waiting(), front.is_open()), ((false, false), true));
    front.stop();
}
