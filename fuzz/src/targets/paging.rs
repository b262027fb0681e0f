//! Paging states, which clients keep and give back: whatever comes back, a page is rows of the statement's own answer, or it is
//! refused.

use helenus_cql::backend::{Backend, Identity, Outcome, Request, ResultColumns, RowsOut};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::memory;
use std::cell::RefCell;
use std::sync::Arc;

const PAGE_ROWS: u32 = 3;

const SCHEMA: [&str; 4] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE ks.t (k int, c text, d varint, s int static, v int, PRIMARY KEY (k, c, d)) \
     WITH CLUSTERING ORDER BY (c DESC, d ASC)",
    "CREATE INDEX ON ks.t (v)",
    "CREATE TABLE ks.plain (k text PRIMARY KEY, v int)",
];

/// A kind of paging each.
const STATEMENTS: [&str; 14] = [
    "SELECT k, c, d, s, v FROM ks.t",
    "SELECT * FROM ks.t WHERE k = 1",
    "SELECT * FROM ks.t WHERE k = 1 ORDER BY c ASC, d DESC",
    "SELECT * FROM ks.t WHERE k IN (0, 2, 1)",
    "SELECT * FROM ks.t WHERE k = 1 AND c IN ('c1', 'c3')",
    "SELECT * FROM ks.t WHERE v = 3",
    "SELECT * FROM ks.t WHERE v > 1 ALLOW FILTERING",
    "SELECT DISTINCT k, s FROM ks.t",
    "SELECT * FROM ks.t PER PARTITION LIMIT 4 LIMIT 9",
    "SELECT k, c, count(*) FROM ks.t GROUP BY k, c",
    "SELECT k, count(*) FROM ks.t WHERE v = 3 GROUP BY k",
    "SELECT * FROM ks.t WHERE token(k) > 0",
    "SELECT * FROM ks.plain",
    "DESCRIBE FULL SCHEMA",
];

thread_local! {
    /// The database, and what each statement answers without pages.
    static SERVED: RefCell<Option<(Arc<LocalBackend>, Answers)>> = const { RefCell::new(None) };
}

type Row = Vec<Option<Vec<u8>>>;
/// Rows by statement.
type Answers = Vec<Vec<Row>>;

/// Keeps the rows that come.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    row: Row,
}

impl RowsOut for Rows {
    fn columns(&mut self, _: &Arc<ResultColumns>) {}
    fn cell(&mut self, value: Option<&[u8]>) {
        self.row.push(value.map(<[u8]>::to_vec));
    }
    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }
    fn bytes(&self) -> usize {
        0
    }
    fn clear(&mut self) {
        *self = Rows::default();
    }
}

/// Rows and the state behind them; `None`: refused.
fn ask(
    backend: &LocalBackend,
    text: &str,
    page_size: Option<u32>,
    paging_state: Option<&[u8]>,
) -> Option<(Vec<Row>, Option<Vec<u8>>)> {
    let (identity, mut rows) = (Identity::default(), Rows::default());
    let request = Request { page_size, paging_state, ..Request::plain(&identity, &[]) };
    let state = match backend.query(text, &request, &mut rows).ok()?.outcome {
        Outcome::Rows { paging_state, .. } => paging_state,
        Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => {
            ticket.wait().unwrap_or_else(|error| panic!("{text}: {error}"));
            None
        }
        Outcome::UsedKeyspace(_) => None,
    };
    Some((rows.rows, state))
}

fn database() -> Arc<LocalBackend> {
    let options = DatabaseOptions { sync: None, ..DatabaseOptions::new("/db") };
    let (database, _) = Database::open(memory::host(), options).unwrap_or_else(|error| panic!("{error}"));
    let backend = LocalBackend::new(database, LocalOptions::default());
    let run = |text: &str| assert!(ask(&backend, text, None, None).is_some(), "{text}");
    SCHEMA.iter().for_each(|text| run(text));
    for row in 0..60 {
        let (k, c) = (row % 4, row % 5);
        run(&format!("INSERT INTO ks.t (k, c, d, v) VALUES ({k}, 'c{c}', {row}, {})", row % 6));
        run(&format!("INSERT INTO ks.plain (k, v) VALUES ('k{row}', {row})"));
        if row == 30 {
            backend.database().flush_all().unwrap_or_else(|error| panic!("{error}"));
        }
    }
    run("UPDATE ks.t SET s = 7 WHERE k = 2");
    run("UPDATE ks.t SET s = 8 WHERE k = 9");
    backend
}

/// The number of a statement, and a state that it gave.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    let backend = database();
    let mut corpus = Vec::new();
    for (number, text) in STATEMENTS.iter().enumerate() {
        let mut state: Option<Vec<u8>> = None;
        for _ in 0..8 {
            let asked = ask(&backend, text, Some(PAGE_ROWS), state.as_deref());
            let (_, next) = asked.unwrap_or_else(|| panic!("{text}"));
            let Some(next) = next else { break };
            corpus.push([&[number as u8][..], &next].concat());
            state = Some(next);
        }
    }
    corpus
}

pub(super) fn run(input: &[u8]) {
    let [number, state @ ..] = input else { return };
    let number = usize::from(*number) % STATEMENTS.len();
    SERVED.with_borrow_mut(|served| {
        let (backend, answers) = served.get_or_insert_with(|| {
            let backend = database();
            let whole = |text: &&str| ask(&backend, text, None, None).unwrap_or_else(|| panic!("{text}")).0;
            let answers = STATEMENTS.iter().map(whole).collect();
            (backend, answers)
        });
        let text = STATEMENTS[number];
        let Some((rows, _)) = ask(backend, text, Some(PAGE_ROWS), Some(state)) else { return };
        assert!(rows.len() <= PAGE_ROWS as usize, "{text}: a page of {} rows", rows.len());
        // A group may have been counted in part on the page before, and a limit may have been spent there. A range begins where
        // the state says, as in Cassandra, if need be before its own start.
        if !["count(", "LIMIT", "token("].iter().any(|word| text.contains(word)) {
            let strange = rows.iter().find(|row| !answers[number].contains(row));
            assert!(strange.is_none(), "{text}: {strange:02x?} is none of its rows");
        }
    });
}
