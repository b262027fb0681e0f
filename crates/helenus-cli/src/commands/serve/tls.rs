//! TLS of a running server: reads its files at the start, and again when they change.

use super::messages::announce;
use anyhow::{Result, bail};
use helenus_host::{Host, Next, TaskHandle, Worker};
use helenus_server::config::ServerConfig;
use helenus_server::log::{Entry, Level, Log};
use helenus_tls::{Policy, ReadFile, Reloaded, ServerTls};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often the files are looked at. Cassandra does so every ten minutes.
const LOOK_NS: u64 = 30_000_000_000;

/// Reads the files that the configuration names. `None` if it asks for no TLS.
pub(super) fn load_tls(host: &Host, config: &ServerConfig, log: &Log) -> Result<Option<Arc<ServerTls>>> {
    let disk = Arc::clone(&host.disk);
    let read: ReadFile = Arc::new(move |path| {
        let file = disk.open(path)?;
        let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(0)];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    });
    let Some(tls) = ServerTls::load(&config.encryption, read, now_s(host))? else {
        if config.listen_encrypted.is_some() {
            bail!("Encryption must be enabled in client_encryption_options for native_transport_port_ssl");
        }
        return Ok(None);
    };
    for name in tls.dropped() {
        let text = format!("{name} is not supported, and no connection uses it");
        log.write(Level::Warn, &Entry::new("tls", text).with("name", name));
    }
    log_notices(&tls, log);
    let clear = match (tls.policy(), config.listen_encrypted) {
        (_, Some(address)) => format!("on {address}; the other port is in the clear"),
        (Policy::Optional, None) => "for those who ask for it; others are served in the clear".to_owned(),
        (Policy::Required, None) => "required".to_owned(),
    };
    announce(log, "tls", format!("{clear} (certificate valid until {})", tls.valid_until()));
    Ok(Some(Arc::new(tls)))
}

fn log_notices(tls: &ServerTls, log: &Log) {
    for text in tls.notices() {
        log.write(Level::Warn, &Entry::new("tls", text));
    }
}

fn now_s(host: &Host) -> i64 {
    host.clock.wall_us() / 1_000_000
}

/// Looks at the files now and then, until dropped.
pub(super) struct TlsFiles {
    is_stopping: Arc<AtomicBool>,
    task: Arc<dyn TaskHandle>,
}

impl TlsFiles {
    /// Starts to look at the files.
    pub fn watch(host: &Host, tls: &Arc<ServerTls>, log: &Arc<Log>) -> TlsFiles {
        let is_stopping = Arc::<AtomicBool>::default();
        let watcher = Watcher {
            host: host.clone(),
            tls: Arc::clone(tls),
            log: Arc::clone(log),
            is_stopping: Arc::clone(&is_stopping),
            has_begun: false,
        };
        TlsFiles { is_stopping, task: host.tasks.start("tls-files", Box::new(watcher)) }
    }
}

impl Drop for TlsFiles {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Release);
        self.task.wake();
        self.task.join();
    }
}

struct Watcher {
    host: Host,
    tls: Arc<ServerTls>,
    log: Arc<Log>,
    is_stopping: Arc<AtomicBool>,
    has_begun: bool,
}

impl Worker for Watcher {
    fn step(&mut self) -> Next {
        if self.is_stopping.load(Ordering::Acquire) {
            return Next::Done;
        }
        if self.has_begun {
            reload_tls(&self.host, &self.tls, &self.log, false);
        }
        self.has_begun = true;
        Next::WaitAtMost(LOOK_NS)
    }
}

/// Reads the files again if they have changed, or whenever `force` is set. New connections use what is there now; with an
/// error, which is logged and returned, they go on with what was there before.
pub(super) fn reload_tls(host: &Host, tls: &ServerTls, log: &Log, force: bool) -> Option<String> {
    match tls.reload(now_s(host), force) {
        Ok(Reloaded::Unchanged) => None,
        Ok(Reloaded::Replaced) => {
            let text = format!("keys and certificates read again; valid until {}", tls.valid_until());
            log.write(Level::Info, &Entry::new("tls", text));
            log_notices(tls, log);
            None
        }
        Err(error) => {
            let text = format!("the former keys and certificates stay in use: {error}");
            log.write_rate_limited(Level::Error, "tls", Entry::new("tls", text.clone()));
            Some(text)
        }
    }
}
