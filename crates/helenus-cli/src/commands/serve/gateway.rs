//! `helenus serve --gateway HOST,HOST`: serves the native protocol, and with `--rpc` the old RPC interface, in front of a cluster of
//! Cassandra, without a database of its own.

use super::gateway_settings::{Stands, not_kept};
use super::messages::announce;
use super::rpc::{CLUSTER_CALLS_MAX, own_address};
use super::shutdown::{ReloadSignal, ShutdownSignals};
use super::tls::{TlsFiles, load_tls};
use crate::commands::access::TlsOptions;
use crate::commands::passwords;
use anyhow::{Context, Result, bail};
use clap::{Args, FromArgMatches};
use helenus_cluster::{AnswerRoom, Cluster, ClusterError, ClusterOptions, Login, Topology};
use helenus_cql::counted;
use helenus_gateway::{Admission, Gateway, GatewayOptions, Place, Roles, RolesOptions};
use helenus_host::Host;
use helenus_host::account::{self, Charge, Share, split};
use helenus_rpc::{Node, Rpc};
use helenus_rpc_gateway::ClusterTables;
use helenus_server::config::ServerConfig;
use helenus_server::connection_budget::{Admitted, ConnectionBudget, Newcomer};
use helenus_server::log::{Entry, Level, Log, SlowStatements};
use helenus_server::policy::FailurePolicies;
use helenus_server::rpc::{RpcLimits, RpcServer};
use helenus_tls::ServerTls;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The options of `serve` that concern a cluster.
#[derive(Args, Debug)]
pub(super) struct GatewayFlags {
    /// Serve in front of this cluster of Cassandra, instead of a database of its own: some of its nodes, with commas between them
    #[arg(long, value_name = "HOST[:PORT],..", conflicts_with_all = ["data", "memory", "adopt", "init", "http", "password_file"])]
    gateway: Option<String>,
    /// Data center of the cluster whose nodes are asked first [default: that of the first node that answers]
    #[arg(long, value_name = "NAME", requires = "gateway")]
    local_dc: Option<String>,
    /// Show the nodes of the cluster to clients, which then connect to them where they can
    #[arg(long, requires = "gateway")]
    show_nodes: bool,
    /// Log in to the cluster as this role
    #[arg(long, value_name = "NAME", requires = "gateway")]
    cluster_username: Option<String>,
    /// File whose first line is the password of --cluster-username; HELENUS_PASSWORD if it is not given
    #[arg(long, value_name = "FILE", requires = "cluster_username")]
    cluster_password_file: Option<PathBuf>,
    /// Clients log in as roles of the cluster, which checks name and password and permits their statements
    #[arg(long, requires = "gateway")]
    cluster_logins: bool,
    /// Connect to the cluster by TLS
    #[arg(long, requires = "gateway")]
    cluster_tls: bool,
    /// PEM file with the certificates to trust of the cluster's nodes; those of this machine by default. Turns TLS on
    #[arg(long, value_name = "FILE", requires = "gateway", conflicts_with = "cluster_insecure")]
    cluster_cafile: Option<PathBuf>,
    /// PEM file with the certificate to show to the cluster, and its key unless --cluster-key is given. Turns TLS on
    #[arg(long, value_name = "FILE", requires = "gateway")]
    cluster_cert: Option<PathBuf>,
    /// PEM file with the key of --cluster-cert
    #[arg(long, value_name = "FILE", requires = "cluster_cert")]
    cluster_key: Option<PathBuf>,
    /// TLS with whatever node answers: its certificate is not checked. Turns TLS on
    #[arg(long, requires = "gateway")]
    cluster_insecure: bool,
}

impl GatewayFlags {
    /// The options, if a gateway is wanted.
    pub(super) fn of(matches: &clap::ArgMatches) -> Result<Option<GatewayFlags>> {
        let flags = GatewayFlags::from_arg_matches(matches)?;
        Ok(flags.gateway.is_some().then_some(flags))
    }

    /// Whether clients log in as roles of the cluster.
    pub(super) fn has_logins(&self) -> bool {
        self.cluster_logins
    }

    fn cluster(&self) -> Result<ClusterOptions> {
        let points = self.gateway.as_deref().unwrap_or_default().split(',');
        let points = points.map(|point| point.trim().to_owned()).filter(|point| !point.is_empty());
        let mut options = ClusterOptions::new(points.collect());
        if options.contact_points.is_empty() {
            bail!("--gateway: name at least one node of the cluster");
        }
        options.local_dc.clone_from(&self.local_dc);
        options.login = self.login()?;
        options.must_log_in = self.cluster_logins;
        let mut tls = TlsOptions::default();
        tls.tls = self.cluster_tls;
        tls.insecure = self.cluster_insecure;
        tls.cafile.clone_from(&self.cluster_cafile);
        tls.cert.clone_from(&self.cluster_cert);
        tls.key.clone_from(&self.cluster_key);
        options.tls = tls.client()?.cloned();
        options.driver_name = "Helenus gateway".to_owned();
        Ok(options)
    }

    fn login(&self) -> Result<Option<Login>> {
        let Some(user) = self.cluster_username.clone() else { return Ok(None) };
        let password = match &self.cluster_password_file {
            Some(file) => passwords::first_line(file)?,
            None => passwords::of_environment().context(
                "--cluster-username without a password: give --cluster-password-file FILE or HELENUS_PASSWORD",
            )?,
        };
        Ok(Some(Login { user, password }))
    }
}

/// Clients go to the nodes that they are shown, without a login; nodes that ask for one would refuse them.
async fn refuse_nodes_with_logins(cluster: &Cluster, flags: &GatewayFlags) -> Result<()> {
    let Some(login) = flags.login()?.filter(|_| flags.show_nodes && !flags.cluster_logins) else {
        return Ok(());
    };
    let topology = cluster.topology();
    let Some(node) = topology.nodes.iter().find(|node| node.is_connected()) else { return Ok(()) };
    if node.check_login(&login).await.is_ok() {
        bail!(
            "--show-nodes: the node {} asks for a login, so clients that go there without one are refused; give --cluster-logins, so \
             that they log in here as there, or leave --show-nodes out",
            node.address
        );
    }
    Ok(())
}

/// Runs the gateway until a signal ends it.
pub(super) fn run(host: &Host, flags: &GatewayFlags, config: &ServerConfig, log: &Arc<Log>) -> Result<()> {
    let reload = ReloadSignal::new()?;
    refuse_unsupported(config)?;
    account::set_limits(split(config.memory_limit, outside_account(config)), config.timeouts.read);
    let tls = load_tls(host, config, log)?;
    let _tls_files = tls.as_ref().map(|tls| TlsFiles::watch(host, tls, log));
    let cluster = ClusterOptions { answers: answer_room(config), ..flags.cluster()? };
    let ending = ShutdownSignals::new(reload)?;
    let threads = helenus_host::real::cores().max(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    let gateway = runtime.block_on(async {
        announce(log, "connecting", cluster.contact_points.join(", "));
        let cluster = Cluster::connect(cluster).await.map_err(|error| hinted(error, flags))?;
        announce(log, "gateway", description(&cluster.topology()));
        refuse_nodes_with_logins(&cluster, flags).await?;
        let roles = Arc::new(Roles::new(cluster, roles_options(config, flags.cluster_logins)));
        let options = options(config, config.listen, tls.clone());
        let options = GatewayOptions { shows_nodes: flags.show_nodes, ..options };
        anyhow::Ok(Gateway::start(roles, options).await?)
    })?;
    let rpc = start_rpc(host, (config, log), (&runtime, &gateway), tls)?;
    if let Some(rpc) = &rpc {
        announce(log, "rpc", format!("{}  (Thrift, framed or not)", rpc.address()));
    }
    let address = gateway.address();
    let entry = Entry::new("listening", format!("{address}  (CQL native protocol v3, v4, v5)"));
    log.print_status(&entry.with("address", address.to_string()));
    let (_policies, mut told) = FailurePolicies::new(config.disk_failure, config.commit_failure, log);
    let stop = || {
        gateway.stop();
        if let Some(rpc) = &rpc {
            rpc.stop();
        }
    };
    let reload = || {
        let text = "SIGHUP: a gateway reads its settings only at the start; nothing has changed";
        log.write(Level::Warn, &Entry::new("settings", text));
    };
    ending.wait(&mut told, log, &stop, &reload);
    announce(log, "stopping", "the cluster goes on without this gateway".to_owned());
    stop();
    runtime.block_on(gateway.drain(DRAIN));
    runtime.shutdown_background();
    announce(log, "stopped", "nothing was kept here".to_owned());
    Ok(())
}

/// Bytes of `memory_limit` that a gateway divides by itself: requests and answers in flight, long answers of nodes with their copy, and
/// prepared statements. The rest is the account's, from which the calls of the old interface draw.
fn outside_account(config: &ServerConfig) -> u64 {
    let of_clients = config.limits.in_flight_bytes_max.saturating_add(unread_max(config));
    of_clients.saturating_add(config.memory_limit / 8 * 2).saturating_add(config.statements_bytes)
}

/// The most bytes of answers that clients have not taken.
fn unread_max(config: &ServerConfig) -> u64 {
    config.limits.in_flight_bytes_max.max(UNREAD_BYTES_MIN.min(config.memory_limit / 4))
}

/// The room for long answers of nodes: an eighth of the memory, as each is copied twice on its way to the client.
pub(super) fn answer_room(config: &ServerConfig) -> Arc<AnswerRoom> {
    AnswerRoom::new(config.memory_limit / 8)
}

/// How clients of a gateway log in. `are_needed`: whether they have to.
pub(super) fn roles_options(config: &ServerConfig, are_needed: bool) -> RolesOptions {
    RolesOptions { are_needed, allows_default_password: config.access.allows_default_password }
}

/// The options of a gateway on this address.
pub(super) fn options(
    config: &ServerConfig,
    listen: SocketAddr,
    tls: Option<Arc<ServerTls>>,
) -> GatewayOptions {
    let limits = &config.limits;
    GatewayOptions {
        listen,
        listen_encrypted: config.listen_encrypted,
        listen_also: config.listen_shard_aware,
        frame_bytes_max: limits.frame_bytes_max,
        message_bytes_max: limits.message_bytes_max,
        connections_max: limits.connections_max,
        admission: Some(admission(&limits.budget, config.memory_limit / CONNECTIONS_PART)),
        bytes_max: limits.in_flight_bytes_max,
        unread_bytes_max: unread_max(config),
        statements_bytes_max: config.statements_bytes,
        connections_max_per_address: limits.connections_max_per_address,
        handshake_timeout: limits.handshake_timeout,
        idle_timeout: limits.idle_timeout,
        frame_grace: limits.frame_grace,
        reader_grace: limits.reader_grace,
        tls,
        shows_nodes: false,
        known_statements: None,
        own_node: None,
    }
}

/// Admits connections by the file descriptors of the process, which the old RPC interface, and a server that had the clients before, use
/// too, and charges their memory. `own_bytes`: those for connections alone.
fn admission(budget: &Arc<ConnectionBudget>, own_bytes: u64) -> Admission {
    let (budget, used) = (Arc::clone(budget), Arc::<AtomicU64>::default());
    Arc::new(move |address| match budget.enter(address) {
        Ok(admitted) => Ok(Box::new(ProcessPlace {
            budget: Arc::clone(&budget),
            charge: Mutex::new(Charge::force(Share::Arriving, 0)),
            of_all: OwnBytes { used: Arc::clone(&used), max: own_bytes },
            newcomer: OnceLock::new(),
            _admitted: admitted,
        })),
        Err(no_room) => Err(no_room.to_string()),
    })
}

/// The bytes for connections alone: answers that nobody takes may have all others, and keep no client out.
struct OwnBytes {
    /// Those of all connections.
    used: Arc<AtomicU64>,
    max: u64,
}

impl OwnBytes {
    fn have_room(&self, more: u64) -> bool {
        self.used.load(Ordering::Relaxed).saturating_add(more) <= self.max
    }

    /// A connection has this many bytes instead of those that it had.
    fn change(&self, before: u64, after: u64) {
        self.used.fetch_add(after, Ordering::Relaxed);
        self.used.fetch_sub(before, Ordering::Relaxed);
    }
}

/// The place of a gateway's connection in the process.
struct ProcessPlace {
    budget: Arc<ConnectionBudget>,
    charge: Mutex<Charge>,
    of_all: OwnBytes,
    newcomer: OnceLock<Arc<GatewayNewcomer>>,
    _admitted: Admitted,
}

impl Place for ProcessPlace {
    fn take_memory(&self, bytes: u64) -> bool {
        let mut charge = self.charge.lock();
        let more = bytes.saturating_sub(charge.bytes());
        let is_own = self.of_all.have_room(more);
        let taken = if is_own { None } else { Charge::try_take(Share::Arriving, more) };
        let has_room = more == 0 || is_own || taken.is_some();
        if has_room {
            self.of_all.change(charge.bytes(), bytes);
            // While they are taken, so that nobody else takes them in between.
            charge.resize(bytes);
        }
        has_room
    }

    fn show_newcomer(&self, newcomer: Weak<dyn helenus_gateway::Newcomer>) {
        let shown = self.newcomer.get_or_init(|| Arc::new(GatewayNewcomer(newcomer)));
        let shown: Weak<GatewayNewcomer> = Arc::downgrade(shown);
        self.budget.add_newcomer(shown);
    }
}

impl Drop for ProcessPlace {
    fn drop(&mut self) {
        self.take_memory(0);
    }
}

/// A gateway's connection among those of the process that have not begun.
struct GatewayNewcomer(Weak<dyn helenus_gateway::Newcomer>);

impl Newcomer for GatewayNewcomer {
    fn has_begun(&self) -> bool {
        self.0.upgrade().is_none_or(|newcomer| newcomer.has_begun())
    }

    fn displace(&self) {
        if let Some(newcomer) = self.0.upgrade() {
            newcomer.displace();
        }
    }
}

/// Starts the old RPC interface, if it is configured.
fn start_rpc(
    host: &Host,
    (config, log): (&ServerConfig, &Arc<Log>),
    (runtime, gateway): (&Runtime, &Gateway),
    tls: Option<Arc<ServerTls>>,
) -> Result<Option<RpcServer>> {
    let Some(listen) = config.rpc else { return Ok(None) };
    let topology = gateway.roles().own().cluster.topology();
    let tables = runtime.block_on(ClusterTables::new(gateway.roles(), host.clock.clone()))?;
    let node = Node {
        cluster_name: topology.cluster_name.clone(),
        datacenter: topology.local_dc.clone(),
        rack: config.rack.clone(),
        address: own_address(config, listen),
    };
    let rpc = Rpc::of_storage(Box::new(tables), node);
    let slow = SlowStatements::new(log, &host.clock, config.log.slow, config.log.shows_values);
    let limits = RpcLimits { tls, disk_threads_max: CLUSTER_CALLS_MAX, ..config.rpc_limits.clone() };
    Ok(Some(RpcServer::start(host, rpc, listen, limits, Some(slow))?))
}

/// The error, with what to do if the gateway lacks a login of its own.
fn hinted(error: ClusterError, flags: &GatewayFlags) -> anyhow::Error {
    let text = error.to_string();
    match flags.cluster_username {
        None if text.contains("asks for a login") => anyhow::Error::new(error).context(
            "the gateway needs a role of its own to see the nodes and the schema: --cluster-username NAME \
             --cluster-password-file FILE",
        ),
        _ => error.into(),
    }
}

/// Connections have this part of the memory for themselves.
const CONNECTIONS_PART: u64 = 16;
/// The bytes for answers that clients have not taken, at least, where that is no more than a quarter of the memory.
const UNREAD_BYTES_MIN: u64 = 64 << 20;
/// How long requests in flight may take to be answered at the end.
const DRAIN: Duration = Duration::from_secs(5);

fn description(topology: &Topology) -> String {
    let local = topology.nodes.iter().filter(|node| node.datacenter == topology.local_dc).count();
    format!(
        "to the cluster '{}': {}, {local} of them in {}, Cassandra {}",
        topology.cluster_name,
        counted(topology.nodes.len(), "node"),
        topology.local_dc,
        topology.oldest_release()
    )
}

/// Refuses settings that a gateway does not keep, before anything starts.
fn refuse_unsupported(config: &ServerConfig) -> Result<()> {
    let reasons = not_kept(config, Stands::Alone);
    if reasons.is_empty() {
        return Ok(());
    }
    bail!("not started: a gateway does not support\n  {}", reasons.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_have_bytes_that_nothing_else_takes_and_give_them_back() {
        let own = OwnBytes { used: Arc::default(), max: 100 };
        assert!(own.have_room(100));
        own.change(0, 100);
        assert!(
            own.have_room(0) && !own.have_room(1),
            "what is more is taken where there is room for everything else"
        );
        own.change(100, 20);
        assert!(own.have_room(80) && !own.have_room(81));
        own.change(20, 0);
        assert_eq!(own.used.load(Ordering::Relaxed), 0);
    }
}
