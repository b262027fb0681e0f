//! One side of the move: fills it, and reads whole tables of it by pages, each cell in the bytes that the server sent.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::deserialize::row::ColumnIterator;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::statement::Consistency;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;

use crate::state::{Answer, Span};
use crate::tables::{Kind, Table, place_bytes};

/// Batches that are under way during a fill.
const IN_FLIGHT: usize = 48;
/// How often a page is asked for.
const ATTEMPTS: u32 = 20;

type Cells = Vec<Option<Vec<u8>>>;

pub struct Side {
    runtime: Runtime,
    session: Arc<Session>,
}

/// Seconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs() as i64
}

/// A row with the seconds between which it was read.
pub struct ReadRow {
    pub cells: Cells,
    pub read: Span,
}

impl Side {
    pub fn connect(address: &str) -> Side {
        let runtime = Runtime::new().expect("a runtime for the driver");
        let session = runtime.block_on(SessionBuilder::new().known_node(address).build());
        let session = session.unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"));
        Side { runtime, session: Arc::new(session) }
    }

    /// Runs these statements, many at a time. Each must be done.
    pub fn run_all(&self, statements: impl Iterator<Item = String>) {
        self.runtime.block_on(async {
            let mut running = JoinSet::new();
            for text in statements {
                let session = Arc::clone(&self.session);
                running.spawn(async move { session.query_unpaged(text, ()).await.map(|_| ()) });
                if running.len() >= IN_FLIGHT {
                    running.join_next().await.expect("a task").expect("a task").expect("a write of the fill");
                }
            }
            while let Some(done) = running.join_next().await {
                done.expect("a task").expect("a write of the fill");
            }
        });
    }

    /// Writes the rows of these chunks of a table with one column, each chunk in a batch.
    pub fn fill_plain(&self, table: &'static Table, chunks: u32) {
        let insert = format!("INSERT INTO {} (p, c, v) VALUES (?, ?, ?) USING TIMESTAMP ?", table.name);
        self.runtime.block_on(async {
            let insert = self.session.prepare(insert).await.expect("a statement");
            let mut batch = Batch::new(BatchType::Unlogged);
            (0..table.rows).for_each(|_| batch.append_statement(insert.clone()));
            let batch = Arc::new(batch);
            let mut running = JoinSet::new();
            for chunk in 0..chunks {
                let (session, batch) = (Arc::clone(&self.session), Arc::clone(&batch));
                running.spawn(async move {
                    let values: Vec<(i32, i32, String, i64)> = (0..table.rows)
                        .map(|row| {
                            let ((p, c), (value, at)) = (table.key(chunk, row), table.plain_row(chunk, row));
                            (p, c, value, at)
                        })
                        .collect();
                    session.batch(&batch, values).await.map(|_| ())
                });
                if running.len() >= IN_FLIGHT {
                    running.join_next().await.expect("a task").expect("a task").expect("a write of the fill");
                }
            }
            while let Some(done) = running.join_next().await {
                done.expect("a task").expect("a write of the fill");
            }
        });
    }

    /// The rows of a SELECT, by pages that are read ahead.
    pub fn read(&self, statement: &str, page: i32) -> Rows {
        let (sender, pages) = channel(2);
        let session = Arc::clone(&self.session);
        let mut statement = Statement::new(statement).with_page_size(page);
        statement.set_consistency(Consistency::Quorum);
        statement.set_request_timeout(Some(Duration::from_secs(60)));
        self.runtime.spawn(async move {
            let mut state = PagingState::start();
            loop {
                let (rows, next) = page_of(&session, &statement, state).await;
                if sender.send(rows).await.is_err() {
                    return;
                }
                match next {
                    PagingStateResponse::HasMorePages { state: next } => state = next,
                    PagingStateResponse::NoMorePages => return,
                }
            }
        });
        Rows { pages, page: Vec::new().into_iter() }
    }
}

async fn page_of(
    session: &Session,
    statement: &Statement,
    state: PagingState,
) -> (Vec<ReadRow>, PagingStateResponse) {
    let mut attempt = 0;
    loop {
        let begin = now();
        match session.query_single_page(statement.clone(), (), state.clone()).await {
            Ok((result, next)) => {
                let read = (begin, now());
                let result = result.into_rows_result().expect("rows");
                let rows = result.rows::<ColumnIterator<'_, '_>>().expect("rows");
                let rows = rows.map(|row| {
                    let columns = row.expect("a row").map(|column| column.expect("a column").slice);
                    let cells = columns.map(|slice| slice.map(|slice| slice.as_slice().to_vec()));
                    ReadRow { cells: cells.collect(), read }
                });
                return (rows.collect(), next);
            }
            Err(error) => {
                attempt += 1;
                assert!(attempt < ATTEMPTS, "{}: {error}", statement.contents);
            }
        }
    }
}

/// Rows that arrive by pages.
pub struct Rows {
    pages: Receiver<Vec<ReadRow>>,
    page: std::vec::IntoIter<ReadRow>,
}

impl Iterator for Rows {
    type Item = ReadRow;

    fn next(&mut self) -> Option<ReadRow> {
        loop {
            if let Some(row) = self.page.next() {
                return Some(row);
            }
            self.page = self.pages.blocking_recv()?.into_iter();
        }
    }
}

/// A row of `Table::selection` as an answer.
pub fn answer(table: &Table, row: ReadRow) -> Answer {
    let mut cells = row.cells.into_iter();
    let mut answer =
        Answer { bytes: cells.by_ref().take(2).collect(), expires: Vec::with_capacity(table.columns.len()) };
    for column in table.columns {
        let (value, times, ttls) = (cells.next().flatten(), cells.next().flatten(), cells.next().flatten());
        let ttls = match column.kind {
            Kind::Int | Kind::Text | Kind::Frozen => vec![ttls],
            _ => parts(&ttls.unwrap_or_default()),
        };
        let expiry = |ttl: &Option<Vec<u8>>| {
            let ttl = i32::from_be_bytes(ttl.as_deref()?.try_into().ok()?);
            Some((row.read.0 + i64::from(ttl), row.read.1 + i64::from(ttl) + 1))
        };
        answer.expires.push(ttls.iter().map(expiry).collect());
        answer.bytes.push(if column.kind == Kind::Place {
            value.map(|value| whole_place(&value))
        } else {
            value
        });
        answer.bytes.push(times);
    }
    answer
}

/// The elements of a list.
pub fn parts(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let Some((count, mut rest)) = bytes.split_first_chunk::<4>() else { return Vec::new() };
    let mut all = Vec::new();
    for _ in 0..i32::from_be_bytes(*count) {
        let (part, after) = part(rest);
        all.push(part.map(<[u8]>::to_vec));
        rest = after;
    }
    all
}

fn part(bytes: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return (None, &[]) };
    match usize::try_from(i32::from_be_bytes(*length)) {
        Ok(length) => (Some(&rest[..length]), &rest[length..]),
        Err(_) => (None, rest),
    }
}

/// A value may leave out fields at its end.
fn whole_place(bytes: &[u8]) -> Vec<u8> {
    let (street, rest) = part(bytes);
    place_bytes([street, part(rest).0])
}
