//! Steps of a run at a target that answers by a script.

use super::*;
use crate::scripted_target::{Answer, ScriptedMove};
use crate::state::StateFile;
use crate::target::{SETTLE, SETTLE_TRUNCATE};
use helenus_model::types::CqlType;
use helenus_wire::native::{ErrorDetail, ErrorMessage, Failures, Progress};
use parking_lot::Mutex;

const CREATE: [&str; 2] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE ks.t (k int PRIMARY KEY, l list<int>) WITH cdc = true",
];

#[tokio::test]
async fn a_table_whose_log_is_lost_again_and_again_stops_and_says_what_to_do() {
    let of = ScriptedMove::new(&CREATE, |_| None).await;
    let gone = || ChangesError::Gone { oldest: Default::default() };
    for losses in 1..=LOG_LOSSES {
        of.with_table(|table| (table.position, table.done) = (Some("some".to_owned()), vec![0]));
        let goes_on = goes_on(&of.context, 0, Error::Changes(gone()).into()).await;
        assert_eq!(goes_on, losses < LOG_LOSSES);
        assert_eq!(of.with_table(|table| (table.begun_anew, table.position.clone())), (losses, None));
    }
    let reason = of.with_table(|table| table.stopped.take()).unwrap();
    assert!(reason.contains("cdc_total_space") && reason.contains("cdc_retention"), "{reason}");
    let saved = of.context.file.read().unwrap().unwrap();
    assert!(saved.tables[0].stopped.is_some(), "a restart would go on");
    // A tail that gets to the end of the changes begins the count anew.
    let following = tokio::spawn(table(Arc::clone(&of.context), 0, true));
    let question = of.context.drain.ask();
    of.context.drain.all(question).await;
    assert_eq!(of.with_table(|table| (table.begun_anew, table.log_losses)), (LOG_LOSSES, 0));
    of.stop.send_replace(true);
    following.await.unwrap();
    assert_eq!(of.with_table(|table| table.stopped.take()), None);
}

#[tokio::test]
async fn lists_are_not_sent_again_after_a_restart_before_the_requests_of_the_run_before_are_over() {
    let of = ScriptedMove::new(&CREATE, |_| None).await;
    let table = of.table("t");
    let cleared = async |is_repeated: bool| {
        if is_repeated {
            of.context.repeat();
        }
        let begun = tokio::time::Instant::now();
        clear(&of.context, 0, &table).await.unwrap();
        begun.elapsed()
    };
    tokio::time::pause();
    of.context.target.doubt(Some(SETTLE));
    assert_eq!(cleared(false).await, Duration::ZERO);
    assert!(cleared(true).await >= SETTLE);
    assert_eq!(cleared(true).await, Duration::ZERO);
}

#[tokio::test]
async fn a_table_whose_tombstones_let_no_read_end_has_rows() {
    let answers: Arc<Mutex<Vec<Answer>>> = Arc::default();
    let of_node = Arc::clone(&answers);
    let of = ScriptedMove::new(&CREATE, move |asked| {
        asked.text.starts_with("SELECT * FROM ks.t").then(|| of_node.lock().pop()).flatten()
    });
    let of = of.await;
    let names = [("ks".to_owned(), "t".to_owned())];
    assert!(!has_rows(&of.context, &names).await.unwrap());
    let progress = Progress { consistency: Consistency::LocalQuorum, received: 0, block_for: 1 };
    let detail = ErrorDetail::ReadFailure { progress, failures: Failures::Count(1), data_present: false };
    answers.lock().push(Answer::Error(ErrorMessage { message: "tombstones".to_owned(), detail }));
    assert!(has_rows(&of.context, &names).await.unwrap());
}

#[tokio::test]
async fn a_truncate_that_may_be_under_way_is_in_the_state_and_waited_for_after_a_restart() {
    let file: Arc<Mutex<Option<StateFile>>> = Arc::default();
    let seen: Arc<Mutex<Vec<bool>>> = Arc::default();
    let (of_node, noted) = (Arc::clone(&file), Arc::clone(&seen));
    let of = ScriptedMove::new(&CREATE, move |asked| {
        if asked.is_run_of("TRUNCATE") {
            let saved = of_node.lock().as_ref().unwrap().read().unwrap().unwrap();
            noted.lock().push(saved.tables[0].truncates);
        }
        None
    });
    let of = of.await;
    *file.lock() = Some(of.context.file.clone());
    let table = of.table("t");
    of.context.truncate(0, &table).await.unwrap();
    assert_eq!(*seen.lock(), [true]);
    assert!(!of.with_table(|table| table.truncates));
    of.with_table(|table| table.truncates = true);
    tokio::time::pause();
    of.context.target.doubt(Some(SETTLE_TRUNCATE));
    let begun = tokio::time::Instant::now();
    clear(&of.context, 0, &table).await.unwrap();
    assert!(begun.elapsed() >= SETTLE_TRUNCATE && !of.with_table(|table| table.truncates));
}

/// What a node says of the schema that has the table.
fn schema_of_node(text: &str) -> Option<Answer> {
    let texts = |names: &[&'static str]| names.iter().map(|name| (*name, CqlType::Text)).collect();
    let cells = |cells: &[&str]| cells.iter().map(|cell| Some(cell.as_bytes().to_vec())).collect();
    if text.contains("FROM system_schema.keyspaces") {
        return Some(Answer::Rows(texts(&["keyspace_name"]), vec![cells(&["ks"])]));
    }
    if text.contains("FROM system_schema.columns") {
        let column = |name: &str, kind: &str, ty: &str, position: i32| {
            let mut cells: Vec<Option<Vec<u8>>> = cells(&["t", name, kind, ty]);
            cells.extend([Some(position.to_be_bytes().to_vec()), Some(b"none".to_vec())]);
            cells
        };
        let mut columns: Vec<(&'static str, CqlType)> = texts(&["table_name", "column_name", "kind", "type"]);
        columns.extend([("position", CqlType::Int), ("clustering_order", CqlType::Text)]);
        let rows = vec![column("k", "partition_key", "int", 0), column("l", "regular", "list<int>", -1)];
        return Some(Answer::Rows(columns, rows));
    }
    text.contains("FROM system_schema.tables").then(|| {
        let columns = vec![("table_name", CqlType::Text), ("id", CqlType::Uuid)];
        Answer::Rows(columns, vec![vec![Some(b"t".to_vec()), Some(vec![7; 16])]])
    })
}

#[tokio::test]
async fn a_node_that_is_behind_with_the_schema_is_not_taken_for_a_target_that_has_lost_the_table() {
    let behind = Arc::new(Mutex::new(vec!["system_schema.columns", "system_schema.tables"]));
    let (of_node, made) = (Arc::clone(&behind), Arc::new(Mutex::new(0)));
    let noted = Arc::clone(&made);
    let of = ScriptedMove::new(&CREATE, move |asked| {
        let mut behind = of_node.lock();
        // Each is asked once at a node that has no such table.
        if let Some(at) = behind.iter().position(|of| asked.text.contains(of)) {
            behind.remove(at);
            return Some(Answer::Rows(Vec::new(), Vec::new()));
        }
        *noted.lock() += usize::from(asked.is_run_of("CREATE") || asked.is_run_of("TRUNCATE"));
        schema_of_node(&asked.text)
    });
    let of = of.await;
    let (id, position) = ("07".repeat(16), Some("some".to_owned()));
    of.with_table(|table| (table.target_id, table.position) = (Some(id.clone()), position.clone()));
    make_table(&of.context, 0, true).await.unwrap();
    assert!(behind.lock().is_empty());
    assert_eq!(*made.lock(), 0);
    of.with_table(|table| {
        assert_eq!((table.begun_anew, &table.position), (0, &position));
        assert_eq!(table.target_id.as_ref(), Some(&id));
    });
}

#[tokio::test]
async fn a_table_that_waits_for_the_nodes_to_agree_is_looked_at_again_and_does_not_stop() {
    let of = ScriptedMove::new(&CREATE, |_| None).await;
    let error = make_table(&of.context, 0, false).await.unwrap_err();
    assert!(is_disagreement(&error), "{error}");
    tokio::time::pause();
    assert!(goes_on(&of.context, 0, error).await);
    assert_eq!(of.with_table(|table| table.stopped.take()), None);
    let told = of.context.target.last_error.lock().clone().unwrap();
    assert!(told.contains("ks.t: ") && told.contains("agreed on a schema"), "{told}");
}
