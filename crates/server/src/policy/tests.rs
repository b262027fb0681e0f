//! Tests of the policies alone, and on databases whose simulated disk fails.

use super::*;
use crate::engine_journal::EngineJournal;
use crate::log::Format;
use helenus_cql::backend::{Backend, Identity, Outcome, Request, ResultColumns, RowsOut};
use helenus_cql::{CqlError, LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions, JournalSlot};
use helenus_host::sim::{Call, Fault, Machine};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[test]
fn each_policy_answers_each_kind_of_trouble_as_cassandra_does() {
    use DiskTrouble::{Damaged, Full, Refused};
    use Verdict::{Die, GoOn, StopServing};
    for (name, damaged, refused, full) in [
        ("die", Die, Die, Die),
        ("stop_paranoid", StopServing, StopServing, StopServing),
        ("stop", GoOn, StopServing, StopServing),
        ("best_effort", GoOn, GoOn, StopServing),
        ("ignore", GoOn, GoOn, GoOn),
    ] {
        let policy = DiskFailurePolicy::of_name(name);
        assert!(DiskFailurePolicy::NAMES.contains(&name));
        let verdicts = [damaged, refused, full];
        assert_eq!([Damaged, Refused, Full].map(|trouble| policy.verdict(trouble)), verdicts, "{name}");
    }
    for (name, verdict) in [("die", Die), ("stop", StopServing), ("stop_commit", GoOn), ("ignore", GoOn)] {
        assert!(CommitFailurePolicy::NAMES.contains(&name));
        assert_eq!(CommitFailurePolicy::of_name(name).verdict(), verdict, "{name}");
    }
}

/// A database on a simulated machine, with a table of one row.
struct Failing {
    machine: Machine,
    policies: Arc<FailurePolicies>,
    log: Arc<Log>,
    backend: Arc<LocalBackend>,
}

impl Failing {
    fn new(disk: &str, commit: &str) -> Failing {
        let machine = Machine::new(1);
        let host = machine.host();
        let log = Log::start(&host, Format::Json, Some(Level::Debug));
        let (disk, commit) = (DiskFailurePolicy::of_name(disk), CommitFailurePolicy::of_name(commit));
        let (policies, _told) = FailurePolicies::new(disk, commit, &log);
        let mut options = DatabaseOptions::new("/db");
        options.journal = JournalSlot::of(Arc::new(EngineJournal::new(&log, &policies)));
        let (database, _) = Database::open(host, options).unwrap();
        let backend = LocalBackend::new(database, LocalOptions::default());
        let failing = Failing { machine, policies, log, backend };
        for text in [
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE k.t (k int PRIMARY KEY, v text)",
            "INSERT INTO k.t (k, v) VALUES (1, 'a')",
        ] {
            failing.run(text).unwrap();
        }
        failing
    }

    fn run(&self, text: &str) -> Result<(), CqlError> {
        let identity = Identity::default();
        match self.backend.query(text, &Request::plain(&identity, &[]), &mut Nowhere)?.outcome {
            Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => Ok(ticket.wait()?),
            Outcome::Rows { .. } | Outcome::UsedKeyspace(_) => Ok(()),
        }
    }

    fn flush(&self) -> Result<u64, Error> {
        let database = self.backend.database();
        database.flush(database.schema().table("k", "t").unwrap().id)
    }

    /// The table's Data.db.
    fn data(&self) -> PathBuf {
        let disk = self.machine.host().disk;
        let folder = disk.list(Path::new("/db/data/k")).unwrap().remove(0);
        let files = disk.list(&folder).unwrap();
        files.into_iter().find(|path| path.to_string_lossy().ends_with("-Data.db")).unwrap()
    }

    fn errors(&self) -> u64 {
        self.log.counts()[0].1
    }
}

struct Nowhere;

impl RowsOut for Nowhere {
    fn columns(&mut self, _columns: &Arc<ResultColumns>) {}
    fn cell(&mut self, _value: Option<&[u8]>) {}
    fn end_row(&mut self) {}
    fn bytes(&self) -> usize {
        0
    }
    fn clear(&mut self) {}
}

#[test]
fn a_failed_sync_of_the_log_refuses_writes_and_is_judged_once() {
    for (policy, verdict) in [
        ("stop_commit", Verdict::GoOn),
        ("ignore", Verdict::GoOn),
        ("stop", Verdict::StopServing),
        ("die", Verdict::Die),
    ] {
        let failing = Failing::new("ignore", policy);
        failing.machine.fail(Fault::new(Call::Sync, 1, ErrorKind::Other));
        assert!(failing.run("INSERT INTO k.t (k, v) VALUES (2, 'b')").is_err());
        assert!(
            failing.run("INSERT INTO k.t (k, v) VALUES (3, 'c')").is_err(),
            "{policy}: no later write either"
        );
        assert!(failing.run("SELECT v FROM k.t WHERE k = 1").is_ok(), "{policy}: reads go on");
        assert_eq!(failing.policies.verdict(), verdict, "{policy}");
        assert_eq!(failing.errors(), 1 + u64::from(verdict != Verdict::GoOn), "{policy}");
        failing.machine.end_tasks();
    }
}

#[test]
fn a_disk_without_room_for_a_flush_closes_the_doors_from_best_effort_on() {
    for (policy, verdict) in
        [("ignore", Verdict::GoOn), ("best_effort", Verdict::StopServing), ("stop", Verdict::StopServing)]
    {
        let failing = Failing::new(policy, "stop_commit");
        failing.machine.fail(Fault::new(Call::Create, 1, ErrorKind::StorageFull).on("/data/k/"));
        assert!(failing.flush().is_err());
        assert_eq!(failing.policies.verdict(), verdict, "{policy}");
        assert!(failing.flush().is_ok(), "{policy}: what was in memory is still there");
        failing.machine.end_tasks();
    }
}

#[test]
fn a_damaged_file_fails_its_read_and_closes_the_doors_of_the_paranoid() {
    for (policy, verdict) in [
        ("ignore", Verdict::GoOn),
        ("stop", Verdict::GoOn),
        ("stop_paranoid", Verdict::StopServing),
        ("die", Verdict::Die),
    ] {
        let failing = Failing::new(policy, "stop_commit");
        failing.flush().unwrap();
        failing.machine.flip_bit(&failing.data(), 3, 5).unwrap();
        assert!(failing.run("SELECT v FROM k.t WHERE k = 1").is_err(), "{policy}: never a wrong row");
        assert!(failing.run("SELECT v FROM k.t WHERE k = 2").is_ok(), "{policy}: others are read");
        assert_eq!(failing.policies.verdict(), verdict, "{policy}");
        assert_eq!(failing.errors(), 1 + u64::from(verdict != Verdict::GoOn), "{policy}");
        failing.machine.end_tasks();
    }
}
