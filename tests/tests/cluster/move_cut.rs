//! `helenus move cutover` and `rollback` under a load: every acknowledged write is read back, through the cut, a restart after it, and
//! the way back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::{Cql, Server, refused, tool};
use serde_json::Value;
use tempfile::TempDir;

use crate::moving::{until_done, wait_for_tail};
use crate::ring::Ring;

const PATIENCE: Duration = Duration::from_secs(120);

pub fn passes(ring: &Ring) {
    let folder = TempDir::with_prefix("helenus-move-").expect("a temporary directory");
    let mut server = Server::start_in(folder, &[]);
    let data = server.data().to_str().expect("a path in UTF-8").to_owned();
    let with_data = |args: &[&str]| -> Vec<String> {
        ["move"].iter().chain(args).chain(&["--data", &data]).map(|text| (*text).to_owned()).collect()
    };
    let moving = |args: &[&str]| tool(&with_data(args));
    let refusal = |args: &[&str]| refused(&with_data(args));
    let source = Cql::connect(server.address());
    for text in [
        "CREATE KEYSPACE cut_ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE cut_ks.rows (client int, number int, v text, PRIMARY KEY (client, number))",
        "CREATE TABLE cut_ks.counts (client int PRIMARY KEY, n counter)",
    ] {
        source.run(text);
    }
    let target = Cql::connect(&ring.address(1)).at_all();
    target.run("DROP KEYSPACE IF EXISTS cut_ks");
    assert!(refusal(&["cutover"]).contains("no move is under way"));
    let to = ring.address(1);
    moving(&["start", "--to", &to, "--tables", "cut_ks"]);
    assert!(refusal(&["rollback"]).contains("not been cut over"));
    wait_for_tail(&data);
    source.run("CREATE TABLE cut_ks.later (a int PRIMARY KEY)");
    let reasons = refusal(&["cutover", "--dry-run"]);
    assert!(reasons.contains("cut_ks.later is no part of the move"), "{reasons}");
    source.run("DROP TABLE cut_ks.later");
    drop(source);

    let load = Load::begin(server.address(), 0);
    load.wait(300);
    assert!(moving(&["cutover", "--dry-run"]).contains("could be cut over"));
    let said = until_done(&with_data(&["cutover", "--pause", "5s", "--rollback-within", "1h"]));
    assert!(said.contains("clients are served by"), "{said}");
    load.wait(300);
    let acknowledged = load.end();
    acknowledged.check(&target);
    // Both sides' tools know it.
    let status: Value = serde_json::from_str(&moving(&["status", "--json"])).expect("a status");
    assert!(status["cut_at_ms"].as_i64().is_some() && status["tables"][0]["phase"] == "cut over", "{status}");
    for verb in [&["cutover"][..], &["resume"], &["abort"], &["start", "--to", &to]] {
        assert!(refusal(verb).contains("has been cut over"), "{verb:?}");
    }
    // A table that only the cluster has is seen: it is the cluster that answers.
    target.run("CREATE TABLE cut_ks.of_cluster (a int PRIMARY KEY)");
    target.run("INSERT INTO cut_ks.of_cluster (a) VALUES (7)");
    assert_eq!(Cql::connect(server.address()).rows("SELECT a FROM cut_ks.of_cluster").len(), 1);
    assert!(server.admin(&["info"]).contains("uptime") || !server.admin(&["info"]).is_empty());

    // After a restart it is a gateway still.
    server.kill();
    server.restart();
    let through = Cql::connect(server.address());
    assert_eq!(through.rows("SELECT a FROM cut_ks.of_cluster").len(), 1);
    through.run("INSERT INTO cut_ks.rows (client, number, v) VALUES (100, 1, 'after the restart')");
    through.run("DELETE FROM cut_ks.rows WHERE client = 0 AND number = 1");
    through.run("UPDATE cut_ks.counts SET n = n + 5 WHERE client = 100");
    target.run("DROP TABLE cut_ks.of_cluster");
    drop(through);

    let load = Load::begin(server.address(), 1);
    load.wait(300);
    let said = until_done(&with_data(&["rollback", "--pause", "20s"]));
    assert!(said.contains("served here again"), "{said}");
    load.wait(300);
    let later = load.end();
    let here = Cql::connect(server.address());
    later.check(&here);
    let rows = here.rows("SELECT v FROM cut_ks.rows WHERE client = 100");
    assert!(format!("{rows:?}").contains("after the restart"), "{rows:?}");
    assert_eq!(here.rows("SELECT v FROM cut_ks.rows WHERE client = 0 AND number = 1").len(), 0);
    acknowledged.check_rows(&here, &[1]);
    let count = here.rows("SELECT n FROM cut_ks.counts WHERE client = 100");
    assert_eq!(format!("{:?}", count[0][0]), "Some(Counter(Counter(5)))");
    // The move goes on, and what was written here since is at the cluster too.
    wait_for_tail(&data);
    later.check(&target);
    moving(&["abort"]);
    drop(here);
    server.kill();
    server.restart();
    later.check(&Cql::connect(server.address()));
    target.run("DROP KEYSPACE cut_ks");
}

/// What clients were told to be written.
struct Acknowledged {
    client: u32,
    rows: Vec<u32>,
    counted: i64,
    /// Increments without an answer.
    unknown: i64,
}

impl Acknowledged {
    /// Every acknowledged row is there, and every acknowledged increment once.
    fn check(&self, cql: &Cql) {
        self.check_rows(cql, &[]);
        let count = cql.rows(&format!("SELECT n FROM cut_ks.counts WHERE client = {}", self.client));
        let text = format!("{:?}", count[0][0]);
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        let counted: i64 = digits.parse().expect("a number");
        let range = self.counted..=self.counted + self.unknown;
        assert!(range.contains(&counted), "{counted}, acknowledged are {range:?}");
    }

    /// Every acknowledged row is there, but for those that were deleted since.
    fn check_rows(&self, cql: &Cql, deleted: &[u32]) {
        let rows = cql.rows(&format!("SELECT number FROM cut_ks.rows WHERE client = {}", self.client));
        let found: Vec<String> = rows.iter().map(|row| format!("{:?}", row[0])).collect();
        for number in &self.rows {
            let is_there = found.contains(&format!("Some(Int({number}))"));
            assert_ne!(is_there, deleted.contains(number), "{number} of {} is lost, or back", self.client);
        }
    }
}

/// A client that writes without a pause, and connects again when it is cut off.
struct Load {
    thread: thread::JoinHandle<Acknowledged>,
    ends: Arc<AtomicBool>,
    done: Arc<std::sync::atomic::AtomicU32>,
}

impl Load {
    fn begin(address: &str, client: u32) -> Load {
        let (ends, done) = (Arc::<AtomicBool>::default(), Arc::<std::sync::atomic::AtomicU32>::default());
        let (address, stop, count) = (address.to_owned(), Arc::clone(&ends), Arc::clone(&done));
        let thread = thread::spawn(move || {
            let mut of = Acknowledged { client, rows: Vec::new(), counted: 0, unknown: 0 };
            let mut cql = Some(Cql::connect(&address));
            let mut number = 0;
            let began = Instant::now();
            while !stop.load(Ordering::Acquire) {
                assert!(began.elapsed() < PATIENCE * 2, "the load goes on for too long");
                let Some(session) = &cql else {
                    cql = Cql::connect_as(&address, ("", "")).ok();
                    continue;
                };
                number += 1;
                let row = format!(
                    "INSERT INTO cut_ks.rows (client, number, v) VALUES ({client}, {number}, 'v{number}')"
                );
                let is_written = session.try_run(&row).is_ok();
                if is_written {
                    of.rows.push(number);
                }
                let adds = format!("UPDATE cut_ks.counts SET n = n + 1 WHERE client = {client}");
                match session.try_run(&adds) {
                    Ok(()) => of.counted += 1,
                    Err(_) => {
                        of.unknown += 1;
                        cql = None;
                    }
                }
                count.fetch_add(u32::from(is_written), Ordering::AcqRel);
            }
            of
        });
        Load { thread, ends, done }
    }

    /// Waits for this number of further writes.
    fn wait(&self, count: u32) {
        let (from, began) = (self.done.load(Ordering::Acquire), Instant::now());
        while self.done.load(Ordering::Acquire) < from + count {
            assert!(began.elapsed() < PATIENCE && !self.thread.is_finished(), "the load does not go on");
            thread::yield_now();
        }
    }

    fn end(self) -> Acknowledged {
        self.ends.store(true, Ordering::Release);
        self.thread.join().expect("the load")
    }
}
