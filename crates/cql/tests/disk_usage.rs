//! The guardrail on the usage of the data's disk: its states, and what writes see of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use helenus_cql::backend::{Backend, Identity, NoRows, Request};
use helenus_cql::guardrails::{DiskBytes, DiskState, Guardrails, Threshold};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::sim::Machine;

fn state(warn: Option<u64>, fail: Option<u64>, most: Option<u64>, bytes: (u64, u64, u64)) -> DiskState {
    let guardrails = Guardrails {
        data_disk_usage: Threshold { warn, fail },
        data_disk_usage_max_bytes: most,
        ..Guardrails::default()
    };
    let (used, free, memtables) = bytes;
    guardrails.disk_state(DiskBytes { used, free, memtables }).0
}

#[test]
fn usage_is_counted_as_cassandra_counts_it() {
    let (warn, fail) = (Some(70), Some(90));
    assert_eq!(state(None, None, None, (99, 1, 0)), DiskState::NotAvailable);
    assert_eq!(state(warn, fail, None, (70, 30, 0)), DiskState::Spacious);
    // 70.1 % is 71 %.
    assert_eq!(state(warn, fail, None, (701, 299, 0)), DiskState::Stuffed);
    assert_eq!(state(warn, fail, None, (90, 10, 0)), DiskState::Stuffed);
    assert_eq!(state(warn, fail, None, (90, 10, 1)), DiskState::Full);
    // Of a part of the disk.
    assert_eq!(state(warn, fail, Some(100), (60, 1000, 0)), DiskState::Spacious);
    assert_eq!(state(warn, fail, Some(100), (60, 1000, 35)), DiskState::Full);
    assert_eq!(state(None, fail, None, (0, 0, 0)), DiskState::Spacious);
    assert_eq!(state(None, fail, Some(1), (u64::MAX, u64::MAX, u64::MAX)), DiskState::Full);
}

#[test]
fn a_full_disk_refuses_every_write_and_a_stuffed_one_warns_once_in_half_an_hour() {
    const HALF_HOUR_NS: u64 = 30 * 60 * 1_000_000_000;
    let machine = Machine::new(5);
    let (database, _) = Database::open(machine.host(), DatabaseOptions::new("/db")).unwrap();
    let backend = LocalBackend::new(database, LocalOptions::default());
    backend.set_live_options(&LocalOptions {
        guardrails: Guardrails {
            data_disk_usage: Threshold { warn: Some(1), fail: None },
            ..Guardrails::default()
        },
        ..LocalOptions::default()
    });
    let identity = Identity::default();
    let run = |text: &str| backend.query(text, &Request::plain(&identity, &[]), &mut NoRows);
    run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").unwrap();
    run("CREATE TABLE k.t (p int PRIMARY KEY)").unwrap();
    let write = || run("INSERT INTO k.t (p) VALUES (1)");
    let is_warned = || write().unwrap().warnings.iter().any(|warning| warning.contains("replica_disk_usage"));
    assert!(!is_warned());
    backend.set_disk_state(DiskState::Full);
    for _ in 0..2 {
        let refusal = write().err().unwrap().to_string();
        assert!(refusal.contains("Guardrail replica_disk_usage violated: Write request failed"), "{refusal}");
    }
    backend.set_disk_state(DiskState::Stuffed);
    assert!(is_warned() && !is_warned());
    machine.advance(HALF_HOUR_NS);
    assert!(is_warned() && !is_warned());
    backend.set_disk_state(DiskState::Spacious);
    machine.advance(HALF_HOUR_NS);
    assert!(!is_warned());
}
