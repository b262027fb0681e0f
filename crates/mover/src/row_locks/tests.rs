//! The locks alone, and those who take them at a target that counts and appends like a cluster.

use super::*;
use crate::batches::ListName;
use crate::counters::{self, CounterRow};
use crate::lists;
use crate::scripted_target::{Answer, Asked, ScriptedMove};
use crate::target::SETTLE;
use helenus_model::types::CqlType;
use helenus_wire::native::Consistency;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Tasks that want one row.
const TASKS: usize = 16;

fn of_tests() -> TableId {
    TableId(Default::default())
}

fn name(key: u8, row: u8) -> RowName {
    RowName { key: vec![key], clustering: Some(vec![vec![row]]) }
}

fn is_ready<T>(future: &mut Pin<&mut impl Future<Output = T>>) -> bool {
    matches!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
}

#[tokio::test]
async fn a_row_is_held_by_one_task_and_waits_for_its_partition_and_its_table() {
    let locks = RowLocks::default();
    let one = locks.row(of_tests(), &name(1, 1)).await;
    let other = locks.row(of_tests(), &name(1, 2)).await;
    let sharing = locks.rows_of(of_tests()).await;
    let of_same = name(1, 1);
    let (mut same, mut partition, mut table) = (
        pin!(locks.row(of_tests(), &of_same)),
        pin!(locks.partition(of_tests(), &[1])),
        pin!(locks.table(of_tests())),
    );
    assert!(!is_ready(&mut same) && !is_ready(&mut partition));
    assert!(locks.partition(of_tests(), &[2]).await.doubt().is_none());
    one.done();
    // In the order in which they asked.
    same.await.done();
    other.done();
    assert!(!is_ready(&mut table));
    partition.await.done();
    sharing.done();
    table.await.done();
    assert!(locks.0.lock().used.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_is_dropped_leaves_its_row_in_doubt_until_another_has_ended() {
    let locks = RowLocks::default();
    let doubt = async |key, row| {
        let lock = locks.row(of_tests(), &name(key, row)).await;
        let doubt = lock.doubt();
        lock.done();
        doubt
    };
    let leave = |mut lock: RowLock, settle| lock.in_flight(settle);
    leave(locks.row(of_tests(), &name(1, 1)).await, None);
    assert_eq!(doubt(1, 1).await, None);
    leave(locks.row(of_tests(), &name(1, 1)).await, Some(SETTLE));
    let until = Some(tokio::time::Instant::now() + SETTLE);
    assert_eq!((doubt(1, 2).await, doubt(2, 1).await), (None, None));
    // It takes no doubt away, because it waits for nothing.
    locks.rows_of(of_tests()).await.done();
    assert_eq!(doubt(1, 1).await, until);
    assert_eq!(doubt(1, 1).await, None);
    leave(locks.row(of_tests(), &name(1, 1)).await, Some(SETTLE));
    let partition = locks.partition(of_tests(), &[1]).await;
    assert_eq!(partition.doubt(), until);
    leave(partition, Some(SETTLE));
    assert_eq!((doubt(1, 2).await, doubt(2, 1).await), (until, None));
    let whole = locks.table(of_tests()).await;
    assert_eq!(whole.doubt(), until);
    whole.done();
    assert_eq!(doubt(1, 1).await, None);
}

#[tokio::test]
async fn a_lock_of_a_row_looks_at_its_own_doubts_alone() {
    let locks = RowLocks::default();
    for row in 0..100 {
        locks.row(of_tests(), &name(1, row)).await.in_flight(Some(SETTLE));
    }
    assert_eq!(locks.0.lock().doubts.len(), 100);
    for row in 0..100 {
        let lock = locks.row(of_tests(), &name(1, row)).await;
        assert!(lock.doubt().is_some());
        lock.done();
        assert!(locks.row(of_tests(), &name(2, row)).await.doubt().is_none());
    }
    let places = locks.0.lock();
    assert_eq!((places.doubts.len(), places.looks), (0, 0));
}

/// A node with one counter.
fn counts(sum: Arc<Mutex<i64>>) -> impl FnMut(&Asked) -> Option<Answer> + Send {
    move |asked| {
        let mut sum = sum.lock();
        if asked.is_run_of("SELECT \"a\"") || asked.is_run_of("SELECT a") {
            let cell = Some(sum.to_be_bytes().to_vec());
            return Some(Answer::Rows(vec![("a", CqlType::Counter)], vec![vec![cell]]));
        }
        if asked.is_run_of("UPDATE ks.t") {
            let by = asked.values[0].as_ref().unwrap();
            *sum += i64::from_be_bytes(by[..].try_into().unwrap());
        }
        None
    }
}

const COUNTERS: [&str; 3] = [
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE ks.t (k int PRIMARY KEY, a counter)",
    "UPDATE ks.t SET a = a + 7 WHERE k = 1",
];

#[tokio::test]
async fn tasks_that_make_one_counter_equal_at_the_same_time_add_the_difference_once() {
    let sum = Arc::new(Mutex::new(2));
    let of = ScriptedMove::new(&COUNTERS, counts(Arc::clone(&sum))).await;
    let (table, name) =
        (of.target_of("t"), RowName { key: 1_i32.to_be_bytes().to_vec(), clustering: Some(Vec::new()) });
    let row = CounterRow { table: &table, name: &name, in_doubt: false };
    of.all((0..TASKS).map(|_| counters::make_equal(&of.context, &row))).await;
    assert_eq!(*sum.lock(), 7);
}

#[tokio::test]
async fn a_counter_whose_task_was_dropped_is_read_from_all_replicas_once_its_addition_cannot_be_run_any_more()
{
    let (sum, levels) = (Arc::new(Mutex::new(2)), Arc::new(Mutex::new(Vec::new())));
    let (mut counts, noted) = (counts(Arc::clone(&sum)), Arc::clone(&levels));
    let of = ScriptedMove::new(&COUNTERS, move |asked| {
        if asked.is_run_of("SELECT a") {
            noted.lock().push(asked.consistency);
        }
        counts(asked)
    });
    let of = of.await;
    let (table, name) =
        (of.target_of("t"), RowName { key: 1_i32.to_be_bytes().to_vec(), clustering: Some(Vec::new()) });
    let mut dropped = of.context.lock_row(table.table(), &name).await.unwrap();
    dropped.in_flight(Some(SETTLE));
    drop(dropped);
    let begun = tokio::time::Instant::now();
    tokio::time::pause();
    let lock = of.context.lock_row(table.table(), &name).await.unwrap();
    assert!(begun.elapsed() >= SETTLE - Duration::from_secs(1));
    tokio::time::resume();
    drop(lock);
    of.context.locks.0.lock().doubts.values_mut().for_each(|until| *until = begun);
    let row = CounterRow { table: &table, name: &name, in_doubt: false };
    counters::make_equal(&of.context, &row).await.unwrap();
    counters::make_equal(&of.context, &row).await.unwrap();
    assert_eq!(*sum.lock(), 7);
    assert_eq!(*levels.lock(), [Consistency::All, Consistency::LocalQuorum]);
}

#[tokio::test]
async fn tasks_that_send_one_list_at_the_same_time_append_it_once() {
    type Elements = Vec<(i64, Vec<u8>)>;
    let list: Arc<Mutex<Elements>> = Arc::default();
    let there = Arc::clone(&list);
    let collection = |parts: &mut dyn Iterator<Item = Vec<u8>>| {
        let parts: Vec<Vec<u8>> = parts.collect();
        let mut bytes = (parts.len() as i32).to_be_bytes().to_vec();
        for part in parts {
            bytes.extend((part.len() as i32).to_be_bytes());
            bytes.extend(part);
        }
        bytes
    };
    let of = |element: CqlType| CqlType::List { element: Arc::new(element), frozen: false };
    let script = move |asked: &Asked| {
        let mut list = there.lock();
        let stamp = || i64::from_be_bytes(asked.values[0].as_ref().unwrap()[..].try_into().unwrap());
        if asked.is_run_of("SELECT l") {
            let values = collection(&mut list.iter().map(|(_, value)| value.clone()));
            let times = collection(&mut list.iter().map(|(time, _)| time.to_be_bytes().to_vec()));
            let columns = vec![("l", of(CqlType::Text)), ("writetime(l)", of(CqlType::BigInt))];
            let cells = |bytes| (!list.is_empty()).then_some(bytes);
            return Some(Answer::Rows(columns, vec![vec![cells(values), cells(times)]]));
        }
        if asked.is_run_of("DELETE l") {
            list.retain(|(time, _)| *time > stamp());
        }
        if asked.is_run_of("UPDATE ks.t USING TIMESTAMP ? AND TTL ? SET l = l + ?") {
            let elements = helenus_model::types::Elements::of_list(asked.values[2].as_ref().unwrap());
            list.extend(elements.map(|element| (stamp(), element.unwrap().to_vec())));
        }
        None
    };
    let of = ScriptedMove::new(
        &[
            COUNTERS[0],
            "CREATE TABLE ks.t (k int PRIMARY KEY, l list<text>)",
            "INSERT INTO ks.t (k, l) VALUES (1, ['a', 'b'])",
        ],
        script,
    );
    let of = of.await;
    let (table, row) =
        (of.target_of("t"), RowName { key: 1_i32.to_be_bytes().to_vec(), clustering: Some(Vec::new()) });
    let name = ListName { row, column: table.table().column("l").unwrap().id };
    of.all((0..TASKS).map(|_| lists::send_present(&of.context, (&table, &name), i64::MIN))).await;
    let values: Vec<Vec<u8>> = list.lock().iter().map(|(_, value)| value.clone()).collect();
    assert_eq!(values, [b"a", b"b"]);
}
