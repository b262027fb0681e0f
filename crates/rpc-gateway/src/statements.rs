//! Prepares the statements of calls once, and sends them as a role of the cluster.

use crate::errors::{Work, cql_error};
use crate::swaps::Conditional;
use crate::texts::Bound;
use helenus_cluster::{
    CallError, Cluster, ClusterError, Extras, Node, NodeStatement, OwnedAnswer, Statement, WrittenPartitions,
};
use helenus_cql::CqlError;
use helenus_cql::backend::{BoundValue, Request as CqlRequest, Values as CqlValues};
use helenus_host::account::{self, Charge, Share};
use helenus_wire::native::{
    Batch, BatchKind, BatchStatement, Consistency, ErrorCode, Query, QueryParameters, Request, StatementRef,
    Statements, Value, Values, Version,
};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::sync::Arc;
use tokio::time::Instant;

/// The memory of the statements that are remembered, also as a part of the account.
const BYTES_MAX: u64 = 32 << 20;
const ACCOUNT_PART: u64 = 8;
/// The least memory of a part of the cache, each with a lock of its own, and the most parts. No statement fits into the cache that does not
/// fit into a part, so there are few.
const PART_BYTES_MIN: u64 = 8 << 20;
const PARTS_MAX: u64 = 4;
/// The fewest items of a part that quick_cache does not join with another, and about the memory of one: of so many that were evicted it
/// knows that they were used before.
const ITEMS_OF_PART_MIN: u64 = 32;
const ITEM_BYTES: u64 = 2 << 10;
/// A page that is too long for the room that there is, is asked for again with this part of its rows.
const FEWER_ROWS: i32 = 8;

#[derive(Clone)]
struct ByMemory;

/// A statement whose memory is charged to the account.
#[derive(Clone)]
struct Remembered {
    statement: Arc<Statement>,
    charge: Arc<Charge>,
}

impl Weighter<String, Remembered> for ByMemory {
    fn weight(&self, _text: &String, remembered: &Remembered) -> u64 {
        remembered.charge.bytes()
    }
}

/// The prepared statements of all families. They are the same for all roles: the cluster checks at each execution what a role may do.
///
/// Clients choose the texts, with as many columns as a call has, so their bytes are limited, not their number.
pub(crate) struct Prepared(Cache<String, Remembered, ByMemory>);

impl Default for Prepared {
    fn default() -> Prepared {
        Prepared(in_parts(BYTES_MAX.min(account::limit() / ACCOUNT_PART)))
    }
}

/// A cache of so many bytes in parts, each of which keeps statements of up to a half of it.
fn in_parts(bytes_max: u64) -> Cache<String, Remembered, ByMemory> {
    // A power of two, as quick_cache would make more parts of another number.
    let parts = 1 << (bytes_max / PART_BYTES_MIN).clamp(1, PARTS_MAX).ilog2();
    let items = (bytes_max / ITEM_BYTES).max(ITEMS_OF_PART_MIN * parts);
    let options = OptionsBuilder::new()
        .shards(parts as usize)
        .estimated_items_capacity(items as usize)
        .weight_capacity(bytes_max)
        .build();
    match options {
        Ok(options) => {
            Cache::with_options(options, ByMemory, DefaultHashBuilder::default(), DefaultLifecycle::default())
        }
        Err(_nothing_is_missing) => Cache::with_weighter(items as usize, bytes_max, ByMemory),
    }
}

impl Prepared {
    /// Forgets all, because tables have changed.
    pub(crate) fn clear(&self) {
        self.0.clear();
    }

    async fn get(&self, cluster: &Cluster, text: &str) -> Result<Arc<Statement>, ClusterError> {
        if let Some(known) = self.0.get(text) {
            return Ok(known.statement);
        }
        let statement = cluster.prepare(text, None).await?;
        let charge = Arc::new(Charge::force(Share::Statements, statement.estimated_bytes()));
        self.0.insert(text.to_owned(), Remembered { statement: Arc::clone(&statement), charge });
        Ok(statement)
    }
}

/// How statements are sent: as which role, and at which consistency level.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) cluster: Cluster,
    pub(crate) prepared: Arc<Prepared>,
    /// Whether clients log in, so that the role is a client's own.
    pub(crate) has_logins: bool,
    pub(crate) consistency: Consistency,
    /// Who is told of writes.
    pub(crate) written: Arc<WrittenPartitions>,
}

impl Sender {
    /// The error of a call. Where the nodes do not take the login of the client's role any more, its session ends.
    pub(crate) fn error(&self, error: ClusterError, work: Work) -> CqlError {
        let is_unsent = match &error {
            ClusterError::Call(error) => !error.was_sent(),
            error => matches!(error, ClusterError::NoNode { .. } | ClusterError::Connect(_)),
        };
        if self.has_logins
            && is_unsent
            && let Some(refusal) = self.cluster.login_refusal()
        {
            let text = refusal.message;
            return CqlError::SessionEnded(format!(
                "The role of this session cannot log in at the cluster any more: {text}"
            ));
        }
        cql_error(error, work, self.consistency as u16)
    }

    /// Runs a statement that reads, or a page of it, with fewer rows than these if their answer is too long.
    ///
    /// # Errors
    /// Those of the cluster.
    pub(crate) async fn page(
        &self,
        bound: &Bound,
        state: Option<&[u8]>,
        mut rows: i32,
    ) -> Result<OwnedAnswer, CqlError> {
        loop {
            match self.whole_page(bound, state, rows).await {
                Err(ClusterError::Call(CallError::TooLong { .. })) if rows > 1 => {
                    rows = (rows / FEWER_ROWS).max(1);
                }
                other => return other.map_err(|error| self.error(error, Work::Read)),
            }
        }
    }

    /// The first page of a statement, which waits for its turn and is counted meanwhile; `None`: it is too long for the room that there
    /// is.
    ///
    /// # Errors
    /// Those of the cluster.
    pub(crate) async fn page_ahead(&self, bound: &Bound, rows: i32) -> Result<Option<OwnedAnswer>, CqlError> {
        match self.whole_page(bound, None, rows).await {
            Ok(answer) => Ok(answer.counted(&self.cluster.options().answers)),
            Err(ClusterError::Call(CallError::TooLong { .. })) => Ok(None),
            Err(error) => Err(self.error(error, Work::Read)),
        }
    }

    async fn whole_page(
        &self,
        bound: &Bound,
        state: Option<&[u8]>,
        rows: i32,
    ) -> Result<OwnedAnswer, ClusterError> {
        let values: Vec<Value<'_>> = bound.values.iter().map(|value| Value::Bytes(value)).collect();
        let parameters = QueryParameters {
            consistency: self.consistency,
            values: Values::positional(&values),
            page_size: Some(rows),
            paging_state: state,
            ..QueryParameters::default()
        };
        self.execute(&bound.text, &parameters).await
    }

    /// Runs a statement with conditions, whose answer says whether they held.
    ///
    /// # Errors
    /// Those of the cluster.
    pub(crate) async fn conditional(
        &self,
        asked: &Conditional,
        serial: Consistency,
    ) -> Result<OwnedAnswer, CqlError> {
        let values: Vec<Value<'_>> = asked
            .values
            .iter()
            .map(|value| value.as_ref().map_or(Value::Unset, |value| Value::Bytes(value)))
            .collect();
        let parameters = QueryParameters {
            consistency: self.consistency,
            serial_consistency: Some(serial),
            values: Values::positional(&values),
            ..QueryParameters::default()
        };
        let sent = match self.prepared.get(&self.cluster, &asked.text).await {
            Ok(statement) => {
                let sent = self.cluster.execute(&statement, &parameters).await;
                // Whatever the answer was: the write may have been done.
                self.written.note(&statement, Some(asked.partition));
                sent
            }
            Err(error) => Err(error),
        };
        sent.map_err(|error| self.error(error, Work::Write))
    }

    async fn execute(
        &self,
        text: &str,
        parameters: &QueryParameters<'_>,
    ) -> Result<OwnedAnswer, ClusterError> {
        let statement = self.prepared.get(&self.cluster, text).await?;
        self.cluster.execute(&statement, parameters).await
    }

    /// Runs statements that write: one by itself, several as a batch.
    ///
    /// # Errors
    /// Those of the cluster.
    pub(crate) async fn write(&self, kind: BatchKind, bound: &[Bound]) -> Result<(), CqlError> {
        let sent = match bound {
            [] => return Ok(()),
            [one] => {
                let values: Vec<Value<'_>> = one.values.iter().map(|value| Value::Bytes(value)).collect();
                let parameters = QueryParameters {
                    consistency: self.consistency,
                    values: Values::positional(&values),
                    ..QueryParameters::default()
                };
                self.execute(&one.text, &parameters).await.map(drop)
            }
            several if several.len() > usize::from(u16::MAX) => {
                return Err(CqlError::Invalid(format!(
                    "the call makes {} changes of a row; at most {} can be sent to the cluster at once",
                    several.len(),
                    u16::MAX
                )));
            }
            several => self.batch(kind, several).await,
        };
        // Whatever the answer was: the write may have been done.
        self.note(bound).await;
        sent.map_err(|error| self.error(error, Work::Write))
    }

    /// Notes the partitions of writes, if somebody wants to know.
    async fn note(&self, bound: &[Bound]) {
        if !self.written.is_noting() {
            return;
        }
        for one in bound {
            match self.prepared.get(&self.cluster, &one.text).await {
                Ok(statement) => {
                    let value = |marker: usize| one.values.get(marker).map(|value| Value::Bytes(value));
                    self.written.note(&statement, statement.only_partition(value));
                }
                // It was forgotten meanwhile, and cannot be prepared again.
                Err(_) => self.written.note_unknown(),
            }
        }
    }

    /// Sends a batch to a holder of the first statement's partition.
    async fn batch(&self, kind: BatchKind, bound: &[Bound]) -> Result<(), ClusterError> {
        let mut statements = Vec::with_capacity(bound.len());
        for one in bound {
            statements.push(self.prepared.get(&self.cluster, &one.text).await?);
        }
        let values: Vec<Vec<Value<'_>>> =
            bound.iter().map(|one| one.values.iter().map(|value| Value::Bytes(value)).collect()).collect();
        let first = statements.first().zip(values.first());
        let token =
            first.and_then(|(statement, values)| statement.token(|marker| values.get(marker).copied()));
        let keyspace = first.and_then(|(statement, _)| statement.table_keyspace());
        let (mut last, until) = (None, self.cluster.until());
        for node in self.cluster.plan_by_room(keyspace.zip(token)) {
            match self.batch_at((&node, until), kind, (&statements, &values)).await {
                Err(ClusterError::Call(error))
                    if !error.was_sent() && !matches!(error, CallError::Wire(_)) =>
                {
                    last = Some(error);
                }
                other => return other,
            }
        }
        Err(last.map_or(ClusterError::NoNode { reason: None }, ClusterError::Call))
    }

    async fn batch_at(
        &self,
        (node, until): (&Node, Instant),
        kind: BatchKind,
        (statements, values): (&[Arc<Statement>], &[Vec<Value<'_>>]),
    ) -> Result<(), ClusterError> {
        let mut is_repeated = false;
        loop {
            let mut known: Vec<Arc<NodeStatement>> = Vec::with_capacity(statements.len());
            for statement in statements {
                known.push(self.cluster.prepare_at(node, statement, until).await?);
            }
            let each = known.iter().zip(values).map(|(statement, values)| BatchStatement {
                statement: StatementRef::Prepared(&statement.id),
                values: Values::positional(values),
            });
            let each: Vec<_> = each.collect();
            let parameters = QueryParameters { consistency: self.consistency, ..QueryParameters::default() };
            let batch = Batch { kind, statements: Statements::Slice(&each), parameters };
            let connection =
                node.connection_with_room().ok_or_else(|| ClusterError::NoNode { reason: node.error() })?;
            let answer = connection.call_until(&Request::Batch(batch), &Extras::default(), until).await?;
            match answer.error()? {
                None => return Ok(()),
                Some(error) if error.detail.code() == ErrorCode::Unprepared && !is_repeated => {
                    is_repeated = true;
                    statements.iter().for_each(|statement| statement.forget(node.address));
                }
                Some(error) => return Err(ClusterError::Server(error)),
            }
        }
    }
}

/// The consistency level that the native protocol numbers so.
pub(crate) fn consistency(number: u16) -> Consistency {
    Consistency::from_code(number).unwrap_or(Consistency::One)
}

/// Runs a statement of CQL 3 on the first node that can be asked.
///
/// # Errors
/// Those of the cluster.
pub(crate) async fn run(
    cluster: &Cluster,
    text: &str,
    request: &CqlRequest<'_>,
) -> Result<OwnedAnswer, ClusterError> {
    let bound: &[BoundValue<'_>] = match request.values {
        CqlValues::Positional(values) => values,
        CqlValues::Named(_) => &[],
    };
    let values: Vec<Value<'_>> = bound
        .iter()
        .map(|value| match value {
            BoundValue::Bytes(bytes) => Value::Bytes(bytes),
            BoundValue::Null => Value::Null,
            BoundValue::Unset => Value::Unset,
        })
        .collect();
    let (mut last, until) = (ClusterError::NoNode { reason: None }, cluster.until());
    for node in cluster.plan_by_room(None) {
        let Some(mut connection) = node.connection_with_room() else { continue };
        if let Some(keyspace) = request.keyspace.filter(|_| connection.version() < Version::V5) {
            connection = node.connection_in(keyspace, until).await?;
        }
        let parameters = QueryParameters {
            consistency: consistency(request.consistency),
            values: Values::positional(&values),
            keyspace: request.keyspace.filter(|_| connection.version() >= Version::V5),
            ..QueryParameters::default()
        };
        let query = Request::Query(Query { query: text, parameters });
        match connection.call_until(&query, &Extras::default(), until).await {
            Ok(answer) => return Ok(answer),
            Err(error) if error.was_sent() => return Err(error.into()),
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use helenus_cluster::{AnswerRoom, ClusterOptions};

    use super::scripted_node::{Then, node};
    use super::*;

    async fn cluster(then: Then, answers: &Arc<AnswerRoom>) -> Cluster {
        let (address, _) = node(then).await;
        let options = ClusterOptions {
            answers: Arc::clone(answers),
            timeout: Duration::from_secs(60),
            ..ClusterOptions::new(vec![address])
        };
        Cluster::connect(options).await.unwrap()
    }

    #[tokio::test]
    async fn statements_are_remembered_up_to_their_bytes() {
        let (address, counts) = node(Then::Void).await;
        let cluster = Cluster::connect(ClusterOptions::new(vec![address])).await.unwrap();
        let prepared = Prepared::default();
        for number in 0..64 {
            let text = format!("SELECT {number} {}", "c, ".repeat(300_000));
            prepared.get(&cluster, &text).await.unwrap();
            assert!(prepared.0.weight() <= BYTES_MAX, "{}", prepared.0.weight());
        }
        let before = counts.prepared.load(Ordering::SeqCst);
        for _ in 0..3 {
            prepared.get(&cluster, "SELECT k").await.unwrap();
        }
        assert_eq!(counts.prepared.load(Ordering::SeqCst), before + 1, "a short one is remembered");
        let long = format!("SELECT {}", "c, ".repeat(900_000));
        for _ in 0..3 {
            prepared.get(&cluster, &long).await.unwrap();
        }
        assert_eq!(counts.prepared.load(Ordering::SeqCst), before + 2, "so is one of a sixth of the memory");
        prepared.clear();
        assert_eq!(prepared.0.weight(), 0);
    }

    #[tokio::test]
    async fn a_page_that_is_too_long_is_asked_for_with_fewer_rows() {
        let answers = AnswerRoom::new(1 << 20);
        let sender = Sender {
            cluster: cluster(Then::Pages, &answers).await,
            prepared: Arc::default(),
            has_logins: false,
            consistency: Consistency::One,
            written: Arc::default(),
        };
        let bound = Bound { text: "SELECT v".to_owned(), values: Vec::new() };
        assert!(sender.page_ahead(&bound, 1000).await.unwrap().is_none(), "it waits for its turn");
        let page = sender.page(&bound, None, 1000).await.unwrap();
        assert_eq!(page.rows().unwrap().row_count, 15);
        assert!(answers.used() > 900_000, "{}", answers.used());
        // A short one that waits is counted too.
        let ahead = sender.page_ahead(&bound, 1).await.unwrap();
        assert!(ahead.is_none(), "the first one has the room");
        drop(page);
        let ahead = sender.page_ahead(&bound, 1).await.unwrap().unwrap();
        assert!(answers.used() >= 64 << 10);
        drop(ahead);
        assert_eq!(answers.used(), 0);
    }

    #[test]
    fn a_cache_has_a_part_for_each_8_mib_up_to_four() {
        for (mib, parts) in [(0, 1), (1, 1), (8, 1), (15, 1), (16, 2), (31, 2), (32, 4), (64, 4), (4096, 4)] {
            let cache = in_parts(mib << 20);
            assert_eq!(cache.num_shards(), parts, "{mib} MiB");
            assert_eq!(cache.shard_capacity(), (mib << 20).div_ceil(parts as u64), "{mib} MiB");
        }
    }
}

#[cfg(test)]
#[path = "../../cluster/tests/nodes/scripted_node.rs"]
pub(crate) mod scripted_node;
