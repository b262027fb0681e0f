//! Tests the memory limit of the real binary under workloads that need more: its peak (VmHWM) stays within
//! `memory_limit` plus a tenth of it plus 32 MiB for the program itself.
//!
//! A normal run has the short workloads, at limits of 64 and 128 MiB. To run all at three limits: `MEMORY=all cargo
//! test --release -p end-to-end --test memory -- --nocapture`; a single one: `MEMORY=counts`; `MEMORY_LIMITS=64,512`
//! sets other limits, in MiB; `MEMORY_YAML='concurrent_reads: 4'` adds a setting.

mod client;
mod connections;
mod reads;
mod upkeep;
mod writes;

use client::{Client, Tally};
use end_to_end::Server;
use end_to_end::process::memory_kib;
use tempfile::TempDir;

/// A workload against a server.
#[derive(Clone, Copy)]
pub struct Workload {
    name: &'static str,
    /// Whether it is part of a normal run.
    is_short: bool,
    run: fn(&TestServer) -> Tally,
}

/// A server with a memory limit.
pub struct TestServer {
    server: Server,
    /// The address of Thrift RPC.
    rpc: String,
    /// Whether there is time for more than a few seconds.
    is_long: bool,
}

/// A workload of every run.
const fn short(name: &'static str, run: fn(&TestServer) -> Tally) -> Workload {
    Workload { name, is_short: true, run }
}

/// A workload that runs only on request.
const fn long(name: &'static str, run: fn(&TestServer) -> Tally) -> Workload {
    Workload { name, is_short: false, run }
}

impl TestServer {
    fn start(limit_mib: u64, is_long: bool) -> TestServer {
        let folder = TempDir::with_prefix("helenus-memory-").expect("a temporary directory");
        let path = folder.path().join("memory.yaml");
        // A request waits for memory up to the read timeout.
        let wait_s = if is_long { 30 } else { 5 };
        let configuration = format!(
            "memory_limit: {limit_mib}MiB\nrange_request_timeout: 30s\nread_request_timeout: {wait_s}s\n\
             write_request_timeout: 30s\nbatch_size_fail_threshold: 1GiB\nbatch_size_warn_threshold: 1GiB\n{}\n",
            std::env::var("MEMORY_YAML").unwrap_or_default()
        );
        std::fs::write(&path, configuration).expect("a configuration");
        let path = path.to_str().expect("UTF-8").to_owned();
        let server = Server::start_in(folder, &["--config", &path, "--rpc", "127.0.0.1:0"]);
        let line =
            server.head().iter().find(|line| line.starts_with("rpc")).expect("the interface's address");
        let rpc = line.split_whitespace().nth(1).expect("an address").to_owned();
        let site = TestServer { server, rpc, is_long };
        site.client().load(
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            &[],
        );
        site
    }

    fn client(&self) -> Client {
        Client::ready(self.server.address())
    }

    /// Chooses a number by the time available.
    fn times(&self, short: usize, long: usize) -> usize {
        if self.is_long { long } else { short }
    }

    /// Runs `work` on `count` connections concurrently.
    fn clients(&self, count: usize, work: impl Fn(usize, &mut Client) + Sync) -> Tally {
        std::thread::scope(|scope| {
            let work = &work;
            let of_client = |number| {
                move || {
                    let mut client = self.client();
                    work(number, &mut client);
                    client.tally
                }
            };
            let clients: Vec<_> = (0..count).map(|number| scope.spawn(of_client(number))).collect();
            clients.into_iter().fold(Tally::default(), |mut sum, client| {
                sum.add(client.join().expect("a client"));
                sum
            })
        })
    }
}

/// Incompressible bytes from a seed.
pub fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut out = Vec::with_capacity(bytes + 8);
    while out.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(bytes);
    out
}

/// A mebibyte.
pub const MIB: usize = 1 << 20;

/// What exceeds the bound: workload, limit, and how far, in MiB. docs/performance.md says so.
const KNOWN: &[(&str, u64, u64)] = &[
    // Rows of 15 MiB. A flush takes a copy of one without waiting, while requests hold what they may.
    ("unpaged", 64, 124),
];

#[test]
fn the_peak_of_memory_stays_within_the_limit() {
    let wanted = std::env::var("MEMORY").unwrap_or_default();
    let all = [reads::WORKLOADS, writes::WORKLOADS, connections::WORKLOADS, upkeep::WORKLOADS].concat();
    let is_chosen = |workload: &&Workload| match &*wanted {
        "" => workload.is_short,
        "all" => true,
        names => names.split(',').any(|name| name == workload.name),
    };
    let limits = std::env::var("MEMORY_LIMITS")
        .unwrap_or_else(|_| if wanted.is_empty() { "64,128" } else { "64,128,512" }.to_owned());
    let mut broken = Vec::new();
    println!("{:<24} {:>6} {:>6} {:>6}   answers", "workload", "limit", "bound", "peak");
    for limit in limits.split(',').map(|limit| limit.parse::<u64>().expect("a number")) {
        for workload in all.iter().filter(is_chosen) {
            let site = TestServer::start(limit, !wanted.is_empty());
            let tally = (workload.run)(&site);
            let peak = memory_kib(site.server.process_id(), "VmHWM").div_ceil(1024);
            let known = KNOWN.iter().find(|(name, of, _)| *name == workload.name && *of == limit);
            let bound = known.map_or(limit + limit / 10 + 32, |(.., bound)| *bound);
            println!("{:<24} {limit:>6} {bound:>6} {peak:>6}   {tally}", workload.name);
            if peak > bound {
                broken.push(format!("{}: {peak} MiB with a limit of {limit}", workload.name));
            }
            let unexpected = tally.unexpected();
            if !unexpected.is_empty() || tally.done == 0 {
                broken.push(format!("{} with a limit of {limit}: {tally}; {unexpected:?}", workload.name));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
