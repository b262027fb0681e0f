//! The cases of `tests/drivers/README.md`, but for `types`. This driver speaks v4, so there is no `metadata_id`.

use scylla::client::Compression;
use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::response::{PagingState, PagingStateResponse};
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::value::{MaybeUnset, Unset};

use crate::run::{KEYSPACE, Outcome, all, connect, equal, table};
use crate::types::types;

/// The names of all cases, in order.
pub const NAMES: &[&str] = &[
    "connect",
    "schema",
    "types",
    "simple",
    "prepared",
    "batch",
    "paging",
    "slices",
    "errors",
    "compression",
    "tracing",
    "events",
    "reprepare",
];

/// Runs the case `name`.
pub async fn run(name: &str, address: &str, session: &Session) -> Outcome {
    match name {
        "connect" => connected(session),
        "schema" => schema(session).await,
        "types" => types(session).await,
        "simple" => simple(session).await,
        "prepared" => prepared(session).await,
        "batch" => batch(session).await,
        "paging" => paging(session).await,
        "slices" => slices(session).await,
        "errors" => errors(session).await,
        "compression" => compression(address, session).await,
        "tracing" => tracing(session).await,
        "events" => events(address, session).await,
        "reprepare" => reprepare(session).await,
        _ => Err(format!("no case {name}").into()),
    }
}

fn connected(session: &Session) -> Outcome {
    let state = session.get_cluster_state();
    let [node] = state.get_nodes_info() else { return Err("not one node".into()) };
    equal("datacenter", node.datacenter.as_deref(), Some("datacenter1"))?;
    equal("rack", node.rack.as_deref(), Some("rack1"))?;
    equal("tokens", state.replica_locator().ring().is_empty(), false)?;
    equal("system_schema", state.get_keyspace("system_schema").is_some(), true)
}

async fn schema(session: &Session) -> Outcome {
    let create = format!(
        "CREATE TABLE {KEYSPACE}.made (a int, b text, c timeuuid, s text static, v blob, PRIMARY KEY ((a, b), c)) \
         WITH CLUSTERING ORDER BY (c DESC)"
    );
    all(session, &[&format!("DROP TABLE IF EXISTS {KEYSPACE}.made"), &create]).await?;
    session.refresh_metadata().await?;
    let state = session.get_cluster_state();
    let made =
        state.get_keyspace(KEYSPACE).and_then(|keyspace| keyspace.tables.get("made")).ok_or("no metadata")?;
    equal("partition key", &made.partition_key, &vec!["a".to_owned(), "b".to_owned()])?;
    equal("clustering", &made.clustering_key, &vec!["c".to_owned()])?;
    equal("columns", made.columns.len(), 5)?;
    match database_error(session, &create).await? {
        DbError::AlreadyExists { table, .. } => equal("the existing table", table.as_str(), "made")?,
        other => return Err(format!("a second CREATE: {other}").into()),
    }
    all(
        session,
        &[
            &create.replace("TABLE", "TABLE IF NOT EXISTS"),
            &format!("ALTER TABLE {KEYSPACE}.made ADD w int"),
            &format!("DROP TABLE {KEYSPACE}.made"),
        ],
    )
    .await
}

async fn simple(session: &Session) -> Outcome {
    let full = table(session, "simple", "k int, c int, v text, PRIMARY KEY (k, c)").await?;
    session.query_unpaged(format!("INSERT INTO {full} (k, c, v) VALUES (?, ?, ?)"), (1, 2, "three")).await?;
    all(session, &[&format!("UPDATE {full} SET v = 'four' WHERE k = 1 AND c = 3")]).await?;
    let rows = session.query_unpaged(format!("SELECT c, v FROM {full}"), ()).await?.into_rows_result()?;
    let found: Vec<(i32, String)> = rows.rows()?.collect::<Result<_, _>>()?;
    equal("rows", found, vec![(2, "three".to_owned()), (3, "four".to_owned())])
}

async fn prepared(session: &Session) -> Outcome {
    let full = table(session, "prepared", "k int, c int, a int, b text, PRIMARY KEY (k, c)").await?;
    let insert = session.prepare(format!("INSERT INTO {full} (k, c, a, b) VALUES (?, ?, ?, ?)")).await?;
    session.execute_unpaged(&insert, (1, 1, 10, "ten")).await?;
    session.execute_unpaged(&insert, (1, 1, MaybeUnset::<i32>::Unset, None::<&str>)).await?;
    session.execute_unpaged(&insert, (1, 2, Unset, "b")).await?;
    let rows = session
        .query_unpaged(format!("SELECT a, b FROM {full} WHERE k = 1"), ())
        .await?
        .into_rows_result()?;
    let found: Vec<(Option<i32>, Option<String>)> = rows.rows()?.collect::<Result<_, _>>()?;
    equal("unset keeps, null deletes", found, vec![(Some(10), None), (None, Some("b".to_owned()))])
}

async fn batch(session: &Session) -> Outcome {
    let full = table(session, "batches", "k int, c int, v text, PRIMARY KEY (k, c)").await?;
    let insert = session.prepare(format!("INSERT INTO {full} (k, c, v) VALUES (?, ?, ?)")).await?;
    for (k, kind) in [(0, BatchType::Logged), (1, BatchType::Unlogged)] {
        let mut batch = Batch::new(kind);
        batch.set_timestamp(Some(777));
        for _ in 0..20 {
            batch.append_statement(insert.clone());
        }
        session.batch(&batch, (0..20).map(|c| (k, c, "v")).collect::<Vec<_>>()).await?;
        let count = format!("SELECT count(*), max(writetime(v)) FROM {full} WHERE k = {k}");
        let rows = session.query_unpaged(count, ()).await?.into_rows_result()?;
        equal("rows and timestamp", rows.single_row::<(i64, i64)>()?, (20, 777))?;
    }
    Ok(())
}

async fn paging(session: &Session) -> Outcome {
    let full = table(session, "paging", "k int, c int, PRIMARY KEY (k, c)").await?;
    let insert = session.prepare(format!("INSERT INTO {full} (k, c) VALUES (?, ?)")).await?;
    for c in 0..500 {
        session.execute_unpaged(&insert, (c % 7, c)).await?;
    }
    let select = Statement::new(format!("SELECT c FROM {full}")).with_page_size(40);
    let (mut state, mut found) = (PagingState::start(), Vec::new());
    loop {
        let (page, next) = session.query_single_page(select.clone(), (), state).await?;
        let rows = page.into_rows_result()?;
        found.extend(rows.rows::<(i32,)>()?.collect::<Result<Vec<_>, _>>()?.into_iter().map(|(c,)| c));
        let PagingStateResponse::HasMorePages { state: next } = next else { break };
        equal("a page", rows.rows_num(), 40)?;
        state = next;
    }
    found.sort_unstable();
    equal("rows", found, (0..500).collect())
}

async fn slices(session: &Session) -> Outcome {
    for order in ["ASC", "DESC"] {
        let columns =
            format!("k text, c text, v int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c {order}");
        let full = table(session, "slices", &columns).await?;
        let insert = session.prepare(format!("INSERT INTO {full} (k, c, v) VALUES ('row', ?, ?)")).await?;
        for i in 0..300 {
            session.execute_unpaged(&insert, (format!("{i:04}"), i)).await?;
        }
        for (slice, expected) in [
            ("AND c = '0042'", vec![42]),
            ("AND c IN ('0200', '0007', 'none') ORDER BY c ASC", vec![7, 200]),
            ("AND c >= '0100' AND c < '0103' ORDER BY c ASC", vec![100, 101, 102]),
            ("AND c < '0100' ORDER BY c DESC LIMIT 3", vec![99, 98, 97]),
        ] {
            let select = format!("SELECT v FROM {full} WHERE k = 'row' {slice}");
            let rows = session.query_unpaged(select, ()).await?.into_rows_result()?;
            let found: Vec<(i32,)> = rows.rows()?.collect::<Result<_, _>>()?;
            equal(slice, found.into_iter().map(|(v,)| v).collect::<Vec<_>>(), expected)?;
        }
    }
    Ok(())
}

async fn errors(session: &Session) -> Outcome {
    for (kind, message, statement) in [
        (DbError::SyntaxError, "line 1:0 no viable alternative at input 'SELEC'", "SELEC * FROM x"),
        (DbError::Invalid, "keyspace absent does not exist", "SELECT * FROM absent.absent"),
        (
            DbError::ConfigError,
            "Unable to find replication strategy class",
            "CREATE KEYSPACE bad WITH replication = {'class': 'NoStrategy'}",
        ),
    ] {
        let error =
            session.query_unpaged(statement, ()).await.err().ok_or(format!("accepted: {statement}"))?;
        let text = format!("{error:?}");
        equal(statement, text.contains(message), true).map_err(|_| format!("{text} lacks '{message}'"))?;
        equal(statement, database_error(session, statement).await?, kind)?;
    }
    Ok(())
}

async fn compression(address: &str, session: &Session) -> Outcome {
    let full = table(session, "compression", "k int PRIMARY KEY, v text").await?;
    let text = "compressible ".repeat(25_000);
    for (k, kind) in [(1, Compression::Lz4), (2, Compression::Snappy)] {
        let other = connect(address).compression(Some(kind)).build().await?;
        other.query_unpaged(format!("INSERT INTO {full} (k, v) VALUES (?, ?)"), (k, &text)).await?;
        let select = format!("SELECT v FROM {full} WHERE k = {k}");
        let rows = other.query_unpaged(select, ()).await?.into_rows_result()?;
        equal("the text", rows.single_row::<(String,)>()?.0 == text, true)?;
    }
    Ok(())
}

async fn tracing(session: &Session) -> Outcome {
    let mut select = Statement::new("SELECT key FROM system.local");
    select.set_tracing(true);
    let id = session.query_unpaged(select, ()).await?.tracing_id().ok_or("no tracing id")?;
    let trace = session.get_tracing_info(&id).await?;
    equal("request", trace.request.as_deref(), Some("Execute CQL3 query"))?;
    equal("no events", trace.events.is_empty(), false)
}

/// Once in an interval (a minute, unless said otherwise) the driver reads again what events have named since.
async fn events(address: &str, session: &Session) -> Outcome {
    let interval = std::time::Duration::from_millis(200);
    let other = connect(address).cluster_metadata_refresh_interval(interval).build().await?;
    let name = format!("{KEYSPACE}_event");
    let create = format!(
        "CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    );
    let drop = format!("DROP KEYSPACE IF EXISTS {name}");
    all(session, &[&drop, &create]).await?;
    let limit = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while other.get_cluster_state().get_keyspace(&name).is_none() {
        if tokio::time::Instant::now() > limit {
            return Err("the keyspace is not in the other client's metadata after 20 s".into());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    all(session, &[&drop]).await
}

async fn reprepare(session: &Session) -> Outcome {
    let full = table(session, "reprepare", "k int PRIMARY KEY, v int").await?;
    let insert = session.prepare(format!("INSERT INTO {full} (k, v) VALUES (?, ?)")).await?;
    session.execute_unpaged(&insert, (1, 1)).await?;
    let again = format!("CREATE TABLE {full} (k int PRIMARY KEY, v int)");
    all(session, &[&format!("DROP TABLE {full}"), &again]).await?;
    session.execute_unpaged(&insert, (2, 2)).await?;
    let rows = session.query_unpaged(format!("SELECT k FROM {full}"), ()).await?.into_rows_result()?;
    equal("rows", rows.single_row::<(i32,)>()?, (2,))
}

/// The server's error for a statement that it must refuse.
async fn database_error(session: &Session, statement: &str) -> Result<DbError, Box<dyn std::error::Error>> {
    match session.query_unpaged(statement, ()).await {
        Err(ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, _))) => Ok(error),
        Err(other) => Err(other.into()),
        Ok(_) => Err(format!("accepted: {statement}").into()),
    }
}
