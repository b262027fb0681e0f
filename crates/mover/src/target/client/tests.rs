//! Turns and doubts at a target that answers by a script.

use super::*;
use crate::scripted_target::{Answer, ScriptedMove};
use crate::source::{Values, Write};
use helenus_wire::native::ErrorMessage;
use std::pin::pin;
use std::task::{Context, Waker};
use tokio::task::JoinSet;

const CREATE: [&str; 2] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE ks.t (k int PRIMARY KEY)",
];

/// More than the requests that may be in flight at first.
const STUCK: usize = 100;

#[tokio::test]
async fn batches_whose_replicas_are_down_keep_no_turn_from_others() {
    let (key, attempts) = (|key: i32| key.to_be_bytes().to_vec(), watch::Sender::new(0));
    let (counted, down) = (attempts.clone(), Some(key(1)));
    let of = ScriptedMove::new(&CREATE, move |asked| {
        if !asked.is_run_of("INSERT") || asked.values.first() != Some(&down) {
            return None;
        }
        counted.send_modify(|count| *count += 1);
        Some(Answer::Error(ErrorMessage::plain(ErrorCode::Overloaded, "down")))
    });
    let of = of.await;
    // A bound that is never kept: there are never more turns than at first.
    let order = MoveOrder { target_p99_ms: 0, ..of.order.clone() };
    let target = Arc::new(Target::connect(&order, of.stop.subscribe()).await.unwrap());
    let table = of.target_of("t");
    let batch = |of_key: i32| {
        let mut batch = Batch::new(&table, &key(of_key));
        let mut values = Values::default();
        values.put(&key(of_key));
        batch.writes.push(Write { kind: StatementKind::Insert, values });
        batch.count(0);
        batch
    };
    let mut stuck = JoinSet::new();
    for _ in 0..STUCK {
        let (target, batch) = (Arc::clone(&target), batch(1));
        stuck.spawn(async move { target.send(&batch).await });
    }
    attempts.subscribe().wait_for(|count| *count >= STUCK).await.unwrap();
    target.send(&batch(2)).await.unwrap();
    of.stop.send_replace(true);
    while let Some(ended) = stuck.join_next().await {
        assert!(matches!(ended.unwrap(), Err(MoveError::Stopped)));
    }
}

#[tokio::test]
async fn settling_waits_for_what_has_failed_by_then_and_not_for_reads() {
    let of = ScriptedMove::new(&[], |_| None).await;
    let target = &of.context.target;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    target.doubt(Some(SETTLE));
    {
        let mut settling = pin!(target.settle());
        assert!(settling.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        tokio::time::advance(SETTLE / 2).await;
        target.doubt(Some(SETTLE));
        settling.await.unwrap();
    }
    assert!(begun.elapsed() >= SETTLE && begun.elapsed() < SETTLE + SETTLE / 4);
    target.settle().await.unwrap();
    let begun = tokio::time::Instant::now();
    let failed = || ClusterError::Server(ErrorMessage::plain(ErrorCode::Overloaded, "too much"));
    target.retry_of_reads().after(failed()).await.unwrap();
    target.settle().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(target.last_error.lock().is_some());
    target.retry().after(failed()).await.unwrap();
    target.settle().await.unwrap();
    assert!(begun.elapsed() >= SETTLE / 4);
}
