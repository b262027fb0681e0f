//! Kills at random: the server that carries the move, or one node of the cluster; with what the move says between them.

use std::process::Command;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use end_to_end::draw::Draw;
use end_to_end::{Server, binary};
use serde_json::Value;

use crate::load::Shared;
use crate::ring::Ring;
use std::sync::atomic::Ordering;

/// Seconds between two lines of progress.
const EVERY: Duration = Duration::from_secs(10);
/// How long the tail may take to run dry.
const PATIENCE: Duration = Duration::from_secs(3600);

/// What tells the time and the state of the move.
pub struct Watch<'a> {
    pub began: Instant,
    pub data: &'a str,
    pub shared: &'a Shared,
}

/// Kills this many times with a drawn pause before each, then waits until the tail has run dry.
pub fn kill_and_wait(ring: &Ring, server: &mut Server, watch: &Watch<'_>) -> [u32; 2] {
    let sizes = &watch.shared.sizes;
    let mut random = Draw::from_seed(sizes.seed);
    let mut counts = [0, 0];
    thread::scope(|scope| {
        let mut node: Option<ScopedJoinHandle<'_, ()>> = None;
        for kill in 1..=sizes.kills {
            let pause = sizes.pause_ms / 4 + random.below(sizes.pause_ms as usize * 3 / 2) as u64;
            watch.pass(Duration::from_millis(pause));
            if random.below(2) == 0 {
                watch.say(&format!("kill {kill}: the server"));
                server.kill();
                server.restart();
                *watch.shared.address.write().expect("the address") = server.address().to_owned();
                counts[0] += 1;
                continue;
            }
            // One node at a time, so that a quorum is left.
            if let Some(running) = node.take() {
                running.join().expect("a node that starts");
            }
            let (number, away) = (1 + random.below(3) as u32, random.below(8_000) as u64);
            watch.say(&format!("kill {kill}: node {number}, for {away} ms and its start"));
            ring.kill(number);
            counts[1] += 1;
            node = Some(scope.spawn(move || {
                thread::sleep(Duration::from_millis(away));
                ring.restart(number);
            }));
        }
        watch.say("no more kills");
    });
    let begin = Instant::now();
    while !watch.is_dry() {
        assert!(begin.elapsed() < PATIENCE, "the tail does not run dry");
        watch.pass(EVERY);
    }
    counts
}

impl Watch<'_> {
    /// Lets this time go by, and prints the progress meanwhile.
    pub fn pass(&self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            thread::sleep(left.min(EVERY));
            self.say(&self.progress());
        }
    }

    pub fn say(&self, what: &str) {
        println!("{:7.1} s  {what}", self.began.elapsed().as_secs_f64());
    }

    fn status(&self) -> Option<Value> {
        let output = Command::new(binary()).args(["move", "status", "--json", "--data", self.data]).output();
        serde_json::from_slice(&output.expect("helenus runs").stdout).ok()
    }

    fn progress(&self) -> String {
        let done = self.shared.done.load(Ordering::Acquire);
        let Some(status) = self.status() else { return format!("no status; {done} requests of clients") };
        let tables = status["tables"].as_array().into_iter().flatten().map(|table| {
            let name = table["table"].as_str().unwrap_or_default().rsplit('.').next().unwrap_or_default();
            format!(
                "{name} {} {} rows lag {}",
                table["phase"].as_str().unwrap_or("?"),
                table["rows"],
                table["lag_s"]
            )
        });
        format!("{}; {done} requests of clients", tables.collect::<Vec<_>>().join(", "))
    }

    /// Whether all tables are at the end of their changes; fails if one has stopped.
    pub fn is_dry(&self) -> bool {
        let Some(status) = self.status() else { return false };
        let tables: Vec<&Value> = status["tables"].as_array().into_iter().flatten().collect();
        assert!(tables.iter().all(|table| table["phase"] != "stopped"), "{status}");
        let is_there =
            |table: &&Value| table["phase"] == "tail" && table["lag_s"].as_f64().is_some_and(|lag| lag < 3.0);
        !tables.is_empty() && tables.iter().all(is_there)
    }
}
