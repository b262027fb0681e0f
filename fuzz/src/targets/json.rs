//! JSON in statements, on a database: a document becomes a row, and what the row prints becomes the same row.

use helenus_cql::backend::{Backend, BoundValue, Identity, Outcome, Request, ResultColumns, RowsOut};
use helenus_cql::{LocalBackend, LocalOptions};
use helenus_engine::{Database, DatabaseOptions};
use helenus_host::memory;
use std::cell::RefCell;
use std::sync::Arc;

/// Inputs that one database serves: what they make stays in memory.
const INPUTS_MAX: u32 = 2000;

const TABLE: &str = "CREATE TABLE ks.j (k int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e date, f decimal, g double, \
    h duration, i float, j inet, l smallint, m text, n time, o timestamp, p timeuuid, q tinyint, r uuid, s varint, \
    t list<int>, u set<text>, v map<int, text>, w frozen<tuple<int, text>>, x frozen<map<text, list<double>>>, y u, \
    z vector<float, 2>, \"Quoted\" int)";

thread_local! {
    static SERVED: RefCell<Option<(Arc<LocalBackend>, u32)>> = const { RefCell::new(None) };
}

pub(super) fn corpus() -> Vec<Vec<u8>> {
    [
        r#"{"k": 1, "a": "x", "b": -9223372036854775808, "c": "0x00ff", "d": true, "e": "2026-11-22", "f": -1.50E+3, "g": 1e300}"#,
        r#"{"k": "7", "h": "1y2mo3w4d5h", "i": "NaN", "j": "2001:db8::1", "l": 32767, "m": "\u00e9\ud83d\ude00\n\"", "n": "01:02:03.000000004"}"#,
        r#"{"K": 2, "o": "2026-11-22 09:30:15.123+0000", "p": "50554d6e-29bb-11e5-b345-feff819cdc9f", "q": -128, "s": 123456789012345678901234567890}"#,
        r#"{"k": 3, "t": [1, 2, null], "u": ["b", "a", "a"], "v": {"1": "x", "2": null}, "w": [1, "y"], "x": {"a": [1.5, -0.0]}}"#,
        r#"{"k": 4, "y": {"a": 1, "b": "field", "\"C\"": 3}, "z": [0.5, -1], "\"Quoted\"": 5, "r": "5b6962dd-3f90-4c93-8f61-eabfa4a803e2"}"#,
        r#"{"k": 5, "m": null, "t": [], "u": [], "v": {}, "o": 1700000000123, "e": 2147483648, "d": "FALSE"}"#,
        "{ }", "[]", "null", "\"text\"", "{\"k\": {\"k\": [[[[]]]]}}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

/// Keeps the cells that come.
#[derive(Default)]
struct Cells(Vec<Option<Vec<u8>>>);

impl RowsOut for Cells {
    fn columns(&mut self, _: &Arc<ResultColumns>) {}
    fn cell(&mut self, value: Option<&[u8]>) {
        self.0.push(value.map(<[u8]>::to_vec));
    }
    fn end_row(&mut self) {}
    fn bytes(&self) -> usize {
        0
    }
    fn clear(&mut self) {
        self.0.clear();
    }
}

/// The cells of an answer, or the refusal.
fn ask(
    backend: &LocalBackend,
    text: &str,
    values: &[BoundValue<'_>],
) -> Result<Vec<Option<Vec<u8>>>, String> {
    let identity = Identity::default();
    let mut cells = Cells::default();
    let answer = backend.query(text, &Request::plain(&identity, values), &mut cells);
    match answer.map_err(|error| error.to_string())?.outcome {
        Outcome::Done(ticket) | Outcome::SchemaChanged(_, ticket) => {
            ticket.wait().map_err(|error| error.to_string())?;
        }
        _ => {}
    }
    Ok(cells.0)
}

fn database() -> Arc<LocalBackend> {
    let options = DatabaseOptions { sync: None, ..DatabaseOptions::new("/db") };
    let (database, _) = Database::open(memory::host(), options).unwrap_or_else(|error| panic!("{error}"));
    let backend = LocalBackend::new(database, LocalOptions::default());
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TYPE ks.u (a int, b text, \"C\" int)",
        TABLE,
    ] {
        ask(&backend, text, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    backend
}

/// The first millisecond of the year 1, and the last of the year 9999.
const READABLE_MS: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

/// Whether the timestamp of the row is of a year that reads as it prints. Cassandra's pattern `yyyy` (`TimestampSerializer`) puts
/// a plus before a longer year, which none of its patterns reads, and prints years before 1 as years after.
fn timestamp_is_readable(backend: &LocalBackend) -> bool {
    let read = ask(backend, "SELECT o FROM ks.j LIMIT 1", &[]).unwrap_or_else(|error| panic!("{error}"));
    let value = read.first().and_then(|cell| cell.as_deref()).and_then(|bytes| bytes.first_chunk::<8>());
    value.is_none_or(|bytes| READABLE_MS.contains(&i64::from_be_bytes(*bytes)))
}

pub(super) fn run(input: &[u8]) {
    SERVED.with_borrow_mut(|served| {
        if served.as_ref().is_none_or(|(_, count)| *count >= INPUTS_MAX) {
            *served = Some((database(), 0));
        }
        let Some((backend, count)) = served else { return };
        *count += 1;
        let backend: &LocalBackend = backend;
        let insert = "INSERT INTO ks.j JSON ?";
        if ask(backend, insert, &[BoundValue::Bytes(input)]).is_ok() {
            let read = || {
                let read = ask(backend, "SELECT JSON * FROM ks.j LIMIT 1", &[]);
                read.unwrap_or_else(|error| panic!("{error}"))
            };
            if let [Some(document)] = &read()[..] {
                let is_readable = timestamp_is_readable(backend);
                let again = ask(backend, insert, &[BoundValue::Bytes(document)]);
                if is_readable {
                    assert!(again.is_ok(), "{}: {again:?}", String::from_utf8_lossy(document));
                    assert_eq!(read(), [Some(document.clone())], "written again it is another");
                }
            }
            ask(backend, "TRUNCATE ks.j", &[]).unwrap_or_else(|error| panic!("{error}"));
        }
        // The same text as a value of one type.
        let one = "SELECT fromJson(?) AS v FROM system.local";
        let _refused = ask(backend, one, &[BoundValue::Bytes(input)]);
    });
}
