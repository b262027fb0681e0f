//! The tables of a cluster as the storage of the RPC interface.

use crate::definitions;
use crate::errors::Work;
use crate::reads::Reading;
use crate::schema::Families;
use crate::statements::{Prepared, Sender, consistency, run};
use crate::swaps;
use crate::texts::{self, Bound};
use crate::writes;
use arc_swap::ArcSwap;
use helenus_cluster::{Cluster, ClusterError, ClusterEvent, Login};
use helenus_cql::CqlError;
use helenus_cql::backend::{
    Answer, Identity, LoginRefused, Outcome, Request, ResultColumn, ResultColumns, RowsOut,
};
use helenus_cql::syntax::ast::Permission;
use helenus_engine::read::{ReadCommand, RowSink};
use helenus_engine::{Listening, Ticket};
use helenus_gateway::{LoginPlace, Role, Roles, is_select, used_keyspace};
use helenus_host::{Clock, account};
use helenus_model::mutation::{Mutation, PartitionUpdate};
use helenus_model::schema::{Schema, Table};
use helenus_model::types::CqlType;
use helenus_rpc::{
    CallOptions, FamilyChange, IndexEquality, LoggedIn, LoginTurn, LoginTurnFuture, Storage, Swap,
};
use helenus_wire::native::{BatchKind, ErrorCode, ResultMessage, Rows};
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// The longest answer to a call.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// How long a change of the schema waits until the nodes agree.
const AGREEMENT: Duration = Duration::from_secs(10);
/// The pause between two attempts to read the schema, and the time that the nodes have to agree before the first.
const PAUSE: Duration = Duration::from_secs(1);

/// The tables of a cluster.
pub struct ClusterTables {
    shared: Arc<Shared>,
    runtime: Handle,
    clock: Arc<dyn Clock>,
    last_timestamp_us: AtomicI64,
}

struct Shared {
    roles: Arc<Roles>,
    prepared: Arc<Prepared>,
    families: ArcSwap<Families>,
    /// Held while the schema is read, so that no older picture takes the place of a newer one.
    refreshing: Mutex<()>,
}

impl Shared {
    /// Reads the schema again.
    async fn refresh(&self) -> Result<(), ClusterError> {
        let _alone = self.refreshing.lock().await;
        let epoch = self.families.load().schema.epoch;
        let families = Families::read(&self.roles.own().cluster, epoch + 1).await?;
        // Before the families: what is prepared with the old ones would stay.
        self.families.store(Arc::new(families));
        self.prepared.clear();
        Ok(())
    }
}

impl ClusterTables {
    /// Reads the schema and follows it. `roles`: those of the gateway. Called in the runtime that runs the cluster's connections.
    ///
    /// # Errors
    /// The schema cannot be read.
    pub async fn new(roles: Arc<Roles>, clock: Arc<dyn Clock>) -> Result<ClusterTables, ClusterError> {
        let cluster = roles.own().cluster.clone();
        let events = cluster.events();
        let families = ArcSwap::from_pointee(Families::read(&cluster, 1).await?);
        let shared =
            Arc::new(Shared { roles, prepared: Arc::default(), families, refreshing: Mutex::default() });
        tokio::spawn(follow(Arc::downgrade(&shared), events));
        Ok(ClusterTables { shared, runtime: Handle::current(), clock, last_timestamp_us: AtomicI64::new(0) })
    }

    fn cluster(&self, manner: CallOptions<'_>) -> Result<Cluster, CqlError> {
        let role = manner.login.and_then(|handle| Arc::clone(handle).downcast::<Role>().ok());
        match role {
            Some(role) => Ok(role.cluster.clone()),
            None if self.has_logins() => Err(not_logged_in()),
            None => Ok(self.shared.roles.own().cluster.clone()),
        }
    }

    fn sender(&self, manner: CallOptions<'_>) -> Result<Sender, CqlError> {
        match manner.may_block {
            true => self.sender_at(manner.consistency, manner),
            false => Err(CqlError::WouldBlock),
        }
    }

    /// A sender with the consistency level of this number, for a call that may block.
    fn sender_at(&self, level: u16, manner: CallOptions<'_>) -> Result<Sender, CqlError> {
        Ok(Sender {
            cluster: self.cluster(manner)?,
            prepared: Arc::clone(&self.shared.prepared),
            has_logins: self.has_logins(),
            consistency: consistency(level),
            written: Arc::clone(self.shared.roles.written()),
        })
    }

    fn reading<'a>(
        &'a self,
        command: &'a ReadCommand,
        manner: CallOptions<'a>,
    ) -> Result<Reading<'a>, CqlError> {
        let sender = self.sender(manner)?;
        let (runtime, cancelled) = (&self.runtime, manner.cancelled);
        Ok(Reading { runtime, sender, command, found_by: None, cancelled })
    }

    /// Sends the changes of each partition as one request, all at the same time. Partitions of one key in several tables go together.
    fn send(&self, updates: &[PartitionUpdate], kind: BatchKind, sender: &Sender) -> Result<(), CqlError> {
        let mut groups: Vec<(&PartitionUpdate, Vec<_>)> = Vec::new();
        for update in updates {
            let statements = writes::statements(update)?;
            let is_same = |first: &PartitionUpdate| {
                kind == BatchKind::Logged
                    || first.key == update.key && first.table.keyspace == update.table.keyspace
            };
            match groups.last_mut() {
                Some((first, group)) if is_same(first) => group.extend(statements),
                _ => groups.push((update, statements)),
            }
        }
        let send = |group: Vec<_>| {
            let sender = sender.clone();
            self.runtime.spawn(async move { sender.write(kind, &group).await })
        };
        let tasks: Vec<_> = groups.into_iter().map(|(_, group)| send(group)).collect();
        let mut result = Ok(());
        for task in tasks {
            let done = self.runtime.block_on(task);
            let done = done.map_err(|_| CqlError::Server("the gateway is stopping".to_owned()));
            result = result.and(done.and_then(|done| done));
        }
        result
    }
}

/// Reads the schema again after each change, until the interface is dropped. Not all nodes may have the change when one tells of it.
async fn follow(shared: Weak<Shared>, mut events: Receiver<ClusterEvent>) {
    loop {
        match events.recv().await {
            Ok(ClusterEvent::Schema(_) | ClusterEvent::Missed) | Err(RecvError::Lagged(_)) => {}
            Ok(ClusterEvent::Topology(..) | ClusterEvent::Status(..)) => continue,
            Err(RecvError::Closed) => return,
        }
        // One picture for all that came together.
        while events.try_recv().is_ok() {}
        loop {
            let Some(shared) = shared.upgrade() else { return };
            let cluster = &shared.roles.own().cluster;
            let is_agreed = cluster.wait_for_agreement(PAUSE).await.is_ok();
            let is_read = shared.refresh().await.is_ok();
            if is_read && is_agreed {
                break;
            }
            if is_read {
                let _ = cluster.wait_for_agreement(AGREEMENT).await;
                if shared.refresh().await.is_ok() {
                    break;
                }
            }
            drop(shared);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The address of a client; one without is on this machine.
fn address(client: Option<IpAddr>) -> IpAddr {
    client.unwrap_or(IpAddr::from([127, 0, 0, 1]))
}

fn not_logged_in() -> CqlError {
    CqlError::Unauthorized("You have not logged in".to_owned())
}

/// Copies the rows of a node's answer into the client's. Their memory is the account's, which has it until the client has taken them: the
/// room of the node's answer is given back when they are copied.
fn copy(
    found: &Rows<'_>,
    out: &mut dyn RowsOut,
    failed: impl Fn(ClusterError) -> CqlError,
) -> Result<Answer, CqlError> {
    let parsed_bytes = found.metadata.columns.parsed_bytes().map_err(|error| failed(error.into()))?;
    // They are parsed, and then put for the interface.
    account::grow(usize::try_from(parsed_bytes.saturating_mul(2)).unwrap_or(usize::MAX))?;
    let columns = found.metadata.columns.to_vec().map_err(|error| failed(error.into()))?;
    let columns = columns.into_iter().map(|column| ResultColumn {
        keyspace: column.keyspace,
        table: column.table,
        name: column.name,
        ty: column.ty,
    });
    let columns = Arc::new(ResultColumns { columns: columns.collect(), id: [0; 16] });
    out.columns(&columns);
    for row in found.iter() {
        let row = row.map_err(|error| failed(error.into()))?;
        out.make_room(row.cells().flatten().map(<[u8]>::len).sum())?;
        row.cells().for_each(|cell| out.cell(cell));
        out.end_row();
    }
    Ok(Outcome::Rows { columns, paging_state: None, ticket: None }.into())
}

impl Storage for ClusterTables {
    fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.shared.families.load().schema)
    }

    fn schema_epoch(&self) -> u64 {
        self.shared.families.load().schema.epoch
    }

    fn no_family(&self, table: &Table) -> String {
        self.shared.families.load().reason(table)
    }

    fn now_s(&self) -> i64 {
        self.clock.wall_us() / 1_000_000
    }

    fn next_timestamp(&self) -> Result<i64, CqlError> {
        let now_us = self.clock.wall_us();
        let next = |last: i64| Some(now_us.max(last.saturating_add(1)));
        let last = self.last_timestamp_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        Ok(now_us.max(last.unwrap_or_default().saturating_add(1)))
    }

    fn answer_bytes_max(&self) -> usize {
        ANSWER_BYTES_MAX
    }

    fn read(
        &self,
        command: &ReadCommand,
        sink: &mut dyn RowSink,
        manner: CallOptions<'_>,
    ) -> Result<(), CqlError> {
        self.reading(command, manner)?.run(sink)
    }

    fn read_indexed(
        &self,
        command: &ReadCommand,
        by: &IndexEquality<'_>,
        sink: &mut dyn RowSink,
        manner: CallOptions<'_>,
    ) -> Result<(), CqlError> {
        let found_by = Some((&by.search.shape.column, by.value));
        Reading { found_by, ..self.reading(command, manner)? }.run(sink)
    }

    fn swap(
        &self,
        swap: &Swap<'_>,
        sink: &mut dyn RowSink,
        manner: CallOptions<'_>,
    ) -> Result<bool, CqlError> {
        let sender = self.sender(manner)?;
        let conditional = swaps::statement(swap)?;
        let answer = self.runtime.block_on(sender.conditional(&conditional, consistency(swap.serial)))?;
        let failed = |error| sender.error(error, Work::Write);
        let rows = answer.rows().map_err(failed)?;
        swaps::has_applied(swap, &rows, sink)
    }

    fn family_statements(&self, change: &FamilyChange<'_>) -> Result<Vec<String>, CqlError> {
        definitions::statements(change)
    }

    fn markers(
        &self,
        text: &str,
        keyspace: Option<&str>,
        manner: CallOptions<'_>,
    ) -> Result<Vec<(Arc<str>, CqlType)>, CqlError> {
        let sender = self.sender(manner)?;
        let prepared = self.runtime.block_on(sender.cluster.prepare(text, keyspace));
        let prepared = prepared.map_err(|error| sender.error(error, Work::Statement))?;
        let markers = prepared.variables.iter();
        Ok(markers.map(|marker| (Arc::clone(&marker.name), marker.ty.clone())).collect())
    }

    fn write(
        &self,
        mutation: &Mutation,
        is_atomic: bool,
        manner: CallOptions<'_>,
    ) -> Result<Ticket, CqlError> {
        let kind = if is_atomic { BatchKind::Logged } else { BatchKind::Unlogged };
        let sender = self.sender(manner)?;
        self.send(&mutation.updates, kind, &sender)?;
        Ok(Ticket::ready())
    }

    fn count(&self, mutation: &Mutation, manner: CallOptions<'_>) -> Result<Ticket, CqlError> {
        let sender = self.sender(manner)?;
        self.send(&mutation.updates, BatchKind::Counter, &sender)?;
        Ok(Ticket::ready())
    }

    fn query(
        &self,
        text: &str,
        request: &Request<'_>,
        (rows, manner): (&mut dyn RowsOut, CallOptions<'_>),
    ) -> Result<Answer, CqlError> {
        let used = used_keyspace(text).map_err(|refused| CqlError::Invalid(refused.message))?;
        if let Some(keyspace) = used {
            // Connections are shared, so their keyspace must not change.
            return match self.schema().keyspaces.contains_key(keyspace.as_str()) {
                true => Ok(Outcome::UsedKeyspace(keyspace.into()).into()),
                false => Err(CqlError::Invalid(format!("Keyspace '{keyspace}' does not exist"))),
            };
        }
        if !request.may_block {
            return Err(CqlError::WouldBlock);
        }
        let sender = self.sender_at(request.consistency, manner)?;
        let cluster = &sender.cluster;
        let failed = |error| sender.error(error, Work::Statement);
        let answer = self.runtime.block_on(run(cluster, text, request));
        let is_read = is_select(text);
        if !is_read {
            self.shared.roles.written().note_unknown();
        }
        let answer = answer.map_err(failed)?;
        match answer.result().map_err(failed)? {
            ResultMessage::Rows(found) => {
                let copied = copy(&found, rows, failed);
                if is_read {
                    return copied;
                }
                // The statement has run, with a condition: it is not run once more when there is memory.
                account::commit();
                copied.map_err(|_no_memory| CqlError::WriteTimeout { consistency: request.consistency })
            }
            ResultMessage::SchemaChange(_) => {
                self.runtime.block_on(async {
                    // What the nodes do not agree on yet comes with the event.
                    let _ = cluster.wait_for_agreement(AGREEMENT).await;
                    let _ = self.shared.refresh().await;
                });
                Ok(Outcome::Done(Ticket::ready()).into())
            }
            _ => Ok(Outcome::Done(Ticket::ready()).into()),
        }
    }

    fn has_logins(&self) -> bool {
        self.shared.roles.are_needed()
    }

    fn login_turn(&self, user: &str, client: Option<IpAddr>) -> Option<LoginTurnFuture> {
        if !self.has_logins() {
            return None;
        }
        let (mut sender, receiver) = tokio::sync::oneshot::channel();
        let (roles, user) = (Arc::clone(&self.shared.roles), user.to_owned());
        // In the runtime of the gateway, whose tasks look for room: the caller's may end before.
        self.runtime.spawn(async move {
            tokio::select! {
                place = roles.place(&user, address(client)) => {
                    // Who has gone meanwhile gives the place back.
                    let _ = sender.send(place);
                }
                () = sender.closed() => {}
            }
        });
        Some(Box::pin(async move { Some(Arc::new(receiver.await.ok()??) as LoginTurn) }))
    }

    fn log_in(
        &self,
        user: &str,
        password: &str,
        (client, turn): (Option<IpAddr>, Option<&LoginTurn>),
    ) -> Result<LoggedIn, LoginRefused> {
        let login = Login { user: user.to_owned(), password: password.to_owned() };
        let (roles, from) = (&self.shared.roles, address(client));
        let place = turn.and_then(|turn| turn.downcast_ref::<LoginPlace>().cloned());
        let checked = self.runtime.block_on(async {
            match place {
                Some(place) => roles.log_in_at(place, login, from).await,
                None => roles.log_in(login, from).await,
            }
        });
        match checked {
            Ok(role) => Ok(LoggedIn { identity: Identity::of_role(user).at(client), handle: Some(role) }),
            Err(refused) => {
                let text = refused.error.message;
                let error = match refused.error.detail.code() {
                    ErrorCode::Overloaded => CqlError::Overloaded(text),
                    _ => CqlError::BadCredentials(text),
                };
                Err(LoginRefused { error, wait: refused.wait })
            }
        }
    }

    fn check_permissions(
        &self,
        identity: &Identity,
        _permissions: &[Permission],
        _named: (&str, &str),
        _may_block: bool,
    ) -> Result<(), CqlError> {
        // The cluster checks the rest.
        if self.has_logins() && identity.role.is_none() { Err(not_logged_in()) } else { Ok(()) }
    }

    fn rows_known(&self, table: &Table, manner: CallOptions<'_>) -> Result<u64, CqlError> {
        // The cluster is asked for nothing else, and it alone knows what the client may read.
        let sender = self.sender(manner)?;
        let nothing = Bound { text: texts::select_nothing(table), values: Vec::new() };
        self.runtime.block_on(sender.page(&nothing, None, 1))?;
        Ok(0)
    }

    fn on_written(&self, _listener: Box<dyn Fn() + Send + Sync>) -> Listening {
        Listening::default()
    }

    fn write_out(&self) -> Result<(), helenus_engine::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statements::scripted_node::{Then, node};
    use helenus_cluster::ClusterOptions;
    use helenus_cql::backend::NoRows;
    use helenus_gateway::RolesOptions;
    use helenus_host::account::{Scope, Share, Waits};

    /// On a thread that may not wait, memory beyond a little is refused.
    #[test]
    fn the_rows_of_a_statement_take_memory_before_they_are_copied() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let tables = runtime.block_on(async {
            let (address, _) = node(Then::ByText).await;
            let options = ClusterOptions { connections: 1, ..ClusterOptions::new(vec![address]) };
            let cluster = Cluster::connect(options).await.unwrap();
            let roles = RolesOptions { are_needed: false, allows_default_password: false };
            let roles = Arc::new(Roles::new(cluster, roles));
            ClusterTables::new(roles, helenus_host::real::host().clock).await.unwrap()
        });
        let identity = Identity::of_role("app");
        let request = Request { may_block: true, ..Request::plain(&identity, &[]) };
        let _scope = Scope::begin(Share::Requests, Waits::Never);
        let query =
            |text: &str| tables.query(text, &request, (&mut NoRows, CallOptions::default())).map(drop);
        assert!(query("SELECT rows").is_ok());
        assert!(matches!(query("SELECT long"), Err(CqlError::WouldBlock)));
        // Its effect may be there, so it is not run again.
        let refused = query("INSERT long IF NOT EXISTS");
        assert!(matches!(refused, Err(CqlError::WriteTimeout { .. })), "{refused:?}");
    }

    /// Logins that have to wait for room do so without a thread, and without being in the way of others.
    #[tokio::test]
    async fn a_login_waits_for_its_turn_without_a_thread() {
        let (address, _) = node(Then::Void).await;
        let options = ClusterOptions { connections: 1, ..ClusterOptions::new(vec![address]) };
        let cluster = Cluster::connect(options).await.unwrap();
        let roles = Roles::new(cluster, RolesOptions { are_needed: true, allows_default_password: false });
        let roles = Arc::new(roles);
        let clock = helenus_host::real::host().clock;
        let tables = ClusterTables::new(Arc::clone(&roles), clock).await.unwrap();
        let (guesser, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let turn = |client| tables.login_turn("app", Some(client)).expect("clients log in");
        let mut places = Vec::new();
        for _ in 0..4 {
            places.push(turn(guesser).await.expect("as many of an address have a place"));
        }
        let waiting = tokio::spawn(turn(guesser));
        let given_up = tokio::spawn(turn(guesser));
        assert!(turn(other).await.is_some());
        assert!(!waiting.is_finished() && !given_up.is_finished());
        given_up.abort();
        assert!(given_up.await.is_err());
        places.pop();
        assert!(waiting.await.unwrap().is_some());
    }
}
