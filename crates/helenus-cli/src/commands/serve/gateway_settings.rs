//! What a gateway does with each setting of a server, with or without a database beside it. A setting that restricts clients, or records
//! what they do, is kept or refused by name: one that is on and has no effect is a promise that nobody keeps.
//!
//! Every setting is named here without `..`, so that a new one does not compile before somebody has decided.

use std::time::Duration;

use helenus_cql::guardrails::Guardrails;
use helenus_cql::{AccessOptions, Authenticator, CidrAuthorizer};
use helenus_server::audit::AuditOptions;
use helenus_server::config::ServerConfig;
use helenus_server::native::Limits;
use helenus_tls::EncryptionOptions;

/// Where a gateway stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    /// Alone: `serve --gateway`.
    Alone,
    /// In front of the target of a move, in a server whose clients it has taken over: `move cutover`.
    AfterCut,
}

/// The longest time for busy polling that nobody has to ask for.
const BUSY_POLL_DEFAULT: Duration = Duration::from_micros(100);

/// The settings that are on and that a gateway does not keep, each with what to do.
pub(super) fn not_kept(config: &ServerConfig, stands: Stands) -> Vec<String> {
    let ServerConfig {
        encryption,
        http,
        audit,
        access,
        limits,
        guardrails,
        memory_limit,
        // Kept: addresses, what the old RPC interface limits, which is the server's own, and the memory of statements.
        listen: _,
        listen_encrypted: _,
        listen_shard_aware: _,
        broadcast_address: _,
        rpc: _,
        rpc_limits: _,
        statements_bytes: _,
        insecure_no_login: _,
        cluster_name: _,
        datacenter: _,
        rack: _,
        log: _,
        // The HTTP port is refused, or is that of the database.
        http_tls: _,
        http_limits: _,
        // Of a database. What a statement may do at a cluster, its nodes decide by their own settings.
        storage: _,
        disk_failure: _,
        commit_failure: _,
        sync: _,
        skip_damaged_log: _,
        segment_bytes: _,
        mutation_bytes_max: _,
        answer_bytes_max: _,
        memtable_bytes: _,
        cache_bytes: _,
        compaction_bytes_per_s: _,
        kept_log: _,
        row_images: _,
        compactors: _,
        purge_grace: _,
        obeys_gc_grace: _,
        timeouts: _,
        // Logins are refused by the authenticator; after a cut the roles are those of the target.
        password_file: _,
        password_role: _,
        batches: _,
        masks_columns: _,
        drops_compact_storage: _,
        tombstones_warn: _,
        tombstones_fail: _,
        warns_of_zero_ttl: _,
    } = config;
    let mut reasons = Vec::new();
    let mut refuse = |is_on: bool, reason: &str| {
        if is_on {
            reasons.push(reason.to_owned());
        }
    };
    refuse(http.is_some() && stands == Stands::Alone, "the HTTP port: leave --http out");
    refuse(
        *guardrails != Guardrails::default(),
        "guardrails: the cluster has its own; set them there, and leave them out here",
    );
    of_encryption(encryption, &mut refuse);
    of_audit(audit, &mut refuse);
    of_access(access, stands, &mut refuse);
    of_limits(limits, *memory_limit, &mut refuse);
    reasons
}

/// Takes a reason if the first argument says that the setting is on.
type Refuse<'r> = &'r mut dyn FnMut(bool, &str);

fn of_encryption(encryption: &EncryptionOptions, refuse: Refuse<'_>) {
    let EncryptionOptions {
        require_endpoint_verification,
        // Kept: the gateway has the settings of TLS that the server has.
        enabled: _,
        optional: _,
        keystore: _,
        keystore_password: _,
        truststore: _,
        truststore_password: _,
        protocol: _,
        accepted_protocols: _,
        cipher_suites: _,
        store_type: _,
        client_certificates: _,
        revocation_lists: _,
        factory: _,
    } = encryption;
    refuse(*require_endpoint_verification, "require_endpoint_verification: leave it out");
}

fn of_audit(audit: &AuditOptions, refuse: Refuse<'_>) {
    let AuditOptions {
        enabled,
        // Nothing without the first.
        logger: _,
        keyspaces: _,
        categories: _,
        users: _,
        directory: _,
        roll_cycle: _,
        block: _,
        queue_bytes_max: _,
        log_bytes_max: _,
        archive_retries_max: _,
    } = audit;
    refuse(
        *enabled,
        "the audit log (audit_logging_options): a gateway writes none; turn it on at the nodes of the cluster, and off here",
    );
}

fn of_access(access: &AccessOptions, stands: Stands, refuse: Refuse<'_>) {
    let AccessOptions {
        authenticator,
        cidr,
        // The cluster knows the permissions of its roles. A move compares them before its cut (`helenus_mover`).
        authorizer: _,
        network: _,
        // The cluster makes the hashes of passwords.
        password_cost: _,
        // Nothing without the authorizers.
        roles_validity: _,
        permissions_validity: _,
        credentials_validity: _,
        checks_cidrs_of_superusers: _,
        cidr_groups_interval: _,
        password_interval: _,
        // Kept (`RolesOptions`).
        allows_default_password: _,
    } = access;
    refuse(
        *authenticator != Authenticator::AllowAll && stands == Stands::Alone,
        "logins of its own: leave authenticator and password_file out; clients of serve --gateway log in as roles of the \
         cluster by --cluster-logins",
    );
    refuse(
        *cidr != CidrAuthorizer::AllowAll,
        "cidr_authorizer: the cluster sees the address of the gateway in place of the client's; leave it out, and limit the \
         networks of clients by a firewall",
    );
}

fn of_limits(limits: &Limits, memory_limit: u64, refuse: Refuse<'_>) {
    let Limits {
        in_flight_bytes_max_per_address,
        throws_on_overload,
        busy_poll,
        // Kept by the gateway (`GatewayOptions`).
        frame_bytes_max,
        message_bytes_max,
        in_flight_bytes_max,
        connections_max: _,
        connections_max_per_address: _,
        frame_grace: _,
        handshake_timeout: _,
        idle_timeout: _,
        reader_grace: _,
        tls: _,
        encrypted_address: _,
        shard_aware_address: _,
        // How a server divides its work, which a gateway does in its own way, and what it does for a tool.
        event_loops: _,
        keeps_alive: _,
        disk_threads_max: _,
        disk_queue_max: _,
        login_threads_max: _,
        write_timeout: _,
        budget: _,
        own_clients: _,
        starts_paused: _,
        // Made of `ServerConfig::audit` when a server starts.
        audit: _,
    } = limits;
    let default = Limits::for_memory(memory_limit, 1).in_flight_bytes_max_per_address;
    let default =
        Limits::of_one_address(default.max(*frame_bytes_max).max(*message_bytes_max), *in_flight_bytes_max);
    refuse(
        *in_flight_bytes_max_per_address != default,
        "native_transport_max_request_data_in_flight_per_ip: leave it out; native_transport_max_request_data_in_flight limits all \
         clients together",
    );
    refuse(
        *throws_on_overload,
        "native_transport_throw_on_overload: leave it out; a gateway with too much in flight lets clients wait",
    );
    refuse(*busy_poll > BUSY_POLL_DEFAULT, "busy_poll_us: leave it out; a gateway does not poll");
}
