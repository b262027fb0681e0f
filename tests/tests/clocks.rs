//! Tests the clocks of the real binary: kills do not put timestamps ahead, TTLs end by the machine's clock, and a wrong
//! clock leaves no lasting harm.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use end_to_end::{Cql, Server, refused, tool};
use scylla::value::CqlValue;
use tempfile::TempDir;

/// Debian's package libfaketime.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
/// The maximum distance of a timestamp from the clock. A busy machine answers late; a kill once added a second.
const APART_US: i64 = 500_000;
const KILLS: usize = 15;
const TTL_S: u64 = 8;

fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_micros()).expect("before the year 292,277")
}

fn number(cql: &Cql, select: &str) -> Option<i64> {
    match cql.rows(select).first()?.first()?.clone()? {
        CqlValue::BigInt(number) => Some(number),
        CqlValue::Int(number) => Some(i64::from(number)),
        other => panic!("{select}: {other:?}"),
    }
}

fn make_table(cql: &Cql) {
    cql.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    cql.run("CREATE TABLE k.t (k int PRIMARY KEY, v int)");
}

#[test]
fn fifteen_kills_put_neither_timestamps_nor_ttls_ahead_of_the_clock() {
    let mut server = Server::start();
    let mut cql = Cql::connect(server.address());
    make_table(&cql);
    let written = Instant::now();
    cql.run(&format!("INSERT INTO k.t (k, v) VALUES (0, 0) USING TTL {TTL_S}"));
    let acknowledged = Instant::now();
    let mut last_us = 0;
    for kill in 0..KILLS {
        cql.run(&format!("INSERT INTO k.t (k, v) VALUES (1, {kill})"));
        let now_us = wall_us();
        let timestamp_us = number(&cql, "SELECT writetime(v) FROM k.t WHERE k = 1").expect("a row");
        assert!(timestamp_us > last_us, "{timestamp_us} does not come after {last_us}");
        assert!(timestamp_us - now_us < APART_US, "after {kill} kills {} us ahead", timestamp_us - now_us);
        last_us = timestamp_us;
        let said_ms = number(&cql, "SELECT tounixtimestamp(now()) FROM system.local").expect("a row");
        assert!(said_ms * 1000 - wall_us() < APART_US, "now() is ahead");
        // The row exists until its TTL has passed, and is gone a second later, however many kills there were.
        let found = number(&cql, "SELECT v FROM k.t WHERE k = 0");
        assert!(
            found.is_some() || written.elapsed() >= Duration::from_secs(TTL_S - 1),
            "gone after {kill} kills"
        );
        server.kill();
        server.restart();
        cql = Cql::connect(server.address());
    }
    while number(&cql, "SELECT v FROM k.t WHERE k = 0").is_some() {
        assert!(acknowledged.elapsed() < Duration::from_secs(TTL_S + 30), "the row outlives its TTL");
        std::thread::yield_now();
    }
    assert!(written.elapsed() >= Duration::from_secs(TTL_S - 1), "gone after {:?}", written.elapsed());
}

/// A server whose clock is set by a file.
struct Faked {
    server: Server,
    time: std::path::PathBuf,
}

impl Faked {
    fn start() -> Option<Faked> {
        if !Path::new(FAKETIME).exists() {
            println!("not run: {FAKETIME} is not there (package libfaketime)");
            return None;
        }
        let folder = TempDir::with_prefix("helenus-clock-").expect("a temporary directory");
        let time = folder.path().join("time");
        std::fs::write(&time, "+0s\n").expect("the file that says what time it is");
        let variables = [
            ("LD_PRELOAD", FAKETIME),
            ("FAKETIME_TIMESTAMP_FILE", time.to_str().expect("UTF-8")),
            ("FAKETIME_NO_CACHE", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
        ];
        let server = Server::start_under(folder, &[], &variables);
        Some(Faked { server, time })
    }

    /// Sets the server's clock to this number of days from the real time.
    fn set(&self, days: i64) {
        let new = self.time.with_extension("new");
        let told = std::fs::write(&new, format!("{:+}s\n", days * 86_400));
        told.and_then(|()| std::fs::rename(&new, &self.time)).expect("the file that says what time it is");
    }

    fn restart(&mut self) -> Cql {
        self.server.kill();
        self.server.restart();
        Cql::connect(self.server.address())
    }

    fn tool(&self, words: &[&str]) -> String {
        let data = self.server.data();
        let data = data.to_str().expect("UTF-8");
        tool(&[&["admin"], words, &["--data", data]].concat())
    }
}

/// Checks that writes, deletions and TTLs work.
fn assert_writes(cql: &Cql, key: i32) {
    cql.run(&format!("INSERT INTO k.t (k, v) VALUES ({key}, 1) USING TTL 600"));
    assert_eq!(number(cql, &format!("SELECT v FROM k.t WHERE k = {key}")), Some(1));
    let left_s = number(cql, &format!("SELECT ttl(v) FROM k.t WHERE k = {key}")).expect("a TTL");
    assert!((500..=600).contains(&left_s), "{left_s} s left of 600");
    cql.run(&format!("DELETE FROM k.t WHERE k = {key}"));
    assert_eq!(number(cql, &format!("SELECT v FROM k.t WHERE k = {key}")), None);
    cql.run(&format!("UPDATE k.t SET v = 2 WHERE k = {key}"));
    assert_eq!(number(cql, &format!("SELECT v FROM k.t WHERE k = {key}")), Some(2));
}

#[test]
fn a_clock_beyond_2106_refuses_writes_while_it_is_wrong_and_no_longer() {
    let Some(mut faked) = Faked::start() else { return };
    let mut cql = Cql::connect(faked.server.address());
    make_table(&cql);
    cql.run("INSERT INTO k.t (k, v) VALUES (0, 7) USING TTL 3000");
    for (turn, years) in [85, 240].into_iter().enumerate() {
        faked.set(years * 365);
        let refusal = cql.refusal("INSERT INTO k.t (k, v) VALUES (1, 1)");
        assert!(
            refusal.contains("the machine's clock says") && refusal.contains("set it right"),
            "{refusal}"
        );
        cql.refusal("DELETE FROM k.t WHERE k = 0");
        assert_eq!(number(&cql, "SELECT v FROM k.t WHERE k = 0"), None, "it is over by that clock");
        if turn == 1 {
            cql = faked.restart();
            cql.refusal("INSERT INTO k.t (k, v) VALUES (1, 1)");
        }
        faked.set(0);
        assert_writes(&cql, 1);
        assert_eq!(
            number(&cql, "SELECT v FROM k.t WHERE k = 0"),
            Some(7),
            "a wrong clock takes nothing away"
        );
    }
    let log = faked.server.log();
    assert!(log.contains("clock_jumped"), "{log}");
    assert!(faked.tool(&["info"]).contains("jumped"), "info says it");
}

#[test]
fn writes_of_a_clock_that_was_ahead_are_written_over_and_resetclock_leads_back() {
    let Some(mut faked) = Faked::start() else { return };
    let cql = Cql::connect(faked.server.address());
    make_table(&cql);
    faked.set(50 * 365);
    cql.run("INSERT INTO k.t (k, v) VALUES (1, 1)");
    cql.run("ALTER TABLE k.t ADD w int");
    faked.set(0);
    assert_writes(&cql, 1);
    let cql = faked.restart();
    assert_writes(&cql, 1);
    let ahead_us = |cql: &Cql| {
        cql.run("UPDATE k.t SET v = 3 WHERE k = 2");
        number(cql, "SELECT writetime(v) FROM k.t WHERE k = 2").map(|timestamp_us| timestamp_us - wall_us())
    };
    assert!(ahead_us(&cql).is_some_and(|ahead_us| ahead_us > 49 * 365 * 86_400_000_000), "in their order");
    assert!(faked.tool(&["info"]).contains("resetclock"), "info says what to do");
    faked.tool(&["resetclock"]);
    cql.run("TRUNCATE k.t");
    assert!(ahead_us(&cql).is_some_and(|ahead_us| ahead_us < APART_US), "from the clock on");
    cql.run("ALTER TABLE k.t ADD x int");
    let cql = faked.restart();
    cql.run("INSERT INTO k.t (k, w, x) VALUES (5, 6, 7)");
    assert_eq!(number(&cql, "SELECT x FROM k.t WHERE k = 5"), Some(7), "changes of the schema stay");
    assert!(ahead_us(&cql).is_some_and(|ahead_us| ahead_us < APART_US), "after a kill, too");
    faked.set(90 * 365);
    let data = faked.server.data();
    let refusal = refused(&["admin", "resetclock", "--data", data.to_str().expect("UTF-8")]);
    assert!(refusal.contains("the machine's clock says"), "{refusal}");
}
