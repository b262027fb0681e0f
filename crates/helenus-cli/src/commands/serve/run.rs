//! Runs the server: opens the database, then the listeners, and closes both at the end so that nothing is left to
//! replay.

use super::super::progress_watch::run_with_progress;
use super::super::target::refuse_file;
use super::super::{moving, pull};
use super::control::RunningServer;
use super::disk::DiskWatch;
use super::front::{FrontParts, ServerFront};
use super::gateway::{self, GatewayFlags};
use super::init;
use super::messages::{
    Progress, announce, announce_addresses, clear_passwords, open_to_all, refuse_open, refused,
    report_adopted, report_default_password, report_exposure, report_given_password, report_no_permissions,
    report_open_password_file, report_opened, report_without_effect, start_log,
};
use super::resources;
use super::rpc::OldInterface;
use super::shutdown::{ReloadSignal, ShutdownSignals};
use super::tls::{TlsFiles, load_tls};
use anyhow::{Context, Result, anyhow};
use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use helenus_cql::audit::EventType;
use helenus_cql::backend::Backend;
use helenus_cql::virtual_table::NodeInfo;
use helenus_cql::{CidrAuthorizer, GivenPassword, LocalBackend, LocalOptions, counted};
use helenus_engine::import::Imports;
use helenus_engine::import::{Adoption, ImportError, ImportProgress, adopt};
use helenus_engine::{
    CompactionSettings, Database, DatabaseOptions, JournalSlot, MemoryShares, OpenProgress, PurgeOptions,
    ReadTimeouts, SyncMode,
};
use helenus_host::Host;
use helenus_host::account::{self, split};
use helenus_mover::{Mover, Puller, Side, cut_of, is_under_way};
use helenus_server::admin::{AdminServer, ServerInfo, socket_for_data, socket_for_memory};
use helenus_server::audit::{Audit, AuditNode, AuditUser};
use helenus_server::config::{
    Kind, LogForm, OPTIONS, ServerConfig, Settings, Storage, SyncChoice, Value, settings_table,
};
use helenus_server::connection_budget::DescriptorPlan;
use helenus_server::engine_journal::EngineJournal;
use helenus_server::http::{HttpServer, HttpState, Watched};
use helenus_server::log::{Entry, Level, Log, SlowStatements};
use helenus_server::native::NativeServer;
use helenus_server::policy::FailurePolicies;
use helenus_server::rpc::RpcLimits;
use helenus_tls::ServerTls;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The password of the role `cassandra` until it is changed, as in Cassandra.
const DEFAULT_PASSWORD: &str = "cassandra";

const EXAMPLES: &str = "Examples:
  helenus serve                                    data in ./data, clients on 127.0.0.1:9042
  helenus serve --data /var/lib/helenus --listen 0.0.0.0:9042 --password-file FILE
  helenus serve --memory --listen 127.0.0.1:0      for tests: nothing on disk, a free port
  helenus serve --config cassandra.yaml            Cassandra's own key names
  helenus serve --init schema/                     run schema/*.cql first, on an empty database
  helenus serve --adopt COPY                       on a copy of a Cassandra node's directory; drain the node first
  helenus serve --password-file FILE               clients log in, at first as cassandra with the password in FILE
  helenus serve --http 127.0.0.1:9180              /metrics, /health and /ready for whoever watches servers
  helenus serve --gateway 10.0.0.1,10.0.0.2        in front of a cluster of Cassandra

SIGTERM or Ctrl-C ends it: requests are answered, memtables written; the next start replays nothing.
A second signal ends it at once; the next start replays the log.
SIGHUP has it read its settings again, as helenus admin reloadsettings does.";

/// The longest time that a read of memory may hold up other clients of its event loop before it moves to a disk thread,
/// in nanoseconds.
const PATIENCE_NS_MAX: u64 = 20_000_000;

/// The server warns if the process may have too few file descriptors for this number of connections.
const CONNECTIONS_WANTED: u64 = 10_000;
/// The maximum memory of statements cached by their text.
const TEXTS_BYTES_MAX: u64 = 8 << 20;

/// Defines the command; its options come from the table of settings.
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
    let set = Arg::new("set")
        .long("set")
        .value_name("KEY=VALUE")
        .action(ArgAction::Append)
        .help("Set any key of the configuration file; wins over the file");
    let init = Arg::new("init")
        .long("init")
        .value_name("DIR")
        .conflicts_with("adopt")
        .help("If the database has no keyspaces, run the .cql and .sh files of DIR in the order of their names, before clients are let in");
    // What most servers call it; nobody should have to look for its name here.
    let port = UnknownArgumentValueParser::suggest_arg("--listen");
    let port = port.and_suggest(
        "the port stands in the address: --listen :9042 for this machine, --listen 0.0.0.0:9042 for all",
    );
    let port = Arg::new("port").long("port").short('p').hide(true).value_parser(port);
    let command =
        Command::new("serve").after_help(EXAMPLES).args(flags).args([config, adopt, set, init, port]);
    // `augment_args` replaces `about` by the documentation of the struct.
    GatewayFlags::augment_args(command).about("Start a server")
}

/// Runs the server until a signal ends it.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let files_allowed = helenus_host::real::raise_open_files();
    let real = helenus_host::real::host();
    let mut settings = settings(&real, matches)?;
    let gateway = GatewayFlags::of(matches)?;
    if let Some(directory) = matches.get_one::<String>("adopt") {
        settings.set_flag("data", directory)?;
    }
    let mut config =
        ServerConfig::new(&settings, helenus_host::real::memory_bytes(), helenus_host::real::cores())?;
    let refused = refuse_open(&config);
    match &gateway {
        Some(flags) if flags.has_logins() => {}
        Some(_) => refused.context("for a gateway, --cluster-logins takes the place of --password-file")?,
        None => refused?,
    }
    config.share_descriptors(&DescriptorPlan::of(files_allowed));
    resources::check(&config, files_allowed)?;
    let log = start_log(&real, &config);
    let served = match &gateway {
        Some(flags) => gateway::run(&real, flags, &config, &log),
        None => serve(&real, matches, (&settings, &config), &log),
    };
    if let Err(error) = &served
        && config.log.form == LogForm::Json
    {
        // For programs that read only the JSON log. People get the same error on stderr.
        log.write(Level::Error, &Entry::new("failed", format!("{error:#}")));
    }
    log.close();
    served
}

fn serve(
    real: &Host,
    matches: &ArgMatches,
    (settings, config): (&Settings, &ServerConfig),
    log: &Arc<Log>,
) -> Result<()> {
    let reload = ReloadSignal::new()?;
    let adopted = matches.get_one::<String>("adopt").map(Path::new);
    let adoption = adopted.map(|directory| adopt_directory(real, directory, log)).transpose()?;
    report_without_effect(log, settings);
    let tls = load_tls(real, config, log)?;
    let _tls_files = tls.as_ref().map(|tls| TlsFiles::watch(real, tls, log));
    let host = match config.storage {
        Storage::Memory => helenus_host::memory::host(),
        Storage::Directory(_) => real.clone(),
    };
    let slow = SlowStatements::new(log, &host.clock, config.log.slow, config.log.shows_values);
    let (policies, mut told) = FailurePolicies::new(config.disk_failure, config.commit_failure, log);
    let progress = Arc::new(OpenProgress::default());
    let state = HttpState::new(log, &slow, &policies, &progress);
    let http = start_http(&host, (config, tls.as_ref()), &state)?;
    let journal = Arc::new(EngineJournal::new(log, &policies));
    journal.set_guardrails(&config.guardrails);
    let beside = names_beside(matches, settings, config);
    let database = open(&host, (config, beside), (log, progress, JournalSlot::of(journal.clone())))?;
    let ending = ShutdownSignals::new(reload)?;
    if let Some(adoption) = &adoption {
        Imports::of(&database).finish_adoption(adoption)?;
        report_adopted(log, adoption);
    }
    let local = LocalBackend::new(Arc::clone(&database), local_options(config));
    describe_node(&local, config, config.listen);
    let disk = match &config.storage {
        Storage::Memory => None,
        Storage::Directory(directory) => {
            Some(Arc::new(DiskWatch::start(real, &local, directory.join("data"), log)))
        }
    };
    let audit = start_audit(real, config, log)?;
    let login = begin_logins(real, &local, config, (log, &audit))?;
    let backend: Arc<dyn Backend> = local.clone();
    // After a cut the truth is at the target: no client is admitted here.
    let cut = match directory_of(config) {
        Some(directory) => cut_of(&host.disk, directory)?,
        None => None,
    };
    report_foreign_addresses(&local, config, log);
    let mut limits = config.limits.clone();
    limits.audit = Some(Arc::clone(&audit));
    if let Some(directory) = matches.get_one::<String>("init") {
        let scripts = init::Scripts { directory: Path::new(directory), login };
        init::run(&host, &local, limits.clone(), &scripts, log)?;
    }
    limits.tls.clone_from(&tls);
    limits.encrypted_address = config.listen_encrypted;
    limits.shard_aware_address = config.listen_shard_aware;
    limits.starts_paused = cut.is_some();
    let native = NativeServer::start_watched(&host, backend, config.listen, limits, Some(Arc::clone(&slow)))?;
    let native = Arc::new(native);
    local.virtual_tables().register(native.clients_table());
    if config.listen_shard_aware.is_some() {
        local.virtual_tables().register(native.clients_table_of_scylla());
    }
    local.virtual_tables().register(settings_table(settings, config));
    // A second time, because the port is known only now if the system chose it. It has not been printed yet.
    let node = describe_node(&local, config, native.address());
    let side = if cut.is_some() { Side::Cluster } else { Side::Local };
    let rpc_limits = RpcLimits {
        tls: tls.clone(),
        audit: Some(Arc::clone(&audit)),
        logins: Some(Arc::clone(native.login_pool())),
        ..config.rpc_limits.clone()
    };
    let old_interface = OldInterface::bind(&host, &local, (config, rpc_limits), &slow)?;
    if let (Some(old_interface), Side::Local) = (&old_interface, side) {
        old_interface.serve_here()?;
    }
    let rpc = old_interface.as_ref().map(|rpc| Arc::clone(&rpc.server));
    let parts = FrontParts {
        host: host.clone(),
        native: Arc::clone(&native),
        rpc: old_interface,
        local: Arc::clone(&local),
        config: config.clone(),
        tls: tls.clone(),
        log: Arc::clone(log),
        audit: Arc::clone(&audit),
    };
    let front = ServerFront::new(parts, side)?;
    let rpc_address = rpc.as_ref().map(|rpc| rpc.address());
    let http_address = http.as_ref().map(HttpServer::address);
    let doors = Arc::new(RunningServer {
        native: Arc::clone(&native),
        rpc: rpc.clone(),
        front: Arc::clone(&front),
        database: Arc::clone(&database),
        local: Arc::clone(&local),
        log: Arc::clone(log),
        slow,
        audit: Arc::clone(&audit),
        policies: Arc::clone(&policies),
        started: config.clone(),
        settings_started: settings.clone(),
        settings: Mutex::new(settings.clone()),
        matches: matches.clone(),
        journal,
        disk,
        tls: tls.clone(),
    });
    let open_to_all =
        open_to_all(config, [("CQL", Some(native.address())), ("RPC", rpc_address), ("HTTP", http_address)]);
    let clear_passwords: Vec<String> = clear_passwords(config, http_address).into_iter().collect();
    if let Some(cut) = cut {
        announce(log, "move", format!("was cut over: clients are served by {}", cut.order.to.join(", ")));
        front.begin_at(cut);
    }
    let mover = Mover::open(&local, directory_of(config), front.clone());
    let exposed = [&open_to_all[..], &clear_passwords[..]].concat();
    let admin = start_admin(&host, &local, (&doors, &mover), (config, &exposed))?;
    state.opened(Watched {
        database: Arc::clone(&database),
        native: Arc::clone(&native),
        rpc: rpc.clone(),
        node,
        directory: match &config.storage {
            Storage::Memory => None,
            Storage::Directory(directory) => Some(directory.clone()),
        },
        backend: Arc::clone(&local),
        audit: Arc::clone(&audit),
        version: env!("CARGO_PKG_VERSION"),
    });
    let connections_max = config.limits.budget.in_all();
    if connections_max < CONNECTIONS_WANTED {
        let text = format!(
            "{}, by the open files allowed; raise it with ulimit -n",
            counted(connections_max, "connection")
        );
        announce(log, "limited", text);
    }
    if let Some(rpc) = &rpc {
        announce(log, "rpc", format!("{}  (Thrift, framed or not)", rpc.address()));
    }
    if let Some(http) = &http {
        announce(log, "http", format!("{}  (/metrics, /health, /ready)", http.address()));
    }
    report_exposure(log, "open_to_all", &open_to_all);
    report_exposure(log, "clear_passwords", &clear_passwords);
    announce_addresses(log, &native, &admin, config);
    let stop_doors = || {
        front.stop();
        if let Some(rpc) = &rpc {
            rpc.stop();
        }
    };
    ending.wait(&mut told, log, &stop_doors, &|| doors.reload_told());
    state.stopping();
    announce(log, "stopping", "answering what has come, writing memtables".to_owned());
    stop_doors();
    native.login_pool().stop();
    // First what a tool may wait for, as for a rollback, then the tools.
    mover.stop();
    admin.stop();
    audit.disable();
    let closed = database.close().context("closing the database");
    if let Some(http) = &http {
        http.stop();
    }
    state.closed();
    closed?;
    announce(log, "stopped", "nothing to replay".to_owned());
    Ok(())
}

/// Logs statements of roles from networks that they may not come from.
fn report_foreign_addresses(local: &LocalBackend, config: &ServerConfig, log: &Arc<Log>) {
    if config.access.cidr == CidrAuthorizer::AllowAll {
        return;
    }
    let log = Arc::clone(log);
    local.on_foreign_address(move |role, address, groups| {
        let groups: Vec<&str> = groups.iter().map(|group| &**group).collect();
        let groups = groups.join(", ");
        let text = format!("Role {role} accessed from unauthorized IP {address}, CIDR group [{groups}]");
        let entry = Entry::new("foreign_address", text).with("role", role);
        log.write_rate_limited(Level::Warn, role, entry.with("address", address.to_string()));
    });
}

/// Starts the audit log, if it is configured; it can be switched on later too.
fn start_audit(real: &Host, config: &ServerConfig, log: &Arc<Log>) -> Result<Arc<Audit>> {
    let own = if config.listen.ip().is_unspecified() { outward_address() } else { config.listen.ip() };
    let node = AuditNode {
        address: config.broadcast_address.unwrap_or(own),
        directory: match &config.storage {
            Storage::Memory => None,
            Storage::Directory(directory) => Some(directory.clone()),
        },
        memory_limit: config.memory_limit,
    };
    let audit = Audit::new(real, log, node, config.audit.clone())?;
    if let Some(directory) = audit.directory(&config.audit).filter(|_| audit.is_on()) {
        announce(log, "audit", format!("{}", directory.join("audit.log").display()));
    }
    Ok(audit)
}

/// Makes the first superuser and sets its password, if clients have to log in.
fn begin_logins(
    real: &Host,
    local: &LocalBackend,
    config: &ServerConfig,
    (log, audit): (&Log, &Audit),
) -> Result<Option<init::Login>> {
    let password = config.password_file.as_deref().map(|file| read_password(real, file)).transpose()?;
    if let Some(file) = &config.password_file {
        report_open_password_file(log, file);
    }
    let first = local.begin_logins_as(&config.password_role, password.as_deref())?;
    if matches!(first.given, Some(GivenPassword::Made | GivenPassword::Set)) && audit.is_on() {
        let operation = format!("--password-file: the password of the role {}", config.password_role);
        audit.write_own(EventType::AlterRole, AuditUser::Server, &operation);
    }
    report_no_permissions(log, &config.access);
    report_given_password(log, &config.password_role, &first);
    if first.has_default_password {
        report_default_password(log, &config.access);
    }
    if !config.access.authenticator.takes_passwords() {
        return Ok(None);
    }
    let password = password.unwrap_or_else(|| DEFAULT_PASSWORD.to_owned());
    Ok(Some(init::Login { role: config.password_role.clone(), password }))
}

/// The first line of a file.
fn read_password(host: &Host, file: &Path) -> Result<String> {
    let shown = file.display();
    let text = read_text(host, file).with_context(|| format!("cannot read --password-file {shown}"))?;
    match text.lines().next().unwrap_or_default() {
        "" => Err(anyhow!("--password-file {shown}: its first line is empty; write the password there")),
        password => Ok(password.to_owned()),
    }
}

/// Starts the HTTP server, if it is configured.
fn start_http(
    host: &Host,
    (config, tls): (&ServerConfig, Option<&Arc<ServerTls>>),
    state: &Arc<HttpState>,
) -> Result<Option<HttpServer>> {
    let Some(address) = config.http else { return Ok(None) };
    let mut limits = config.http_limits.clone();
    if let Some(policy) = config.http_tls {
        let tls = tls
            .ok_or_else(|| anyhow!("http_tls: there is no certificate; give --tls-cert, or leave it out"))?;
        limits.tls = Some((Arc::clone(tls), policy));
    }
    Ok(Some(HttpServer::start(host, address, limits, Arc::clone(state))?))
}

/// Checks a copy of a Cassandra node's directory and prepares it for opening.
fn adopt_directory(host: &Host, directory: &Path, log: &Log) -> Result<Adoption> {
    announce(log, "adopting", format!("{}: checking everything first", directory.display()));
    let progress = ImportProgress::default();
    let adopted = run_with_progress(|| adopt(host, directory, true, &progress), || progress.status())?;
    adopted.map_err(|error| match error {
        // The list of problems alone: nothing was imported.
        ImportError::Refused { problems } => anyhow!("nothing was changed:\n  {}", problems.join("\n  ")),
        other => anyhow!(other),
    })
}

/// The settings of the configuration file and the command line.
pub(super) fn settings(host: &Host, matches: &ArgMatches) -> Result<Settings> {
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
    for text in matches.get_many::<String>("set").into_iter().flatten() {
        settings.set_key(text)?;
    }
    Ok(settings)
}

fn read_text(host: &Host, path: &Path) -> Result<String> {
    let file = host.disk.open(path)?;
    let mut bytes = vec![0; usize::try_from(file.size()?)?];
    file.read_exact_at(&mut bytes, 0)?;
    let not_text = |error: std::string::FromUtf8Error| {
        anyhow!("byte {} is no text in UTF-8", error.utf8_error().valid_up_to())
    };
    String::from_utf8(bytes).map_err(not_text)
}

/// The names in the data directory of what the command line and the settings point at there, such as the configuration. A first
/// start on a directory with other files is refused.
fn names_beside(matches: &ArgMatches, settings: &Settings, config: &ServerConfig) -> Vec<OsString> {
    let Some(directory) = directory_of(config).and_then(|directory| std::path::absolute(directory).ok())
    else {
        return Vec::new();
    };
    let of_settings = OPTIONS.iter().filter(|option| option.kind == Kind::Path && option.key != "data");
    let of_settings = of_settings.filter_map(|option| match settings.get(option.key)? {
        Value::Text(path) => Some(path.clone()),
        _ => None,
    });
    let of_arguments =
        ["config", "init"].into_iter().filter_map(|name| matches.get_one::<String>(name).cloned());
    let encryption = &config.encryption;
    let of_encryption = [&encryption.keystore, &encryption.truststore, &encryption.revocation_lists];
    let of_encryption = of_encryption.into_iter().filter_map(Clone::clone);
    let name = |path: String| {
        let path = std::path::absolute(path).ok()?;
        let below = path.strip_prefix(&directory).ok()?;
        Some(below.components().next()?.as_os_str().to_owned())
    };
    of_settings.chain(of_arguments).chain(of_encryption).filter_map(name).collect()
}

fn open(
    host: &Host,
    (config, beside): (&ServerConfig, Vec<OsString>),
    (log, progress, journal): (&Arc<Log>, Arc<OpenProgress>, JournalSlot),
) -> Result<Arc<Database>> {
    if let Some(directory) = directory_of(config) {
        refuse_file(host, directory)?;
    }
    let mut options = database_options(host, config, (Arc::clone(&progress), journal));
    options.beside = beside;
    let begun_ns = host.clock.monotonic_ns();
    let progress = Progress::start(host, progress, log);
    let opened = Database::open(host.clone(), options);
    progress.end();
    let (database, report) = opened.map_err(refused)?;
    report_opened(log, &report, host.clock.monotonic_ns().saturating_sub(begun_ns));
    if config.disk_failure.refuses_to_start() && !report.unreadable.is_empty() {
        return Err(anyhow!(
            "SSTables of {} cannot be read, and disk_failure_policy says not to start then: mend them with \
             helenus sstable scrub, remove them, or start with --disk-failure-policy ignore",
            counted(report.unreadable.len(), "table")
        ));
    }
    Ok(database)
}

/// Opens the database without a word, but for damage, which goes to stderr. Without `compacts` nothing is compacted unless asked for.
pub(super) fn open_quietly(
    host: &Host,
    config: &ServerConfig,
    parts: (Arc<OpenProgress>, JournalSlot),
    compacts: bool,
) -> Result<Arc<Database>> {
    let mut options = database_options(host, config, parts);
    options.compaction.automatic = compacts;
    let opened = Database::open(host.clone(), options);
    let (database, report) = opened.map_err(|error| match &config.storage {
        Storage::Directory(directory) => {
            anyhow!(error).context(format!("cannot open {}", directory.display()))
        }
        Storage::Memory => anyhow!(error),
    })?;
    for (table, damage) in &report.unreadable {
        note!("Warning: {damage}; reads of {table} fail until its files are mended or removed");
    }
    Ok(database)
}

/// The path of a database in memory.
pub(super) const MEMORY: &str = "/memory";

fn database_options(
    host: &Host,
    config: &ServerConfig,
    (progress, journal): (Arc<OpenProgress>, JournalSlot),
) -> DatabaseOptions {
    let mut options = DatabaseOptions::new(match &config.storage {
        Storage::Memory => PathBuf::from(MEMORY),
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
    options.timeouts = read_timeouts(config);
    options.mutation_bytes_max = config.mutation_bytes_max;
    options.kept_log = config.kept_log;
    options.row_images = config.row_images.clone();
    let shares = config.memtable_bytes as u64 + config.cache_bytes;
    account::set_limits(split(config.memory_limit, shares), config.timeouts.read);
    options.memory = MemoryShares { memtables: config.memtable_bytes, cache: config.cache_bytes };
    options.compaction = CompactionSettings {
        threads: config.compactors,
        bytes_per_s: config.compaction_bytes_per_s,
        automatic: true,
        purge: PurgeOptions {
            grace_s: i64::try_from(config.purge_grace.as_secs()).unwrap_or(i64::MAX),
            obey_gc_grace: config.obeys_gc_grace,
        },
        // The mover says it again once it goes on, but compactions begin before that.
        keeps_tombstones: directory_of(config).is_some_and(|directory| is_under_way(&host.disk, directory)),
    };
    (options.progress, options.journal) = (progress, journal);
    options
}

/// The timeouts of reads.
pub(super) fn read_timeouts(config: &ServerConfig) -> ReadTimeouts {
    let ns = |timeout: std::time::Duration| u64::try_from(timeout.as_nanos()).ok();
    // A read must move to a disk thread before it counts as slow, hence half of the slow time.
    let patience_ns = config.log.slow.and_then(|slow| ns(slow / 2)).map(|half| half.min(PATIENCE_NS_MAX));
    ReadTimeouts { by_key_ns: ns(config.timeouts.read), range_ns: ns(config.timeouts.range), patience_ns }
}

pub(super) fn local_options(config: &ServerConfig) -> LocalOptions {
    LocalOptions {
        prepared_bytes_max: config.statements_bytes,
        statements_bytes_max: config.statements_bytes.min(TEXTS_BYTES_MAX),
        batches: config.batches,
        access: config.access.clone(),
        datacenter: config.datacenter.as_str().into(),
        masks_columns: config.masks_columns,
        drops_compact_storage: config.drops_compact_storage,
        tombstones_warn: config.tombstones_warn,
        tombstones_fail: config.tombstones_fail,
        answer_bytes_max: config.answer_bytes_max,
        guardrails: config.guardrails.clone(),
        warns_of_zero_ttl: config.warns_of_zero_ttl,
        ..LocalOptions::default()
    }
}

/// Sets the addresses that clients read in `system.local`.
pub(super) fn describe_node(local: &LocalBackend, config: &ServerConfig, listens: SocketAddr) -> NodeInfo {
    let own = if listens.ip().is_unspecified() { outward_address() } else { listens.ip() };
    let native_address = SocketAddr::new(config.broadcast_address.unwrap_or(own), listens.port());
    let cluster_name = config.cluster_name.clone();
    let (datacenter, rack) = (config.datacenter.clone(), config.rack.clone());
    let node = NodeInfo { cluster_name, datacenter, rack, native_address };
    local.virtual_tables().describe_node(local.database(), node.clone());
    node
}

/// The address from which this machine would send to the Internet: the source address of a UDP socket that is connected
/// but sends nothing. The loopback address if there is no route.
pub fn outward_address() -> IpAddr {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
    let local = socket.and_then(|socket| {
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?; // TEST-NET-1: reserved
        socket.local_addr()
    });
    local.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
}

/// The data directory, if there is one.
fn directory_of(config: &ServerConfig) -> Option<&Path> {
    match &config.storage {
        Storage::Memory => None,
        Storage::Directory(directory) => Some(directory),
    }
}

fn start_admin(
    host: &Host,
    local: &Arc<LocalBackend>,
    (control, mover): (&Arc<RunningServer>, &Arc<Mover>),
    (config, warnings): (&ServerConfig, &[String]),
) -> Result<AdminServer> {
    let (path, directory, sync) = match &config.storage {
        Storage::Memory => (socket_for_memory(control.native.address().port()), None, None),
        Storage::Directory(directory) => {
            (socket_for_data(directory), Some(directory.clone()), Some(config.sync.name()))
        }
    };
    let front = Arc::clone(&control.front);
    let puller = Puller::new(local, Box::new(move || front.begin_writing("helenus pull")));
    let facts = ServerInfo {
        version: env!("CARGO_PKG_VERSION"),
        listening: control.native.address(),
        rpc: control.rpc.as_ref().map(|rpc| rpc.address()),
        directory,
        sync,
        warnings: warnings.to_vec(),
        control: Arc::<RunningServer>::clone(control),
        further: BTreeMap::from([(moving::TOOL, moving::verbs(mover)), (pull::TOOL, pull::verbs(&puller))]),
    };
    AdminServer::start(host, local, &path, facts).context("the admin socket")
}
