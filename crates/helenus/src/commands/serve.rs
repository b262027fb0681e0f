//! `helenus serve`: opens the database, then its doors; ends when told to, with nothing left to replay.

use super::watch::watch;
use anyhow::{Context, Result, anyhow};
use clap::{Arg, ArgAction, ArgMatches, Command};
use helenus_cql::backend::Backend;
use helenus_cql::virtual_table::NodeInfo;
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::import::{Adoption, ImportError, ImportProgress, adopt};
use helenus_engine::{
    CompactionSettings, Database, DatabaseOptions, MemoryShares, OpenProgress, OpenReport, OpenStage,
    PurgeOptions, ReadTimeouts, SyncMode,
};
use helenus_host::{Host, Next, Worker};
use helenus_rpc::{Node, Rpc};
use helenus_server::admin::{AdminServer, Facts, socket_for_data, socket_for_memory};
use helenus_server::config::{
    Kind, NoEffect, OPTIONS, ServerConfig, Settings, Storage, SyncChoice, settings_table, size_text,
};
use helenus_server::native::NativeServer;
use helenus_server::rpc::RpcServer;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const EXAMPLES: &str = "Examples:
  helenus serve                                    data in ./data, clients on 127.0.0.1:9042
  helenus serve --data /var/lib/helenus --listen 0.0.0.0:9042
  helenus serve --memory --listen 127.0.0.1:0      for tests: nothing on disk, a free port
  helenus serve --config cassandra.yaml            Cassandra's own key names
  helenus serve --adopt COPY                       on a copy of a Cassandra node's directory; drain the node first

SIGTERM or Ctrl-C ends it: requests are answered, memtables written; the next start replays nothing.";

/// Open files that leave room for ten thousand connections; with fewer allowed the server says so.
const FILES_WANTED: u64 = 12_000;

/// The command, its flags made from the table of options.
pub fn command() -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .help("YAML file with Cassandra's key names; flags win over it");
    let flags = OPTIONS.iter().filter_map(|option| {
        let flag = option.flag?;
        let arg =
            Arg::new(option.key).long(flag).help(format!("{} [default: {}]", option.help, option.default));
        Some(match option.kind {
            Kind::Boolean => Arg::help(arg.action(ArgAction::SetTrue), option.help),
            Kind::Choice(words) => arg.value_name(option.kind.placeholder()).value_parser(words.to_vec()),
            _ => arg.value_name(option.kind.placeholder()),
        })
    });
    let adopt = Arg::new("adopt")
        .long("adopt")
        .value_name("DIR")
        .conflicts_with_all(["data", "memory"])
        .help("Start on a copy of a Cassandra node's directory, which becomes one of Helenus's");
    Command::new("serve").about("Start a server").after_help(EXAMPLES).args(flags).arg(config).arg(adopt)
}

/// Runs the server until a signal ends it.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let real = helenus_host::real::host();
    let files_max = helenus_host::real::raise_open_files();
    let mut settings = settings(&real, matches)?;
    let adoption = match matches.get_one::<String>("adopt") {
        Some(directory) => {
            settings.set_flag("data", directory)?;
            Some(adopt_directory(&real, Path::new(directory))?)
        }
        None => None,
    };
    print_without_effect(&settings);
    let config =
        ServerConfig::new(&settings, helenus_host::real::memory_bytes(), helenus_host::real::cores())?;
    let host = match config.storage {
        Storage::Memory => helenus_host::memory::host(),
        Storage::Directory(_) => real,
    };
    let database = open(&host, &config)?;
    if let Some(adoption) = &adoption {
        database.finish_adoption(adoption)?;
        print_adopted(adoption);
    }
    let local = LocalBackend::new(Arc::clone(&database), local_options(&config));
    describe_node(&local, &config, config.listen);
    let backend: Arc<dyn Backend> = local.clone();
    let native = Arc::new(NativeServer::start(&host, backend, config.listen, config.limits.clone())?);
    local.virtual_tables().register(native.clients_table());
    local.virtual_tables().register(settings_table(&settings, &config));
    // Again, now that a free port has been picked; nobody knows it before it is printed.
    describe_node(&local, &config, native.address());
    let rpc = start_rpc(&host, &local, &config)?;
    let admin = start_admin(&host, &local, (&native, rpc.as_ref()), &config)?;
    if files_max < FILES_WANTED {
        println!("limited     {files_max} open files: fewer connections than that; raise it with ulimit -n");
    }
    if let Some(rpc) = &rpc {
        println!("rpc         {}  (Thrift, framed or not)", rpc.address());
    }
    print_where(&native, &admin, &config);
    wait_for_signal()?;
    native.stop();
    if let Some(rpc) = &rpc {
        rpc.stop();
    }
    admin.stop();
    database.close().context("closing the database")?;
    println!("stopped     nothing to replay");
    Ok(())
}

/// Checks a copy of a Cassandra node's directory and makes it ready to be opened.
fn adopt_directory(host: &Host, directory: &Path) -> Result<Adoption> {
    println!("adopting    {}: checking everything first", directory.display());
    let progress = ImportProgress::default();
    let adopted = watch(|| adopt(host, directory, true, &progress), || progress.look())?;
    adopted.map_err(|error| match error {
        // Nothing was imported, nor was anything to be: the problems say it all.
        ImportError::Refused { problems } => anyhow!("nothing was changed:\n  {}", problems.join("\n  ")),
        other => anyhow!(other),
    })
}

fn print_adopted(adoption: &Adoption) {
    let Adoption { tables, sstables, notes, .. } = adoption;
    if *sstables > 0 {
        println!("adopted     {sstables} SSTables of {tables} tables");
    }
    for note in notes {
        println!("note        {note}");
    }
}

fn settings(host: &Host, matches: &ArgMatches) -> Result<Settings> {
    let mut settings = Settings::default();
    if let Some(file) = matches.get_one::<String>("config") {
        let text =
            read_text(host, Path::new(file)).with_context(|| format!("cannot read --config {file}"))?;
        settings.read_yaml(file, &text)?;
    }
    for option in OPTIONS.iter().filter(|option| option.flag.is_some()) {
        if option.kind == Kind::Boolean {
            if matches.get_flag(option.key) {
                settings.set_flag(option.key, "true")?;
            }
        } else if let Some(text) = matches.get_one::<String>(option.key) {
            settings.set_flag(option.key, text)?;
        }
    }
    Ok(settings)
}

fn read_text(host: &Host, path: &Path) -> Result<String> {
    let file = host.disk.open(path)?;
    let mut bytes = vec![0; usize::try_from(file.size()?)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(String::from_utf8(bytes)?)
}

fn print_without_effect(settings: &Settings) {
    for (kind, text) in [
        (NoEffect::NothingHere, "mean nothing on one machine"),
        (NoEffect::NotBuilt, "are not built yet and have no effect"),
    ] {
        let keys: Vec<_> = settings
            .without_effect
            .iter()
            .filter(|(_, why)| *why == kind)
            .map(|(key, _)| key.as_str())
            .collect();
        if !keys.is_empty() {
            println!("ignored     keys that {text}: {}", keys.join(", "));
        }
    }
}

fn open(host: &Host, config: &ServerConfig) -> Result<Arc<Database>> {
    let mut options = DatabaseOptions::new(match &config.storage {
        Storage::Memory => PathBuf::from("/memory"),
        Storage::Directory(directory) => directory.clone(),
    });
    options.sync = match (&config.storage, config.sync) {
        (Storage::Memory, _) => None,
        (_, SyncChoice::Periodic(period)) => {
            let period_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
            Some(SyncMode::Periodic { period_ms })
        }
        (_, SyncChoice::Batch) => Some(SyncMode::Batch),
        (_, SyncChoice::Group) => Some(SyncMode::Group),
    };
    options.segment_bytes = config.segment_bytes;
    options.skip_damaged_log = config.skip_damaged_log;
    let ns = |timeout: std::time::Duration| u64::try_from(timeout.as_nanos()).ok();
    options.timeouts =
        ReadTimeouts { by_key_ns: ns(config.timeouts.read), range_ns: ns(config.timeouts.range) };
    options.mutation_bytes_max = config.mutation_bytes_max;
    options.memory = MemoryShares { memtables: config.memtable_bytes, cache: config.cache_bytes };
    options.compaction = CompactionSettings {
        threads: config.compactors,
        bytes_per_s: config.compaction_bytes_per_s,
        automatic: true,
        purge: PurgeOptions {
            grace_s: i64::try_from(config.purge_grace.as_secs()).unwrap_or(i64::MAX),
            obey_gc_grace: config.obeys_gc_grace,
        },
    };
    let begun_ns = host.clock.monotonic_ns();
    let progress = Progress::start(host, Arc::clone(&options.progress));
    let opened = Database::open(host.clone(), options);
    progress.end();
    let (database, report) = opened?;
    print_opened(&report, host.clock.monotonic_ns().saturating_sub(begun_ns));
    Ok(database)
}

fn local_options(config: &ServerConfig) -> LocalOptions {
    LocalOptions {
        prepared_bytes_max: config.statements_bytes,
        batches: config.batches,
        datacenter: config.datacenter.as_str().into(),
        masks_columns: config.masks_columns,
        drops_compact_storage: config.drops_compact_storage,
        tombstones_warn: config.tombstones_warn,
        guardrails: config.guardrails.clone(),
        ..LocalOptions::default()
    }
}

/// Tells clients, in `system.local`, where they reach this server.
fn describe_node(local: &LocalBackend, config: &ServerConfig, listens: SocketAddr) {
    let own = if listens.ip().is_unspecified() { outward_address() } else { listens.ip() };
    let native_address = SocketAddr::new(config.broadcast_address.unwrap_or(own), listens.port());
    let cluster_name = config.cluster_name.clone();
    let (datacenter, rack) = (config.datacenter.clone(), config.rack.clone());
    let node = NodeInfo { cluster_name, datacenter, rack, native_address };
    local.virtual_tables().describe_node(local.database(), node);
}

/// The address of this machine that leads out of it: the sender's of a datagram that is never sent. The loopback's where
/// there is no way out.
fn outward_address() -> IpAddr {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
    let local = socket.and_then(|socket| {
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?; // TEST-NET-1: nobody's
        socket.local_addr()
    });
    local.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
}

fn print_opened(report: &OpenReport, took_ns: u64) {
    for (segment, offset) in &report.skipped {
        println!("skipped     damaged log: {} from byte {offset} to its end", segment.display());
    }
    for (table, damage) in &report.unreadable {
        println!("damaged     {damage}; reads of {table} fail until its files are mended or removed");
    }
    if report.replayed > 0 {
        let (log, ms) = (report.log_bytes as f64 / f64::from(1 << 20), took_ns / 1_000_000);
        println!("replayed    {} updates from {log:.1} MiB of log in {ms} ms", report.replayed);
    }
}

/// Starts the old RPC interface, if it is wanted.
fn start_rpc(host: &Host, local: &Arc<LocalBackend>, config: &ServerConfig) -> Result<Option<RpcServer>> {
    let Some(listen) = config.rpc else { return Ok(None) };
    let own = if listen.ip().is_unspecified() { outward_address() } else { listen.ip() };
    let node = Node {
        cluster_name: config.cluster_name.clone(),
        datacenter: config.datacenter.clone(),
        rack: config.rack.clone(),
        address: config.broadcast_address.unwrap_or(own),
    };
    let rpc = Rpc::new(Arc::clone(local), node);
    Ok(Some(RpcServer::start(host, rpc, listen, config.rpc_limits.clone())?))
}

fn start_admin(
    host: &Host,
    local: &Arc<LocalBackend>,
    (native, rpc): (&Arc<NativeServer>, Option<&RpcServer>),
    config: &ServerConfig,
) -> Result<AdminServer> {
    let (path, directory, sync) = match &config.storage {
        Storage::Memory => (socket_for_memory(native.address().port()), None, None),
        Storage::Directory(directory) => {
            (socket_for_data(directory), Some(directory.clone()), Some(config.sync.name()))
        }
    };
    let counted = Arc::clone(native);
    let facts = Facts {
        version: env!("CARGO_PKG_VERSION"),
        listening: native.address(),
        rpc: rpc.map(RpcServer::address),
        directory,
        sync,
        connections: Box::new(move || counted.connections_count()),
    };
    AdminServer::start(host, local, &path, facts).context("the admin socket")
}

fn print_where(native: &NativeServer, admin: &AdminServer, config: &ServerConfig) {
    let address = native.address();
    match &config.storage {
        Storage::Memory => {
            println!("storing in  memory ({}); nothing survives the server", size_text(config.memory_limit));
        }
        Storage::Directory(directory) => {
            println!("storing in  {}", directory.display());
            println!("sync        {}: {}", config.sync.name(), config.sync.promise());
        }
    }
    let in_place =
        matches!(&config.storage, Storage::Directory(directory) if admin.path().starts_with(directory));
    if !in_place {
        println!("admin       {}", admin.path().display());
    }
    let host = match address.ip() {
        ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
        ip => ip.to_string(),
    };
    println!("connect     cqlsh {host} {}", address.port());
    // The last line: who waits for it has seen the others.
    println!("listening   {address}  (CQL native protocol v3, v4, v5)");
}

/// Blocks until the first SIGTERM or SIGINT. A second one while the server ends, ends it at once.
fn wait_for_signal() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        anyhow::Ok(())
    })?;
    println!("stopping    answering what has come, writing memtables");
    Ok(())
}

/// Says that opening takes longer than a second, and goes on saying so.
struct Progress {
    opened: Arc<AtomicBool>,
    task: Arc<dyn helenus_host::TaskHandle>,
}

impl Progress {
    fn start(host: &Host, figures: Arc<OpenProgress>) -> Progress {
        let opened = Arc::new(AtomicBool::new(false));
        let ticker = Ticker { opened: Arc::clone(&opened), figures, seconds: 0 };
        Progress { opened, task: host.tasks.start("opening", Box::new(ticker)) }
    }

    fn end(self) {
        self.opened.store(true, Ordering::Release);
        self.task.wake();
        self.task.join();
    }
}

struct Ticker {
    opened: Arc<AtomicBool>,
    figures: Arc<OpenProgress>,
    seconds: u64,
}

impl Worker for Ticker {
    fn step(&mut self) -> Next {
        if self.opened.load(Ordering::Acquire) {
            return Next::Done;
        }
        if self.seconds > 0 {
            println!("opening     {}, {} s so far", stage_text(self.figures.stage()), self.seconds);
        }
        self.seconds += 1;
        Next::WaitAtMost(1_000_000_000)
    }
}

fn stage_text(stage: OpenStage) -> String {
    const MIB: u64 = 1 << 20;
    match stage {
        OpenStage::ReadingLog(read, of) => {
            format!("reading the commit log: {} of {} MiB", read / MIB, of.div_ceil(MIB))
        }
        OpenStage::Replaying(done, of) => {
            format!("replaying the commit log: {done} of {of} records ({} %)", done * 100 / of.max(1))
        }
        OpenStage::Files => "opening files".to_owned(),
    }
}
