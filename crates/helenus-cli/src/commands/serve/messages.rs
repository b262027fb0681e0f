//! The server's messages at its start and end, and its log.

use anyhow::{Result, anyhow};
use helenus_cql::{AccessOptions, Authenticator, Authorizer, FirstLogin, GivenPassword, counted};
use helenus_engine::import::Adoption;
use helenus_engine::{Error, OpenProgress, OpenReport, OpenStage};
use helenus_host::{Host, Next, Worker};
use helenus_server::address::Address;
use helenus_server::admin::AdminServer;
use helenus_server::config::{LogForm, NoEffect, ServerConfig, Settings, Storage, size_text};
use helenus_server::log::{Entry, Format, Level, Log};
use helenus_server::native::NativeServer;
use helenus_tls::{ClientCertificates, Policy};
use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes a message about the start or end of the server, for people and for programs that wait for its key word.
pub(super) fn announce(log: &Log, word: &'static str, text: String) {
    log.print_status(&Entry::new(word, text));
}

/// Starts the log and the panic hook that writes to it. No other code in the process sets a panic hook.
pub(super) fn start_log(host: &Host, config: &ServerConfig) -> Arc<Log> {
    let format = match config.log.form {
        LogForm::Json => Format::Json,
        LogForm::Cassandra => Format::Cassandra,
        LogForm::Text => Format::Text { coloured: std::io::stderr().is_terminal() },
    };
    let log = Log::start(host, format, config.log.level);
    let panics = Arc::clone(&log);
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        let backtrace = std::backtrace::Backtrace::capture();
        let message = format!("{text}, at {place}: a bug; please report it");
        let mut entry = Entry::new("panic", message).with("place", place).with("panic", text);
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            entry = entry.with("backtrace", backtrace.to_string());
        }
        panics.write_panic(&entry);
    }));
    log
}

pub(super) fn report_adopted(log: &Log, adoption: &Adoption) {
    let Adoption { tables, sstables, notes, .. } = adoption;
    if *sstables > 0 {
        announce(
            log,
            "adopted",
            format!("{} of {}", counted(*sstables, "SSTable"), counted(*tables, "table")),
        );
    }
    for note in notes {
        announce(log, "note", note.to_string());
    }
}

/// Tells in one line that keys of the configuration have no effect; the log has all their names at level debug.
pub(super) fn report_without_effect(log: &Log, settings: &Settings) {
    let of = |kind| {
        let keys = settings.without_effect.iter().filter(move |(_, why)| *why == kind);
        keys.map(|(key, _)| key.as_str()).collect::<Vec<_>>()
    };
    let (elsewhere, not_built) = (of(NoEffect::NotApplicable), of(NoEffect::NotBuilt));
    let parts = [
        some_names(&elsewhere, "that mean nothing on one machine"),
        some_names(&not_built, "that are not built yet"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return;
    }
    let all = if log.takes(Level::Debug) { "" } else { "; --log-level debug names all" };
    announce(log, "ignored", format!("{}{all}", parts.join(", ")));
    for (keys, text) in
        [(elsewhere, "mean nothing on one machine"), (not_built, "are not built yet and have no effect")]
    {
        if !keys.is_empty() {
            log.write(Level::Debug, &Entry::new("ignored", format!("keys that {text}: {}", keys.join(", "))));
        }
    }
}

/// The number of keys, and the first two.
fn some_names(keys: &[&str], text: &str) -> Option<String> {
    let number = match keys.len() {
        0 => return None,
        number => counted(number, "key"),
    };
    let dots = if keys.len() > 2 { ", ..." } else { "" };
    let first: Vec<&str> = keys.iter().take(2).copied().collect();
    Some(format!("{number} {text} ({}{dots})", first.join(", ")))
}

/// The error of a refused start. If the commit log is the cause, the text ends with the command that starts all the
/// same.
pub(super) fn refused(error: Error) -> anyhow::Error {
    let is_of_log = matches!(error, Error::LogDamaged { .. } | Error::Unappliable(_));
    if !is_of_log {
        return error.into();
    }
    let command: Vec<String> = std::env::args().map(|word| quoted(&word)).collect();
    anyhow!("{error}:\n  {} --skip-damaged-log", command.join(" "))
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

pub(super) fn report_opened(log: &Log, report: &OpenReport, took_ns: u64) {
    for (segment, offset) in &report.skipped {
        let text = format!("damaged log: {} from byte {offset} to its end", segment.display());
        log.print_status(
            &Entry::new("skipped", text).with("file", segment.display().to_string()).with("offset", *offset),
        );
    }
    for record in &report.unappliable {
        let (segment, kept) = (record.segment.display(), record.kept.display());
        let text = format!(
            "a record that cannot be applied to {}: {segment} at byte {}: {}; it is kept in {kept}",
            record.table, record.offset, record.problem
        );
        let entry = Entry::new("skipped", text).with("table", record.table.as_str());
        let entry = entry.with("file", segment.to_string()).with("offset", record.offset);
        log.print_status(&entry.with("kept", kept.to_string()));
    }
    for (table, damage) in &report.unreadable {
        let text = format!("{damage}; reads of {table} fail until its files are mended or removed");
        log.print_status(&Entry::new("damaged", text).with("table", table.as_str()));
    }
    for folder in &report.made_private {
        let text = format!("{}: others had rights to it and have none now", folder.display());
        log.print_status(&Entry::new("private", text).with("folder", folder.display().to_string()));
    }
    if report.replayed > 0 {
        let (mebibytes, ms) = (report.log_bytes as f64 / f64::from(1 << 20), took_ns / 1_000_000);
        let text = format!("{} updates from {mebibytes:.1} MiB of log in {ms} ms", report.replayed);
        let entry = Entry::new("replayed", text).with("updates", report.replayed).with("took_ms", ms);
        log.print_status(&entry.with("log_bytes", report.log_bytes));
    }
}

/// Tells that the first superuser still has its default password, and from where it is accepted.
pub(super) fn report_default_password(log: &Log, access: &AccessOptions) {
    let from = match access.allows_default_password {
        true => "accepted from everywhere",
        false => "accepted from this machine only",
    };
    let text = format!(
        "the role cassandra has its default password, {from}; change it: ALTER ROLE cassandra WITH PASSWORD = '...', or start \
         with --password-file FILE"
    );
    announce(log, "WARNING", text.clone());
    log.write(Level::Warn, &Entry::new("default_password", text));
}

/// Tells that logins alone keep no role from what another has made.
pub(super) fn report_no_permissions(log: &Log, access: &AccessOptions) {
    if access.authenticator == Authenticator::AllowAll || access.authorizer != Authorizer::AllowAll {
        return;
    }
    let text = "none is checked: each role that logs in may do everything but what asks for a superuser; \
                --authorizer CassandraAuthorizer checks them";
    announce(log, "permissions", text.to_owned());
    log.write(Level::Warn, &Entry::new("no_permissions", format!("permissions: {text}")));
}

/// Tells that the password file was not followed: a role that is there keeps its password and its rights.
pub(super) fn report_given_password(log: &Log, role: &str, first: &FirstLogin) {
    if first.given == Some(GivenPassword::Other) {
        let text = format!(
            "the role {role} has another password than the one in --password-file, which it keeps, because it may have been \
             changed since; to set it, run helenus admin passwd {role} on this machine"
        );
        announce(log, "WARNING", text.clone());
        log.write(Level::Warn, &Entry::new("password_kept", text));
    }
    if first.given == Some(GivenPassword::NoRole) {
        let text = format!(
            "the role {role} of --password-file is not there, and is not made, because another superuser is, who may have dropped \
             it; where nobody knows his password, helenus admin passwd on this machine sets that of the role cassandra"
        );
        announce(log, "WARNING", text.clone());
        log.write(Level::Warn, &Entry::new("password_role", text));
    } else if first.given.is_some() && !first.is_superuser {
        let text = format!(
            "the role {role} of --password-file is no superuser that may log in, and is not made one because it is there \
             already; a superuser may: ALTER ROLE {role} WITH SUPERUSER = true AND LOGIN = true"
        );
        announce(log, "WARNING", text.clone());
        log.write(Level::Warn, &Entry::new("password_role", text));
    }
}

/// Tells that other users of this machine may read the file of the first superuser's password.
pub(super) fn report_open_password_file(log: &Log, file: &Path) {
    let Ok(facts) = std::fs::metadata(file) else { return };
    let mode = facts.permissions().mode() & 0o777;
    // A file without a name, which the start of a container hands over, is opened by nobody else.
    if mode & 0o077 == 0 || facts.nlink() == 0 {
        return;
    }
    let text = format!(
        "other users of this machine may read the password in {0} (mode {mode:o}); chmod 600 {0}, and change the password if \
         they might have",
        file.display()
    );
    announce(log, "WARNING", text.clone());
    log.write(Level::Warn, &Entry::new("open_password_file", text));
}

/// What anyone may do who reaches a server that listens beyond this machine and asks nobody to log in: a text for each
/// such server.
pub(super) fn open_to_all(config: &ServerConfig, servers: [(&str, Option<SocketAddr>); 3]) -> Vec<String> {
    let has_logins = config.access.authenticator != Authenticator::AllowAll;
    let beyond = servers.into_iter().filter_map(|(name, address)| {
        let asks = match name {
            "HTTP" => config.http_limits.asks_for_login,
            _ => has_logins,
        } || asks_for_certificate(config, name);
        let address = address.filter(|address| !asks && !address.ip().to_canonical().is_loopback())?;
        let may = match name {
            "HTTP" => "reads names of keyspaces and tables and how they are used",
            _ => "reads, changes and drops everything",
        };
        Some(format!(
            "{name} listens on {address}, beyond this machine, and asks nobody to log in: whoever reaches it {may}"
        ))
    });
    beyond.collect()
}

/// Whether who connects to a port must show a certificate of a client that the server trusts.
fn asks_for_certificate(config: &ServerConfig, name: &str) -> bool {
    let has_tls_alone = match name {
        // With a port of its own for TLS, the other one is in the clear.
        "CQL" => config.encryption.refuses_clear() && config.listen_encrypted.is_none(),
        "HTTP" => config.http_tls == Some(Policy::Required),
        _ => config.encryption.refuses_clear(),
    };
    has_tls_alone && config.encryption.client_certificates == ClientCertificates::Required
}

/// That passwords for the HTTP port are sent in the clear beyond this machine (HTTP Basic); `None` if they are not.
pub(super) fn clear_passwords(config: &ServerConfig, http: Option<SocketAddr>) -> Option<String> {
    let is_clear = config.http_limits.asks_for_login && config.http_tls != Some(Policy::Required);
    let address = http.filter(|address| is_clear && !address.ip().to_canonical().is_loopback())?;
    Some(format!(
        "HTTP listens on {address}, beyond this machine, and takes names and passwords in the clear: whoever is on the way reads them. \
         Set http_tls: on, and give a certificate"
    ))
}

/// Refuses to start a server that anyone beyond this machine could use, unless that is wanted.
pub(super) fn refuse_open(config: &ServerConfig) -> Result<()> {
    let open =
        open_to_all(config, [("CQL", Some(config.listen)), ("RPC", config.rpc), ("HTTP", config.http)]);
    if config.insecure_no_login || open.is_empty() {
        return Ok(());
    }
    Err(anyhow!(
        "not started:\n  {}\nGive one of these:\n  \
         --password-file FILE    clients log in, at first as cassandra with the password in FILE (password_file in a file \
         of options; or authenticator: PasswordAuthenticator)\n  \
         --tls-cert FILE --tls-client-ca FILE\n                          clients show a certificate by TLS that an authority in the \
         second file has signed\n                          (require_client_auth: true; HTTP: --http-tls on, too)\n  \
         --insecure-no-login     serve whoever reaches it, where a firewall or a container decides who does\n\
         or listen on 127.0.0.1",
        open.join("\n  ")
    ))
}

/// Writes warnings to stderr and to the log, because either may be discarded. `event`: their name in the log.
pub(super) fn report_exposure(log: &Log, event: &'static str, warnings: &[String]) {
    for warning in warnings {
        announce(log, "WARNING", warning.clone());
        log.write(Level::Warn, &Entry::new(event, warning.as_str()));
    }
}

pub(super) fn announce_addresses(
    log: &Log,
    native: &NativeServer,
    admin: &AdminServer,
    config: &ServerConfig,
) {
    let address = native.address();
    match &config.storage {
        Storage::Memory => {
            let limit = size_text(config.memory_limit);
            announce(log, "storing in", format!("memory ({limit}); nothing survives the server"));
        }
        Storage::Directory(directory) => {
            announce(log, "storing in", directory.display().to_string());
            announce(log, "sync", format!("{}: {}", config.sync.name(), config.sync.promise()));
        }
    }
    let in_place =
        matches!(&config.storage, Storage::Directory(directory) if admin.path().starts_with(directory));
    if !in_place {
        announce(log, "admin", admin.path().display().to_string());
    }
    let ip = match address.ip() {
        ip if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        ip => ip,
    };
    let (server, port) = (Address::from(SocketAddr::new(ip, address.port())), address.port());
    let login = match config.access.authenticator.takes_passwords() {
        true => format!(" -u {}", config.password_role),
        false => String::new(),
    };
    let (tls, ssl) = if config.encryption.enabled { (" --cafile FILE", " --ssl") } else { ("", "") };
    let text = format!("helenus shell {server}{login}{tls}, or cqlsh {ip} {port}{login}{ssl}");
    announce(log, "connect", text);
    if config.log.form == LogForm::Cassandra {
        announce_as_cassandra(log, address, native.shard_aware_address());
        return;
    }
    // This must be the last line: programs that wait for it may rely on the others.
    let entry = Entry::new("listening", format!("{address}  (CQL native protocol v3, v4, v5)"));
    log.print_status(&entry.with("address", address.to_string()));
}

/// The two messages of a Cassandra node by which tools know that it answers, with the places that print them in 5.0.9.
fn announce_as_cassandra(log: &Log, address: SocketAddr, shard_aware: Option<SocketAddr>) {
    let listening = format!("Starting listening for CQL clients on /{address} (unencrypted)...");
    announce(log, "PipelineConfigurator.java:148", listening);
    if let Some(address) = shard_aware {
        let listening = format!("Starting listening for CQL clients on {address} (shard-aware)");
        announce(log, "init", listening);
        // What tools that start ScyllaDB's image wait for.
        announce(log, "init", "initialization completed.".to_owned());
    }
    announce(log, "CassandraDaemon.java:744", "Startup complete".to_owned());
}

/// Reports each second that the database is still being opened.
pub(super) struct Progress {
    opened: Arc<AtomicBool>,
    task: Arc<dyn helenus_host::TaskHandle>,
}

impl Progress {
    pub(super) fn start(host: &Host, figures: Arc<OpenProgress>, log: &Arc<Log>) -> Progress {
        let opened = Arc::new(AtomicBool::new(false));
        let ticker = Ticker { opened: Arc::clone(&opened), figures, seconds: 0, log: Arc::clone(log) };
        Progress { opened, task: host.tasks.start("opening", Box::new(ticker)) }
    }

    pub(super) fn end(self) {
        self.opened.store(true, Ordering::Release);
        self.task.wake();
        self.task.join();
    }
}

struct Ticker {
    opened: Arc<AtomicBool>,
    figures: Arc<OpenProgress>,
    seconds: u64,
    log: Arc<Log>,
}

impl Worker for Ticker {
    fn step(&mut self) -> Next {
        if self.opened.load(Ordering::Acquire) {
            return Next::Done;
        }
        if self.seconds > 0 {
            let text = format!("{}, {} s so far", stage_text(self.figures.stage()), self.seconds);
            announce(&self.log, "opening", text);
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
            format!(
                "replaying the commit log: {done} of {} ({} %)",
                counted(of, "record"),
                done * 100 / of.max(1)
            )
        }
        OpenStage::Files => "opening files".to_owned(),
    }
}
