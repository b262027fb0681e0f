//! The table of options: the only place that defines an option's names, kind, default and meaning.
//!
//! The command line, the YAML reader, `--help` and the page of options are all made from it. Names in YAML are
//! Cassandra's where Cassandra has the option.

use super::value::Kind;
use crate::policy::{CommitFailurePolicy, DiskFailurePolicy};
use helenus_cql::{Authenticator, Authorizer, CertificateValidator, NetworkAuthorizer};

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Its key in the configuration file, and its name everywhere in the code.
    pub key: &'static str,
    /// Its flag on the command line, without `--`; `None` if only a file can set it.
    pub flag: Option<&'static str>,
    /// Its older names in Cassandra, each with the unit of a number without one; empty if the value is the same.
    pub old: &'static [(&'static str, &'static str)],
    /// The kind of its values.
    pub kind: Kind,
    /// Its default, as shown by help.
    pub default: &'static str,
    /// Its effect, in one or two sentences.
    pub help: &'static str,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const ANY_SIZE: Kind = Kind::Size { min: 0, max: u64::MAX };
/// Limit of a guardrail; -1 and 0 for none.
const COUNT: Kind = Kind::Integer { min: -1, max: i64::MAX };
/// A guardrail's limit in percent; -1 and 0 for none.
const PERCENT: Kind = Kind::Integer { min: -1, max: 100 };
const TIMEOUT: Kind = Kind::Duration { min_ms: 10 };

/// Costs of hashes of passwords that may be chosen (`helenus_cql::PASSWORD_COSTS`).
const PASSWORD_COSTS: &[&str] = &["10", "11", "12", "13", "14"];

macro_rules! options {
    ($($key:literal, $flag:expr, $kind:expr, $default:literal, [$($old:literal $unit:literal),*], $help:literal;)*) => {
        /// All options, in the order of help and docs.
        pub const OPTIONS: &[OptionSpec] = &[$(OptionSpec {
            key: $key,
            flag: $flag,
            old: &[$(($old, $unit)),*],
            kind: $kind,
            default: $default,
            help: $help,
        },)*];
    };
}

options! {
    "data", Some("data"), Kind::Path, "./data", [],
        "Directory of the database: DIR/data and DIR/commitlog. Made if it is not there.";
    "memory", Some("memory"), Kind::Boolean, "false", [],
        "Keep everything in memory and nothing on disk; the data ends with the server.";
    "listen", Some("listen"), Kind::Listen { port: 9042 }, "127.0.0.1:9042", [],
        "Address for clients. :PORT listens on this machine alone, 0.0.0.0 on all its addresses. Port 0 picks a free one, which is \
         printed.";
    "rpc", Some("rpc"), Kind::Listen { port: 9160 }, "off", [],
        "Address for clients of the old RPC interface (Thrift), such as localhost:9160. Off unless given; in a file, start_rpc turns \
         it on.";
    "http", Some("http"), Kind::Listen { port: 9180 }, "off", [],
        "Address for HTTP: /metrics for Prometheus, /health and /ready, such as localhost:9180. Off unless given. \
         Beyond this machine /metrics asks for the name and password of a role.";
    "authenticator", Some("authenticator"), Kind::Class(Authenticator::NAMES), "AllowAllAuthenticator", [],
        "Whether clients have to log in. PasswordAuthenticator: by name and password; the first start makes the superuser cassandra. \
         MutualTlsAuthenticator: by the certificate that they show to TLS. MutualTlsWithPasswordFallbackAuthenticator: by either.";
    "certificate_validator", Some("certificate-validator"), Kind::Class(CertificateValidator::NAMES), "none", [],
        "Of MutualTlsAuthenticator and MutualTlsWithPasswordFallbackAuthenticator: what reads the identity of a client from its \
         certificate. In a file it is validator_class_name in the parameters of authenticator.";
    "authorizer", Some("authorizer"), Kind::Class(Authorizer::NAMES), "AllowAllAuthorizer", [],
        "What a role may do. AllowAllAuthorizer: everything but what asks for a superuser. CassandraAuthorizer: what was granted to \
         it; needs logins.";
    "network_authorizer", None, Kind::Class(NetworkAuthorizer::NAMES), "AllowAllNetworkAuthorizer", [],
        "CassandraNetworkAuthorizer: ACCESS TO DATACENTERS of a role counts; this server is in the one of datacenter. Needs logins.";
    "cidr_authorizer", None, Kind::Class(&["AllowAllCIDRAuthorizer", "CassandraCIDRAuthorizer"]), "AllowAllCIDRAuthorizer", [],
        "CassandraCIDRAuthorizer: ACCESS FROM CIDRS of a role counts. Needs logins. The following three may be its parameters, too.";
    "cidr_authorizer_mode", None, Kind::Choice(&["MONITOR", "ENFORCE"]), "MONITOR", [],
        "MONITOR: access from other networks is allowed, and the log says so. ENFORCE: it is refused.";
    "cidr_checks_for_superusers", None, Kind::Boolean, "false", [],
        "Whether superusers are limited to networks too.";
    "cidr_groups_cache_refresh_interval", None, Kind::Integer { min: 1, max: 525_600 }, "5", [],
        "How many minutes a change of system_auth.cidr_groups may go unnoticed; helenus admin reloadcidrgroupscache takes it over at once.";
    "password_file", Some("password-file"), Kind::Path, "none", [],
        "File whose first line is the password with which the role cassandra is made, or which it gets in place of the default one. A \
         password that was changed since is kept, with a warning. Turns PasswordAuthenticator on.";
    "password_role", None, Kind::Text, "cassandra", [],
        "The role whose password password_file has. In a new database it is made, as a superuser, and then there is no role cassandra. One that is there is not raised, and none is made where a superuser can log in.";
    "password_cost", None, Kind::Choice(PASSWORD_COSTS), "10", [],
        "The cost of new hashes of passwords (bcrypt). Each step doubles the time of a login's check: 10 takes some 60 ms of a core, 14 a second. \
         A login whose stored hash has another cost stores it again with this one.";
    "allow_default_password", Some("allow-default-password"), Kind::Boolean, "false", [],
        "Accept the default password of the role cassandra from other machines too, as Cassandra does. For tests.";
    "insecure_no_login", Some("insecure-no-login"), Kind::Boolean, "false", [],
        "Serve whoever reaches an address beyond this machine without a login. Without it such a start is refused.";
    "roles_validity", None, Kind::Duration { min_ms: 0 }, "2s", ["roles_validity_in_ms" "ms"],
        "How long a change of system_auth.roles by other statements than those about roles may go unnoticed; 0ms for no cache.";
    "permissions_validity", None, Kind::Duration { min_ms: 0 }, "2s", ["permissions_validity_in_ms" "ms"],
        "The same for system_auth.role_permissions.";
    "credentials_validity", None, Kind::Duration { min_ms: 0 }, "2s", ["credentials_validity_in_ms" "ms"],
        "The same for hashes of passwords.";
    "native_transport_max_auth_threads", None, Kind::Integer { min: 1, max: 1024 }, "4", [],
        "Threads that check logins.";
    "audit_logging_options", None, Kind::Audit, "{enabled: false}", [],
        "The audit log: who logged in, which statements were run, and what was refused. enabled, logger (FileAuditLogger), audit_logs_dir, \
         and what is included and excluded.";
    "log_level", Some("log-level"), Kind::Choice(&["error", "warn", "info", "debug", "off"]), "info", [],
        "How much is logged, on standard error. debug: errors that clients made, flushes of system tables too.";
    "log_format", Some("log-format"), Kind::Choice(&["text", "json", "cassandra"]), "text", [],
        "text: a line for people. json: an object a line, also for what the start prints on standard output. \
         cassandra: the lines of Cassandra's log, with the two that tools wait for: Starting listening for CQL clients, Startup complete.";
    "log_values", Some("log-values"), Kind::Boolean, "false", [],
        "Show values in the statements that are logged. Without it a ? stands for each.";
    "slow_query_log_timeout", Some("slow-query-log-timeout"), Kind::Duration { min_ms: 0 }, "500ms",
        ["slow_query_log_timeout_in_ms" "ms"],
        "Statements that take longer are logged with what they touched; 0ms for none.";
    "disk_failure_policy", Some("disk-failure-policy"), Kind::Choice(DiskFailurePolicy::NAMES), "ignore", [],
        "What a damaged file, or one that the system refuses to read or write, means. ignore: the statement that met it \
         fails. best_effort: clients are no longer served once the disk is full. stop: nor when the system refuses. \
         stop_paranoid: nor when a file is damaged. die: the server ends. The last three refuse to start on damaged tables.";
    "commit_failure_policy", Some("commit-failure-policy"), Kind::Choice(CommitFailurePolicy::NAMES), "stop_commit", [],
        "What a failed commit log means. stop_commit, ignore: writes are refused until a restart; reads go on, \
         but for partitions with writes that were refused by it. stop: clients are no longer served. die: the server ends.";
    "commitlog_sync", Some("sync"), Kind::Choice(&["periodic", "batch", "group"]), "group", [],
        "When a write is acknowledged. group, batch: once it is synced, so it survives a power failure; group syncs for all \
         writes that wait. periodic: once the system has it, so it survives the death of the server; synced now and then.";
    "commitlog_sync_period", None, Kind::Duration { min_ms: 1 }, "10s", ["commitlog_sync_period_in_ms" "ms"],
        "How often a periodic commit log is synced.";
    "skip_damaged_log", Some("skip-damaged-log"), Kind::Boolean, "false", [],
        "Start although a commit log is damaged, and lose the damaged record and what follows it in its segment; and go on without records that cannot be applied, which are kept in commitlog/unappliable.";
    "memory_limit", Some("memory-limit"), Kind::Size { min: 16 * MIB, max: u64::MAX },
        "a quarter of the machine's memory, at most 4GiB", [],
        "Memory for memtables, cache and requests together. An answer that is not asked for in pages may have a thirty-second of it, 32 to 256 MiB.";
    "compaction_throughput", Some("compaction-throughput"), Kind::Rate, "64MiB/s",
        ["compaction_throughput_mb_per_sec" "MiB/s"],
        "How much compactions read a second, all together; 0MiB/s for no bound.";
    "concurrent_compactors", None, Kind::Integer { min: 1, max: 64 }, "one for each two processors, at most 8", [],
        "Compactions at a time.";
    "tombstone_purge_grace", None, Kind::Duration { min_ms: 0 }, "10m", [],
        "How long what was deleted or has expired is kept before compaction may drop it: for late writes with old \
         timestamps and for clocks that jump.";
    "gc_grace", None, Kind::Choice(&["ignore", "obey"]), "ignore", [],
        "ignore: one machine needs no gc_grace_seconds, tombstone_purge_grace counts. obey: gc_grace_seconds of each table \
         counts, as on a node of a cluster; for data that is on its way to one.";
    "data_file_directories", None, Kind::DirectoryNamed("data"), "DIR/data", [],
        "Cassandra's name for DIR/data. Several directories are not built yet.";
    "commitlog_directory", None, Kind::DirectoryNamed("commitlog"), "DIR/commitlog", [],
        "Cassandra's name for DIR/commitlog; it must be there.";
    "commitlog_segment_size", None, Kind::Size { min: MIB, max: GIB }, "32MiB", ["commitlog_segment_size_in_mb" "MiB"],
        "Size of a segment of the commit log.";
    "cdc_total_space", None, Kind::Size { min: 0, max: u64::MAX }, "4GiB", ["cdc_total_space_in_mb" "MiB"],
        "How much of the log of watched tables (cdc = true) is kept for consumers of changes that have not acknowledged it. \
         Beyond it the oldest part goes, and the consumer has to begin anew; writes never wait.";
    "cdc_retention", None, Kind::Duration { min_ms: 0 }, "7d", [],
        "How long it is kept.";
    "cdc_row_images", None, Kind::Text, "none", [],
        "Watched tables whose changes show the row before and after, as 'shop.orders, app': keyspaces, or tables. Each write to them \
         reads its rows first.";
    "max_mutation_size", None, Kind::Size { min: KIB, max: GIB }, "half a segment", ["max_mutation_size_in_kb" "KiB"],
        "Largest write; larger ones are refused.";
    "memtable_heap_space", None, Kind::Size { min: MIB, max: u64::MAX }, "a quarter of memory_limit, less below 88MiB",
        ["memtable_heap_space_in_mb" "MiB"],
        "Memory for what is not flushed yet.";
    "file_cache_size", None, ANY_SIZE, "a quarter of memory_limit, less below 88MiB", ["file_cache_size_in_mb" "MiB"],
        "Memory for the cache of blocks of files; 0 keeps none. A thirty-second part of it is for row indexes of wide \
         partitions, or 4 MiB where that is more.";
    "datacenter", Some("datacenter"), Kind::Text, "datacenter1", [],
        "Name of the datacenter that clients are told: the one that drivers' load balancing is set to. Not a key of \
         Cassandra's, which has it in cassandra-rackdc.properties.";
    "rack", Some("rack"), Kind::Text, "rack1", [],
        "Name of the rack that clients are told.";
    "cluster_name", None, Kind::Text, "Test Cluster", [],
        "Name that clients are told.";
    "rpc_address", None, Kind::Host, "127.0.0.1", [],
        "Address for clients; --listen overrides it.";
    "native_transport_port", None, Kind::Integer { min: 0, max: 65535 }, "9042", [],
        "Port for clients; --listen overrides it.";
    "client_encryption_options", None, Kind::Encryption, "{enabled: false}", [],
        "TLS for clients, in Cassandra's words: enabled, optional, keystore, truststore, require_client_auth, protocols and cipher \
         suites, keys and certificates from PEM. The RPC interface uses it too.";
    "native_transport_port_ssl", None, Kind::Integer { min: 0, max: 65535 }, "native_transport_port", [],
        "Another port for TLS; then native_transport_port talks in the clear alone. One port can do both: optional: true in \
         client_encryption_options.";
    "native_shard_aware_transport_port", None, Kind::Integer { min: 0, max: 65535 }, "off", [],
        "A second port for clients, where drivers of ScyllaDB look for one; with it there is a table system.clients, too. A key of \
         ScyllaDB's, whose image answers on 19042.";
    "tls_cert", Some("tls-cert"), Kind::Path, "off", [],
        "Turns TLS on for clients: a PEM file with the server's certificate, those of its issuers, and its private key. In place of \
         client_encryption_options.";
    "tls_key", Some("tls-key"), Kind::Path, "in tls_cert", [],
        "PEM file of the private key, where tls_cert has only certificates.";
    "tls_client_ca", Some("tls-client-ca"), Kind::Path, "off", [],
        "PEM file of certificates: clients must show a certificate that one of these has signed.";
    "tls_client_crl", Some("tls-client-crl"), Kind::Path, "off", [],
        "PEM file of lists of revoked certificates, for clients' certificates: a list that is valid now of each authority. With \
         tls_client_ca, or require_client_auth in client_encryption_options.";
    "tls_optional", Some("tls-optional"), Kind::Boolean, "false", [],
        "Serve connections in the clear beside those by TLS, on the same port.";
    "start_rpc", None, Kind::Boolean, "false", [],
        "Serve the old RPC interface (Thrift) on rpc_address and rpc_port, as Cassandra 3.11 did; --rpc does so too.";
    "rpc_port", None, Kind::Integer { min: 0, max: 65535 }, "9160", [],
        "Port of the old RPC interface; --rpc overrides it.";
    "thrift_framed_transport_size", None, Kind::Size { min: KIB, max: 2 * GIB - MIB }, "15MiB",
        ["thrift_framed_transport_size_in_mb" "MiB"],
        "Largest frame of the old RPC interface.";
    "thrift_max_message_length", None, Kind::Size { min: KIB, max: 2 * GIB - MIB }, "16MiB",
        ["thrift_max_message_length_in_mb" "MiB"],
        "Largest message of the old RPC interface from clients that do not frame.";
    "broadcast_rpc_address", None, Kind::Host, "the address that is listened on", [],
        "Address that clients are told to connect to, where it is not the one listened on.";
    "native_transport_max_frame_size", None, Kind::Size { min: KIB, max: 2 * GIB - MIB }, "16MiB",
        ["native_transport_max_frame_size_in_mb" "MiB"],
        "Largest request of protocol v3 and v4.";
    "native_transport_max_message_size", None, Kind::Size { min: KIB, max: 2 * GIB - MIB },
        "native_transport_max_frame_size", [],
        "Largest request of protocol v5.";
    "native_transport_max_request_data_in_flight", None, ANY_SIZE, "a tenth of memory_limit",
        ["native_transport_max_concurrent_requests_in_bytes" "B"],
        "Bytes of all requests that are not answered yet; beyond it connections are not read.";
    "native_transport_max_request_data_in_flight_per_ip", None, ANY_SIZE, "a fortieth of memory_limit",
        ["native_transport_max_concurrent_requests_in_bytes_per_ip" "B"],
        "The same for requests from one address.";
    "native_transport_throw_on_overload", None, Kind::Boolean, "false", [],
        "Answer such requests with an error instead, as if each client had asked for it.";
    "native_transport_max_concurrent_connections", None, Kind::Integer { min: -1, max: i64::MAX }, "-1", [],
        "Most connections of CQL; -1 for as many as open files allow (ulimit -n), together with those of the old interface: about two \
         thirds of them, the rest is for the commit log and files. Never more than that. One beyond it is told so and closed.";
    "native_transport_max_concurrent_connections_per_ip", None, Kind::Integer { min: -1, max: i64::MAX }, "-1", [],
        "Most connections of CQL from one address; -1 for seven eighths of what there may be in all.";
    "native_transport_idle_timeout", None, Kind::Duration { min_ms: 0 }, "0ms", ["native_transport_idle_timeout_in_ms" "ms"],
        "How long a client may send nothing while it waits for no answer, before it is closed; 0ms for as long as it likes. Drivers \
         send something every half minute.";
    "handshake_timeout", None, TIMEOUT, "10s", [],
        "How long a connection may take to its STARTUP and, where clients log in, to its login. When half of the connections there may be have not begun, the oldest of them \
         make room at once.";
    "rpc_handshake_timeout", None, TIMEOUT, "1m", [],
        "How long a connection of the old interface may take to its first message and, where clients log in, to its login.";
    "request_arrival_timeout", None, TIMEOUT, "10s", [],
        "How long a request may take to arrive whole once it has begun, and a second more for each 128 KiB of it.";
    "http_request_timeout", None, TIMEOUT, "10s", [],
        "How long a client of the HTTP port may take to send its request, or do nothing between two.";
    "http_tls", Some("http-tls"), Kind::Choice(&["off", "optional", "on"]), "off", [],
        "TLS on the HTTP port, with the certificate and the client authorities of the other ports. optional: in the clear too, on the \
         same port.";
    "http_hosts", None, Kind::Words, "[]", [],
        "Names by which the HTTP port may be asked for, besides localhost and addresses of the loopback: other values of Host are \
         refused where it listens on the loopback, or where names are given. * for any.";
    "http_system_tables", None, Kind::Boolean, "false", [],
        "Whether /metrics has figures of each table of the system too, some 2,700 lines more. Figures of the whole server count \
         them in any case.";
    "rpc_keepalive", None, Kind::Boolean, "true", [],
        "Ask the system to notice clients that are gone.";
    "available_processors", None, Kind::Integer { min: -1, max: 1024 }, "-1", [],
        "Threads that serve connections; -1 for one a core.";
    "busy_poll_us", None, Kind::Integer { min: 0, max: 10_000 }, "100", [],
        "Microseconds for which a thread that serves connections looks for the next request before it sleeps, when requests come \
         one at a time; 0 for none, as on a single core.";
    "concurrent_reads", None, Kind::Integer { min: 2, max: 1024 }, "32, or one for each 16MiB of memory_limit, at least 4", [],
        "Threads for reads that wait for the disk.";
    "read_request_timeout", None, TIMEOUT, "5s", ["read_request_timeout_in_ms" "ms"],
        "How long a read of a partition may take.";
    "range_request_timeout", None, TIMEOUT, "10s", ["range_request_timeout_in_ms" "ms"],
        "How long a read over partitions may take.";
    "write_request_timeout", None, TIMEOUT, "2s", ["write_request_timeout_in_ms" "ms"],
        "How long the answer to a write may wait for the commit log.";
    "batch_size_warn_threshold", None, ANY_SIZE, "5KiB", ["batch_size_warn_threshold_in_kb" "KiB"],
        "A batch over several partitions that is larger is warned of, counted as Cassandra counts it.";
    "batch_size_fail_threshold", None, ANY_SIZE, "50KiB", ["batch_size_fail_threshold_in_kb" "KiB"],
        "One that is larger than this is refused.";
    "unlogged_batch_across_partitions_warn_threshold", None, Kind::Integer { min: 0, max: i64::MAX }, "10", [],
        "An unlogged batch over more partitions is warned of.";
    "prepared_statements_cache_size", None, Kind::Size { min: MIB, max: u64::MAX }, "a sixteenth of memory_limit, at most 32MiB",
        ["prepared_statements_cache_size_mb" "MiB"],
        "Memory for prepared statements; those not used for longest are forgotten first.";
    "keyspaces_warn_threshold", None, COUNT, "-1", [],
        "A new keyspace beyond this number is warned of; -1 for none.";
    "keyspaces_fail_threshold", None, COUNT, "-1", [],
        "A new keyspace beyond this number is refused; -1 for none.";
    "tables_warn_threshold", None, COUNT, "-1", [],
        "A new table beyond this number, over all keyspaces, is warned of; -1 for none.";
    "tables_fail_threshold", None, COUNT, "-1", [],
        "A new table beyond this number, over all keyspaces, is refused; -1 for none.";
    "columns_per_table_warn_threshold", None, COUNT, "-1", [],
        "A table with more columns is warned of; -1 for none.";
    "columns_per_table_fail_threshold", None, COUNT, "-1", [],
        "A table with more columns is refused; -1 for none.";
    "fields_per_udt_warn_threshold", None, COUNT, "-1", [],
        "A user type with more fields is warned of; -1 for none.";
    "fields_per_udt_fail_threshold", None, COUNT, "-1", [],
        "A user type with more fields is refused; -1 for none.";
    "vector_dimensions_warn_threshold", None, COUNT, "-1", [],
        "A vector of more elements is warned of; -1 for none.";
    "vector_dimensions_fail_threshold", None, COUNT, "-1", [],
        "A vector of more elements is refused; -1 for none.";
    "page_size_warn_threshold", None, COUNT, "-1", [],
        "A read in larger pages is warned of; -1 for none.";
    "page_size_fail_threshold", None, COUNT, "-1", [],
        "A read in larger pages is refused; -1 for none.";
    "secondary_indexes_per_table_warn_threshold", None, COUNT, "-1", [],
        "A table with more secondary indexes is warned of; -1 for none.";
    "secondary_indexes_per_table_fail_threshold", None, COUNT, "-1", [],
        "A table with more secondary indexes is refused; -1 for none.";
    "partition_keys_in_select_warn_threshold", None, COUNT, "-1", [],
        "A read of more partitions by IN is warned of; -1 for none.";
    "partition_keys_in_select_fail_threshold", None, COUNT, "-1", [],
        "A read of more partitions by IN is refused; -1 for none.";
    "in_select_cartesian_product_warn_threshold", None, COUNT, "-1", [],
        "More combinations of the values of several IN are warned of; -1 for none.";
    "in_select_cartesian_product_fail_threshold", None, COUNT, "-1", [],
        "More combinations of the values of several IN are refused; -1 for none.";
    "items_per_collection_warn_threshold", None, COUNT, "-1", [],
        "A write of a collection with more elements is warned of; -1 for none.";
    "items_per_collection_fail_threshold", None, COUNT, "-1", [],
        "A write of a collection with more elements is refused; -1 for none.";
    "maximum_replication_factor_warn_threshold", None, COUNT, "-1", [],
        "A keyspace with a greater replication factor is warned of; -1 for none.";
    "maximum_replication_factor_fail_threshold", None, COUNT, "-1", [],
        "A keyspace with a greater replication factor is refused; -1 for none.";
    "minimum_replication_factor_warn_threshold", None, COUNT, "-1", [],
        "A keyspace with a smaller replication factor is warned of; -1 for none.";
    "minimum_replication_factor_fail_threshold", None, COUNT, "-1", [],
        "A keyspace with a smaller replication factor is refused; -1 for none.";
    "collection_size_warn_threshold", None, ANY_SIZE, "none", [],
        "A write of a larger collection is warned of.";
    "collection_size_fail_threshold", None, ANY_SIZE, "none", [],
        "A write of a larger collection is refused.";
    "column_value_size_warn_threshold", None, ANY_SIZE, "none", [],
        "A write of a larger value is warned of.";
    "column_value_size_fail_threshold", None, ANY_SIZE, "none", [],
        "A write of a larger value is refused.";
    "partition_size_warn_threshold", None, ANY_SIZE, "none", [],
        "A flush or compaction that writes a larger partition says so in the log.";
    "partition_size_fail_threshold", None, ANY_SIZE, "none", [],
        "The same as an error in the log. Nothing is refused.";
    "partition_tombstones_warn_threshold", None, COUNT, "-1", [],
        "A flush or compaction that writes a partition with more tombstones says so in the log; -1 for none.";
    "partition_tombstones_fail_threshold", None, COUNT, "-1", [],
        "The same as an error in the log. Nothing is refused.";
    "data_disk_usage_percentage_warn_threshold", None, PERCENT, "-1", [],
        "Writes are warned of while the data takes more of the room that it has and that is free; -1 for none.";
    "data_disk_usage_percentage_fail_threshold", None, PERCENT, "-1", [],
        "Writes are refused while the data takes more of this room; -1 for none. TRUNCATE and DROP make room.";
    "data_disk_usage_max_disk_size", None, ANY_SIZE, "none", [],
        "The room for these percentages, where it is less than the disk has.";
    "maximum_timestamp_warn_threshold", None, Kind::Duration { min_ms: 0 }, "none", [],
        "A write whose timestamp lies further behind now is warned of.";
    "maximum_timestamp_fail_threshold", None, Kind::Duration { min_ms: 0 }, "none", [],
        "A write whose timestamp lies further behind now is refused. So are the server's own timestamps where the machine's clock \
         has jumped ahead by more, and by more than an hour, until it is set right or helenus admin resetclock believes it.";
    "minimum_timestamp_warn_threshold", None, Kind::Duration { min_ms: 0 }, "none", [],
        "A write whose timestamp lies further before now is warned of.";
    "minimum_timestamp_fail_threshold", None, Kind::Duration { min_ms: 0 }, "none", [],
        "A write whose timestamp lies further before now is refused.";
    "table_properties_warned", None, Kind::Words, "[]", [],
        "Table options whose use is warned of.";
    "table_properties_ignored", None, Kind::Words, "[]", [],
        "Table options that are taken and left aside, with a warning.";
    "table_properties_disallowed", None, Kind::Words, "[]", [],
        "Table options that are refused.";
    "read_consistency_levels_warned", None, Kind::Words, "[]", [],
        "Consistency levels of reads whose use is warned of.";
    "read_consistency_levels_disallowed", None, Kind::Words, "[]", [],
        "Consistency levels of reads that are refused.";
    "write_consistency_levels_warned", None, Kind::Words, "[]", [],
        "Consistency levels of writes whose use is warned of.";
    "write_consistency_levels_disallowed", None, Kind::Words, "[]", [],
        "Consistency levels of writes that are refused.";
    "allow_filtering_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use ALLOW FILTERING.";
    "group_by_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use GROUP BY.";
    "user_timestamps_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use USING TIMESTAMP.";
    "alter_table_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use ALTER TABLE of columns.";
    "drop_truncate_table_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use DROP TABLE and TRUNCATE.";
    "drop_keyspace_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use DROP KEYSPACE.";
    "simplestrategy_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use SimpleStrategy.";
    "uncompressed_tables_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use tables without compression.";
    "compact_tables_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use COMPACT STORAGE.";
    "secondary_indexes_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use CREATE INDEX.";
    "vector_type_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use columns of vectors.";
    "read_before_write_list_operations_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may set and remove elements of lists by index, and remove them by value.";
    "non_partition_restricted_index_query_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may ask an index without naming a partition.";
    "dynamic_data_masking_enabled", None, Kind::Boolean, "false", [],
        "Whether columns may be MASKED WITH a function.";
    "drop_compact_storage_enabled", None, Kind::Boolean, "false", ["enable_drop_compact_storage" ""],
        "Whether ALTER TABLE .. DROP COMPACT STORAGE is allowed.";
    "tombstone_warn_threshold", None, COUNT, "1000", [],
        "A read that passes more tombstones is warned of; -1 for never.";
    "tombstone_failure_threshold", None, COUNT, "100000", [],
        "A read that passes more tombstones fails; -1 for never.";
    "zero_ttl_on_twcs_enabled", None, Kind::Boolean, "true", [],
        "Whether clients may use time windows (TimeWindowCompactionStrategy) without a default TTL.";
    "zero_ttl_on_twcs_warned", None, Kind::Boolean, "true", [],
        "Whether roles that log in and are no superusers are warned of time windows without a default TTL.";
}

/// The keys that no version of Cassandra has.
const OWN_KEYS: &[&str] = &[
    "allow_default_password",
    "busy_poll_us",
    "certificate_validator",
    "data",
    "datacenter",
    "gc_grace",
    "handshake_timeout",
    "http",
    "http_hosts",
    "http_request_timeout",
    "http_system_tables",
    "http_tls",
    "insecure_no_login",
    "listen",
    "log_format",
    "log_level",
    "log_values",
    "memory",
    "memory_limit",
    "native_shard_aware_transport_port",
    "password_cost",
    "password_file",
    "password_role",
    "rack",
    "request_arrival_timeout",
    "rpc",
    "rpc_handshake_timeout",
    "skip_damaged_log",
    "tls_cert",
    "tls_client_ca",
    "tls_client_crl",
    "tls_key",
    "tls_optional",
    "tombstone_purge_grace",
];

impl OptionSpec {
    /// Whether the key is Helenus's own. The values of Cassandra's keys are read as Cassandra reads them.
    pub fn is_own(&self) -> bool {
        OWN_KEYS.contains(&self.key)
    }
}

/// Finds an option by its key.
pub fn option(key: &str) -> Option<&'static OptionSpec> {
    OPTIONS.iter().find(|option| option.key == key)
}
