//! Steps of a run at a target that answers by a script.

use super::*;
use crate::scripted_target::{Answer, ScriptedMove};
use crate::target::SETTLE;
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
    let following = tokio::spawn(table(Arc::clone(&of.context), 0));
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
