//! The configuration of a server: settings and defaults, in the form that the parts of the server need.

use helenus_cql::guardrails::Guardrails;
use helenus_cql::{
    AccessOptions, Authenticator, Authorizer, BatchLimits, CertificateValidator, CidrAuthorizer,
    NetworkAuthorizer,
};
use helenus_engine::KeptLimits;
use helenus_engine::changes::{RowImages, RowImagesError};
use helenus_host::account::fixed_share;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::encryption::of_flags;
use super::guardrails::guardrails;
use super::settings::{ConfigError, Settings};
use super::value::Value;
use crate::address::Address;
use crate::audit::AuditOptions;
use crate::connection_budget::{ConnectionBudget, DescriptorPlan};
use crate::http::HttpLimits;
use crate::log::Level;
use crate::native::Limits;
use crate::policy::{CommitFailurePolicy, DiskFailurePolicy};
use crate::rpc::RpcLimits;
use helenus_tls::{ClientCertificates, EncryptionOptions, Policy};
use helenus_wire::thrift;

/// Where the data is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In memory only.
    Memory,
    /// In a directory.
    Directory(PathBuf),
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncChoice {
    /// Once the operating system has it; the log is synced at this interval.
    Periodic(Duration),
    /// Once it is synced; each write has its own sync.
    Batch,
    /// Once it is synced, together with all writes that wait.
    Group,
}

impl SyncChoice {
    /// The name, as in the option.
    pub fn name(self) -> &'static str {
        match self {
            SyncChoice::Periodic(_) => "periodic",
            SyncChoice::Batch => "batch",
            SyncChoice::Group => "group",
        }
    }

    /// The guarantee of an acknowledgement.
    pub fn promise(self) -> String {
        match self {
            SyncChoice::Periodic(period) => format!(
                "an acknowledged write survives the death of the server; a power failure may lose the last {period:?}"
            ),
            SyncChoice::Batch | SyncChoice::Group => {
                "an acknowledged write is synced to the disk and survives a power failure".to_owned()
            }
        }
    }
}

/// How long requests may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A read of one partition.
    pub read: Duration,
    /// A range read.
    pub range: Duration,
}

/// The form of log lines, and of the messages at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogForm {
    /// Text for people.
    Text,
    /// One JSON object a line.
    Json,
    /// The lines of Cassandra's default log pattern, with its two messages that tools wait for.
    Cassandra,
}

/// What is logged, and in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// The least severe level that is logged; `None` logs nothing.
    pub level: Option<Level>,
    /// The form of lines.
    pub form: LogForm,
    /// Whether values in statements are shown.
    pub shows_values: bool,
    /// The time from which a statement is logged as slow; `None` logs none.
    pub slow: Option<Duration>,
}

/// The whole configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where the data is stored.
    pub storage: Storage,
    /// Address of the native protocol.
    pub listen: SocketAddr,
    /// Another address of the native protocol, for TLS, while `listen` is in the clear.
    pub listen_encrypted: Option<SocketAddr>,
    /// The address of `native_shard_aware_transport_port`; `None`: there is none.
    pub listen_shard_aware: Option<SocketAddr>,
    /// How clients' connections are encrypted.
    pub encryption: EncryptionOptions,
    /// Address of the old RPC interface; `None` if it is not served.
    pub rpc: Option<SocketAddr>,
    /// Limits of the RPC server.
    pub rpc_limits: RpcLimits,
    /// Address of the HTTP port; `None` if it is not served.
    pub http: Option<SocketAddr>,
    /// Whether the HTTP port uses TLS; `None`: it does not.
    pub http_tls: Option<Policy>,
    /// Limits of the HTTP server.
    pub http_limits: HttpLimits,
    /// The audit log.
    pub audit: AuditOptions,
    /// What is logged.
    pub log: LogConfig,
    /// What to do when the disk fails.
    pub disk_failure: DiskFailurePolicy,
    /// What to do when the commit log fails.
    pub commit_failure: CommitFailurePolicy,
    /// The address that clients are told to connect to; `None`: the one they connected to.
    pub broadcast_address: Option<IpAddr>,
    /// When a write is acknowledged.
    pub sync: SyncChoice,
    /// Whether to drop damaged ends of the log instead of refusing to start.
    pub skip_damaged_log: bool,
    /// Size of the log's segments, bytes.
    pub segment_bytes: u32,
    /// Largest mutation, bytes.
    pub mutation_bytes_max: usize,
    /// Memory for everything, bytes.
    pub memory_limit: u64,
    /// Most bytes of an answer to a client that does not page. The answers that all disk threads build at once fit into
    /// `memory_limit`.
    pub answer_bytes_max: usize,
    /// Memory for memtables, bytes.
    pub memtable_bytes: usize,
    /// Memory for the block cache, bytes.
    pub cache_bytes: u64,
    /// The limit on what compactions read, bytes a second; 0 for none.
    pub compaction_bytes_per_s: u64,
    /// How much of the log is kept for consumers of changes.
    pub kept_log: KeptLimits,
    /// Watched tables whose changes are recorded with the row before.
    pub row_images: RowImages,
    /// The most compactions at a time.
    pub compactors: usize,
    /// The least time that tombstones are kept.
    pub purge_grace: Duration,
    /// Whether `gc_grace_seconds` is used instead.
    pub obeys_gc_grace: bool,
    /// Memory for prepared statements, bytes.
    pub statements_bytes: u64,
    /// Name of the cluster.
    pub cluster_name: String,
    /// Name of the datacenter.
    pub datacenter: String,
    /// Name of the rack.
    pub rack: String,
    /// How long requests may take.
    pub timeouts: Timeouts,
    /// Logins and permissions.
    pub access: AccessOptions,
    /// The file with the password of `password_role`, if one is given.
    pub password_file: Option<PathBuf>,
    /// The role whose password that is.
    pub password_role: String,
    /// Whether to serve addresses beyond this machine without a login.
    pub insecure_no_login: bool,
    /// Limits of batches.
    pub batches: BatchLimits,
    /// Whether columns may be masked.
    pub masks_columns: bool,
    /// Whether tables may lose COMPACT STORAGE.
    pub drops_compact_storage: bool,
    /// Tombstones in a read, from which on the client is warned.
    pub tombstones_warn: u64,
    /// Tombstones in a read, from which on it fails.
    pub tombstones_fail: u64,
    /// Limits on what clients may do.
    pub guardrails: Guardrails,
    /// Whether ordinary users are warned of time windows without TTL.
    pub warns_of_zero_ttl: bool,
    /// Limits of the native protocol's server.
    pub limits: Limits,
}

const MEMORY_LIMIT_MAX: u64 = 4 << 30;
/// The least and greatest `answer_bytes_max`: the largest value fits into the least, and the greatest is the protocol's
/// largest frame.
const ANSWER_BYTES: (u64, u64) = (32 << 20, 256 << 20);
/// Most memory for prepared statements; with little memory, a sixteenth of the limit.
const STATEMENTS_BYTES_MAX: u64 = 32 << 20;
const SEGMENT_BYTES: u64 = 32 << 20;

impl ServerConfig {
    /// Fills in defaults.
    ///
    /// # Errors
    /// The settings contradict each other, or a host name has no address.
    pub fn new(settings: &Settings, memory_bytes: u64, cores: usize) -> Result<ServerConfig, ConfigError> {
        let read = Read { settings };
        let memory_limit =
            read.size("memory_limit").unwrap_or_else(|| (memory_bytes / 4).min(MEMORY_LIMIT_MAX));
        let segment_bytes = read.size("commitlog_segment_size").unwrap_or(SEGMENT_BYTES);
        let mutation = read.size("max_mutation_size").unwrap_or(segment_bytes / 2);
        if mutation > segment_bytes / 2 {
            return Err(ConfigError::Conflict {
                first: "max_mutation_size",
                second: "commitlog_segment_size",
                reason: "a segment must be at least twice as large as the largest mutation",
            });
        }
        let period = read.duration("commitlog_sync_period").unwrap_or(Duration::from_secs(10));
        let sync = match read.text("commitlog_sync") {
            Some("periodic") => SyncChoice::Periodic(period),
            Some("batch") => SyncChoice::Batch,
            _ => SyncChoice::Group,
        };
        let limits = read.limits(memory_limit, cores)?;
        let count = |key, default| match settings.get(key) {
            Some(Value::Integer(count)) => u64::try_from(*count).unwrap_or(u64::MAX),
            _ => default,
        };
        let seconds = |key, default| read.duration(key).unwrap_or(Duration::from_secs(default));
        let access = read.access()?;
        let http = read.listener("http", 9180)?;
        Ok(ServerConfig {
            storage: read.storage()?,
            listen: read.listen()?,
            listen_encrypted: read.listen_encrypted()?,
            listen_shard_aware: read.listen_shard_aware()?,
            encryption: read.encryption()?,
            rpc: read.rpc()?,
            rpc_limits: read.rpc_limits(&limits),
            http,
            http_tls: match read.text("http_tls") {
                Some("on") => Some(Policy::Required),
                Some("optional") => Some(Policy::Optional),
                _ => None,
            },
            http_limits: read.http_limits(http, &access),
            audit: match settings.get("audit_logging_options") {
                Some(Value::Audit(options)) => (**options).clone(),
                _ => AuditOptions::default(),
            },
            log: read.log(),
            disk_failure: DiskFailurePolicy::of_name(read.text("disk_failure_policy").unwrap_or_default()),
            commit_failure: CommitFailurePolicy::of_name(
                read.text("commit_failure_policy").unwrap_or_default(),
            ),
            broadcast_address: read.address("broadcast_rpc_address")?,
            sync,
            skip_damaged_log: read.boolean("skip_damaged_log").unwrap_or(false),
            segment_bytes: u32::try_from(segment_bytes).unwrap_or(u32::MAX),
            mutation_bytes_max: saturating(mutation),
            memory_limit,
            answer_bytes_max: saturating((memory_limit / 32).clamp(ANSWER_BYTES.0, ANSWER_BYTES.1)),
            memtable_bytes: saturating(read.size("memtable_heap_space").unwrap_or(fixed_share(memory_limit))),
            cache_bytes: read.size("file_cache_size").unwrap_or(fixed_share(memory_limit)),
            kept_log: KeptLimits {
                bytes: read.size("cdc_total_space").unwrap_or(KeptLimits::default().bytes),
                age_s: seconds("cdc_retention", KeptLimits::default().age_s).as_secs(),
            },
            row_images: read.row_images()?,
            compaction_bytes_per_s: read.size("compaction_throughput").unwrap_or(64 << 20),
            compactors: read.count("concurrent_compactors").map_or((cores / 2).clamp(1, 8), saturating),
            purge_grace: seconds("tombstone_purge_grace", 600),
            obeys_gc_grace: read.text("gc_grace") == Some("obey"),
            statements_bytes: read
                .size("prepared_statements_cache_size")
                .unwrap_or((memory_limit / 16).min(STATEMENTS_BYTES_MAX)),
            cluster_name: read.text("cluster_name").unwrap_or("Test Cluster").to_owned(),
            datacenter: read.text("datacenter").unwrap_or("datacenter1").to_owned(),
            rack: read.text("rack").unwrap_or("rack1").to_owned(),
            timeouts: Timeouts {
                read: seconds("read_request_timeout", 5),
                range: seconds("range_request_timeout", 10),
            },
            access,
            password_file: read.text("password_file").map(PathBuf::from),
            password_role: read.text("password_role").unwrap_or("cassandra").to_owned(),
            insecure_no_login: read.boolean("insecure_no_login").unwrap_or(false),
            batches: read.batches(),
            masks_columns: read.boolean("dynamic_data_masking_enabled").unwrap_or(false),
            drops_compact_storage: read.boolean("drop_compact_storage_enabled").unwrap_or(false),
            tombstones_warn: count("tombstone_warn_threshold", 1000),
            tombstones_fail: count("tombstone_failure_threshold", 100_000),
            guardrails: guardrails(settings),
            warns_of_zero_ttl: settings.get("zero_ttl_on_twcs_warned") != Some(&Value::Boolean(false)),
            limits,
        })
    }
}

impl ServerConfig {
    /// Limits connections by the file descriptors that the process may have, for all servers together.
    pub fn share_descriptors(&mut self, plan: &DescriptorPlan) {
        let budget = ConnectionBudget::new(plan.connections, plan.per_address);
        self.limits.budget = Arc::clone(&budget);
        self.rpc_limits.budget = budget;
        self.http_limits.connections_max = plan.http;
    }
}

fn saturating(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Typed access to settings.
struct Read<'a> {
    settings: &'a Settings,
}

impl<'a> Read<'a> {
    fn size(&self, key: &str) -> Option<u64> {
        match self.settings.get(key)? {
            Value::Size(bytes) => Some(*bytes),
            _ => None,
        }
    }

    fn duration(&self, key: &str) -> Option<Duration> {
        match self.settings.get(key)? {
            Value::Duration(time) => Some(*time),
            _ => None,
        }
    }

    fn integer(&self, key: &str) -> Option<i64> {
        match self.settings.get(key)? {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// A number; `None` if it is negative.
    fn count(&self, key: &str) -> Option<u64> {
        self.integer(key).and_then(|number| u64::try_from(number).ok())
    }

    fn boolean(&self, key: &str) -> Option<bool> {
        match self.settings.get(key)? {
            Value::Boolean(yes) => Some(*yes),
            _ => None,
        }
    }

    fn row_images(&self) -> Result<RowImages, ConfigError> {
        let text = self.text("cdc_row_images").unwrap_or_default();
        text.parse().map_err(|error: RowImagesError| ConfigError::WrongValue {
            name: "cdc_row_images".to_owned(),
            value: error.name,
            allowed: "keyspaces, or tables as in shop.orders, with commas between them".to_owned(),
        })
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        match self.settings.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn log(&self) -> LogConfig {
        let slow = self.duration("slow_query_log_timeout").unwrap_or(Duration::from_millis(500));
        LogConfig {
            level: Level::of_name(self.text("log_level").unwrap_or("info")),
            form: match self.text("log_format") {
                Some("json") => LogForm::Json,
                Some("cassandra") => LogForm::Cassandra,
                _ => LogForm::Text,
            },
            shows_values: self.boolean("log_values").unwrap_or(false),
            slow: (!slow.is_zero()).then_some(slow),
        }
    }

    fn access(&self) -> Result<AccessOptions, ConfigError> {
        let default = AccessOptions::default();
        let has_password = self.text("password_file").is_some();
        let authenticator = match self.authenticator()? {
            Some(Authenticator::MutualTls(_)) if has_password => {
                return Err(ConfigError::Conflict {
                    first: "password_file",
                    second: "authenticator",
                    reason: "MutualTlsAuthenticator takes no passwords; give MutualTlsWithPasswordFallbackAuthenticator",
                });
            }
            Some(Authenticator::AllowAll) if has_password => {
                return Err(ConfigError::Conflict {
                    first: "password_file",
                    second: "authenticator",
                    reason: "AllowAllAuthenticator asks for no password; give PasswordAuthenticator",
                });
            }
            Some(given) => given,
            None if has_password => Authenticator::Password,
            None => default.authenticator,
        };
        let authorizer = self.text("authorizer").and_then(Authorizer::of_name).unwrap_or_default();
        if authorizer == Authorizer::Cassandra && authenticator == Authenticator::AllowAll {
            return Err(ConfigError::Conflict {
                first: "authorizer",
                second: "authenticator",
                reason: "CassandraAuthorizer needs to know who asks; give authenticator: PasswordAuthenticator",
            });
        }
        let network =
            self.text("network_authorizer").and_then(NetworkAuthorizer::of_name).unwrap_or_default();
        let cidr = match (self.text("cidr_authorizer"), self.text("cidr_authorizer_mode")) {
            (Some("CassandraCIDRAuthorizer"), Some("ENFORCE")) => CidrAuthorizer::Enforce,
            (Some("CassandraCIDRAuthorizer"), _) => CidrAuthorizer::Monitor,
            _ => CidrAuthorizer::AllowAll,
        };
        for (first, is_on) in [
            ("network_authorizer", network != NetworkAuthorizer::AllowAll),
            ("cidr_authorizer", cidr != CidrAuthorizer::AllowAll),
        ] {
            if is_on && authenticator == Authenticator::AllowAll {
                return Err(ConfigError::Conflict {
                    first,
                    second: "authenticator",
                    reason: "it needs to know who asks; give authenticator: PasswordAuthenticator",
                });
            }
        }
        Ok(AccessOptions {
            authenticator,
            authorizer,
            network,
            cidr,
            checks_cidrs_of_superusers: self.boolean("cidr_checks_for_superusers").unwrap_or(false),
            cidr_groups_interval: self
                .count("cidr_groups_cache_refresh_interval")
                .map_or(default.cidr_groups_interval, Duration::from_mins),
            roles_validity: self.duration("roles_validity").unwrap_or(default.roles_validity),
            permissions_validity: self
                .duration("permissions_validity")
                .unwrap_or(default.permissions_validity),
            credentials_validity: self
                .duration("credentials_validity")
                .unwrap_or(default.credentials_validity),
            password_cost: self
                .text("password_cost")
                .and_then(|cost| cost.parse().ok())
                .unwrap_or(default.password_cost),
            allows_default_password: self.boolean("allow_default_password").unwrap_or(false),
            ..default
        })
    }

    /// The authenticator that is named, and that TLS can serve.
    fn authenticator(&self) -> Result<Option<Authenticator>, ConfigError> {
        let Some(name) = self.text("authenticator") else { return Ok(None) };
        let validator = self.text("certificate_validator").and_then(CertificateValidator::of_name);
        let Some(found) = Authenticator::of_name(name, validator) else {
            return Err(ConfigError::Missing {
                key: "authenticator.parameters.validator_class_name",
                reason: "MutualTlsAuthenticator needs it; give SpiffeCertificateValidator or CommonNameCertificateValidator, or the \
                         flag --certificate-validator",
            });
        };
        if found.validator().is_some() {
            let options = self.encryption()?;
            let is_asked = match options.client_certificates {
                ClientCertificates::Required => true,
                ClientCertificates::Optional => found.takes_passwords(),
                ClientCertificates::NotAsked => false,
            };
            if !options.enabled || !is_asked {
                return Err(ConfigError::Conflict {
                    first: "authenticator",
                    second: "client_encryption_options",
                    reason: "MutualTlsAuthenticator requires client_encryption_options.enabled to be true & \
                             client_encryption_options.require_client_auth to be true",
                });
            }
        }
        Ok(Some(found))
    }

    fn batches(&self) -> BatchLimits {
        let default = BatchLimits::default();
        BatchLimits {
            bytes_warn: self.size("batch_size_warn_threshold").unwrap_or(default.bytes_warn),
            bytes_fail: self.size("batch_size_fail_threshold").unwrap_or(default.bytes_fail),
            unlogged_partitions_warn: self
                .count("unlogged_batch_across_partitions_warn_threshold")
                .unwrap_or(default.unlogged_partitions_warn),
        }
    }

    fn storage(&self) -> Result<Storage, ConfigError> {
        let memory = self.boolean("memory").unwrap_or(false);
        if memory && self.settings.has_flag("data") {
            return Err(ConfigError::Conflict {
                first: "--memory",
                second: "--data",
                reason: "nothing would be kept in the directory",
            });
        }
        if memory {
            return Ok(Storage::Memory);
        }
        // The command line names the directory itself; Cassandra's key names the folder `data` in it.
        let of_files = self.text("data_file_directories").and_then(|data| Path::new(data).parent());
        let directory = match self.text("data") {
            Some(directory) => PathBuf::from(directory),
            None => of_files.map_or_else(|| PathBuf::from("./data"), Path::to_owned),
        };
        if let Some(log) = self.text("commitlog_directory")
            && !self.settings.has_flag("data")
            && Path::new(log).parent() != Some(&directory)
        {
            return Err(ConfigError::Conflict {
                first: "commitlog_directory",
                second: "data_file_directories",
                reason: "the commit log is kept beside the folder data, in DIR/commitlog",
            });
        }
        Ok(Storage::Directory(directory))
    }

    fn listen(&self) -> Result<SocketAddr, ConfigError> {
        if let Some(listen) = self.listener("listen", 9042)? {
            return Ok(listen);
        }
        let address = self.address("rpc_address")?.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let port = self.integer("native_transport_port").and_then(|port| u16::try_from(port).ok());
        Ok(SocketAddr::new(address, port.unwrap_or(9042)))
    }

    /// The address of `native_transport_port_ssl`, if it is another one than that of `native_transport_port`.
    fn listen_encrypted(&self) -> Result<Option<SocketAddr>, ConfigError> {
        let listen = self.listen()?;
        let port = self.integer("native_transport_port_ssl").and_then(|port| u16::try_from(port).ok());
        let port = port.filter(|port| *port != listen.port());
        Ok(port.map(|port| SocketAddr::new(listen.ip(), port)))
    }

    fn listen_shard_aware(&self) -> Result<Option<SocketAddr>, ConfigError> {
        let port = self.integer("native_shard_aware_transport_port");
        let port = port.and_then(|port| u16::try_from(port).ok());
        let Some(port) = port else { return Ok(None) };
        Ok(Some(SocketAddr::new(self.listen()?.ip(), port)))
    }

    fn encryption(&self) -> Result<EncryptionOptions, ConfigError> {
        let mut options = self.encryption_without_lists()?;
        options.revocation_lists = self.text("tls_client_crl").map(str::to_owned);
        if options.revocation_lists.is_some() && options.client_certificates == ClientCertificates::NotAsked {
            let reason = "clients are not asked for certificates that could be revoked; give tls_client_ca, or require_client_auth \
                          in client_encryption_options";
            return Err(ConfigError::Conflict { first: "tls_client_crl", second: "tls_client_ca", reason });
        }
        Ok(options)
    }

    fn encryption_without_lists(&self) -> Result<EncryptionOptions, ConfigError> {
        let in_file = match self.settings.get("client_encryption_options") {
            Some(Value::Encryption(options)) => Some(&**options),
            _ => None,
        };
        let is_optional = self.boolean("tls_optional").unwrap_or(false);
        let Some(cert) = self.text("tls_cert") else {
            let companion = ["tls_key", "tls_client_ca"].into_iter().find(|key| self.text(key).is_some());
            if let Some(first) = companion.or(is_optional.then_some("tls_optional")) {
                let reason = "without a certificate there is no TLS; give tls_cert";
                return Err(ConfigError::Conflict { first, second: "tls_cert", reason });
            }
            let none = || EncryptionOptions { optional: Some(false), ..EncryptionOptions::default() };
            return Ok(in_file.cloned().unwrap_or_else(none));
        };
        if in_file.is_some_and(|options| options.enabled) {
            let reason = "both turn TLS on; give one of them";
            return Err(ConfigError::Conflict {
                first: "tls_cert",
                second: "client_encryption_options",
                reason,
            });
        }
        Ok(of_flags(cert, self.text("tls_key"), self.text("tls_client_ca"), is_optional))
    }

    fn rpc(&self) -> Result<Option<SocketAddr>, ConfigError> {
        if let Some(listen) = self.listener("rpc", 9160)? {
            return Ok(Some(listen));
        }
        if self.text("rpc").is_some() || self.boolean("start_rpc") != Some(true) {
            return Ok(None);
        }
        let address = self.address("rpc_address")?.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let port = self.integer("rpc_port").and_then(|port| u16::try_from(port).ok());
        Ok(Some(SocketAddr::new(address, port.unwrap_or(9160))))
    }

    fn rpc_limits(&self, limits: &Limits) -> RpcLimits {
        let default = thrift::Limits::default();
        RpcLimits {
            threads: limits.event_loops,
            messages: thrift::Limits {
                frame: self.size("thrift_framed_transport_size").unwrap_or(default.frame),
                message: self.size("thrift_max_message_length").unwrap_or(default.message),
            },
            in_flight_bytes_max: (limits.in_flight_bytes_max, limits.in_flight_bytes_max_per_address),
            disk_threads_max: limits.disk_threads_max,
            write_timeout: limits.write_timeout,
            handshake_timeout: self.duration("rpc_handshake_timeout").unwrap_or(Duration::from_secs(60)),
            budget: Arc::clone(&limits.budget),
            message_grace: limits.frame_grace,
            reader_grace: limits.reader_grace,
            keeps_alive: limits.keeps_alive,
            busy_poll: limits.busy_poll,
            audit: None,
            logins: None,
            tls: None,
        }
    }

    fn http_limits(&self, address: Option<SocketAddr>, access: &AccessOptions) -> HttpLimits {
        let is_beyond = address.is_some_and(|address| !address.ip().to_canonical().is_loopback());
        let takes_passwords = access.authenticator.takes_passwords();
        let is_open = self.boolean("insecure_no_login").unwrap_or(false);
        let default = HttpLimits::default();
        let names = self.text("http_hosts").unwrap_or_default().split(',').map(str::trim);
        HttpLimits {
            request_timeout: self.duration("http_request_timeout").unwrap_or(default.request_timeout),
            hosts: names.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            asks_for_login: is_beyond && takes_passwords && !is_open,
            system_tables: self.boolean("http_system_tables").unwrap_or(false),
            ..default
        }
    }

    fn address(&self, key: &'static str) -> Result<Option<IpAddr>, ConfigError> {
        let Some(host) = self.text(key) else { return Ok(None) };
        let none = |source| ConfigError::NoAddress { key, host: host.to_owned(), source };
        let invalid = |error| none(std::io::Error::new(std::io::ErrorKind::InvalidInput, error));
        let found = Address::of_host(host).map_err(invalid)?.resolve(0).map_err(none)?;
        Ok(Some(found.ip()))
    }

    /// The address of a listener; `None` if it was not given, or `off`.
    fn listener(&self, key: &'static str, port: u16) -> Result<Option<SocketAddr>, ConfigError> {
        let text = self.text(key).filter(|text| !["off", "false"].contains(text));
        let Some(address) = text.and_then(|text| text.parse::<Address>().ok()) else { return Ok(None) };
        let none = |source| ConfigError::NoAddress { key, host: address.host().to_owned(), source };
        address.resolve(port).map(Some).map_err(none)
    }

    fn limits(&self, memory_limit: u64, cores: usize) -> Result<Limits, ConfigError> {
        let doors = self.count("available_processors").filter(|count| *count > 0);
        let mut limits = Limits::for_memory(memory_limit, doors.map_or(cores, saturating));
        if let Some(bytes) = self.size("native_transport_max_frame_size") {
            limits.frame_bytes_max = bytes;
        }
        limits.message_bytes_max =
            self.size("native_transport_max_message_size").unwrap_or(limits.frame_bytes_max);
        let in_flight = self.size("native_transport_max_request_data_in_flight");
        let per_address = self.size("native_transport_max_request_data_in_flight_per_ip");
        let largest = limits.message_bytes_max.max(limits.frame_bytes_max);
        limits.in_flight_bytes_max = in_flight.unwrap_or(limits.in_flight_bytes_max.max(largest));
        limits.in_flight_bytes_max_per_address = per_address.unwrap_or_else(|| {
            Limits::of_one_address(
                limits.in_flight_bytes_max_per_address.max(largest),
                limits.in_flight_bytes_max,
            )
        });
        for (second, bytes) in [
            ("native_transport_max_request_data_in_flight", in_flight),
            ("native_transport_max_request_data_in_flight_per_ip", per_address),
        ] {
            if bytes.is_some_and(|bytes| bytes < limits.message_bytes_max) {
                let first = "native_transport_max_message_size";
                return Err(ConfigError::Conflict { first, second, reason: "a message must fit the limit" });
            }
        }
        limits.connections_max = self.count("native_transport_max_concurrent_connections");
        limits.connections_max_per_address =
            self.count("native_transport_max_concurrent_connections_per_ip").filter(|max| *max > 0);
        limits.handshake_timeout = self.duration("handshake_timeout").unwrap_or(limits.handshake_timeout);
        limits.frame_grace = self.duration("request_arrival_timeout").unwrap_or(limits.frame_grace);
        limits.idle_timeout =
            self.duration("native_transport_idle_timeout").filter(|timeout| !timeout.is_zero());
        if cores > 1 {
            limits.busy_poll = Duration::from_micros(self.count("busy_poll_us").unwrap_or(100));
        }
        limits.throws_on_overload = self.boolean("native_transport_throw_on_overload").unwrap_or(false);
        limits.keeps_alive = self.boolean("rpc_keepalive").unwrap_or(true);
        limits.write_timeout = self.duration("write_request_timeout").unwrap_or(limits.write_timeout);
        limits.login_threads_max =
            self.count("native_transport_max_auth_threads").map_or(limits.login_threads_max, saturating);
        limits.disk_threads_max = self.count("concurrent_reads").map_or(limits.disk_threads_max, saturating);
        Ok(limits)
    }
}
