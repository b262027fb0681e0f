//! Repairs at a target that answers by a script.

use super::super::control::Verification;
use super::*;
use crate::remote::{Remote, RemoteTable};
use crate::scripted_target::{Answer, ScriptedMove};
use helenus_model::types::{CqlType, Elements};
use helenus_wire::native::{Consistency, ErrorDetail, ErrorMessage, Progress, WriteType};
use parking_lot::Mutex;

const KEYSPACE: &str =
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

/// Timestamp and value of each element.
type List = Vec<(i64, Vec<u8>)>;

fn job(of: &ScriptedMove) -> Arc<Job> {
    let (table, cluster) = (of.table("t"), &of.context.target.cluster);
    let (database, stopped) = (of.context.database(), of.stop.subscribe());
    Arc::new(Job {
        context: Arc::clone(&of.context),
        verification: Verification::of_tests(),
        remote: Arc::new(Remote::new(cluster, database, Consistency::LocalQuorum, stopped.clone())),
        table: Arc::new(RemoteTable::new(&table, &table, cluster)),
        target: of.target_of("t"),
        at: 0,
        place: 0,
        repairs: true,
        slack_s: 5,
        stopped,
    })
}

fn int(number: i32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

#[tokio::test]
async fn a_partition_of_many_range_tombstones_is_read_no_further_than_a_few_batches_ahead() {
    const RANGES: i32 = 3_000;
    let create = [KEYSPACE, "CREATE TABLE ks.t (k int, c int, a int, PRIMARY KEY (k, c))"];
    let of = ScriptedMove::new(&create, |_| None).await;
    for at in 0..RANGES {
        let (from, until) = (10 * at, 10 * at + 5);
        of.run(&format!(
            "DELETE FROM ks.t USING TIMESTAMP {} WHERE k = 1 AND c > {from} AND c < {until}",
            at + 1
        ));
    }
    let last = 10 * RANGES;
    of.run(&format!("INSERT INTO ks.t (k, c, a) VALUES (1, {last}, 1)"));
    // They lie between the two rows.
    let names = [-1, last].map(|row| RowName { key: int(1), clustering: Some(vec![int(row)]) });
    let (sender, mut batches) = mpsc::channel(AHEAD);
    let (job, watched) = (job(&of), sender.downgrade());
    let reading = tokio::task::spawn_blocking(move || {
        held(&job, PartitionKey::new(int(1)), &names, sender).map(|lists| lists.len())
    });
    while watched.upgrade().is_some_and(|sender| sender.capacity() > 0) {
        tokio::task::yield_now().await;
    }
    // It is full, and the reader waits with another one: it has not ended, which closes the channel.
    assert!(watched.upgrade().is_some());
    let (mut writes, mut largest) = (0, 0);
    while let Some(batch) = batches.recv().await {
        writes += batch.writes.len();
        largest = largest.max(batch.writes.len());
    }
    assert_eq!(reading.await.unwrap().unwrap(), 0);
    assert!(writes > RANGES as usize, "{writes}");
    assert!(largest <= 200, "{largest} writes in one batch");
}

#[tokio::test]
async fn range_tombstones_before_the_first_row_and_behind_the_last_are_not_sent() {
    let create = [KEYSPACE, "CREATE TABLE ks.t (k int, c int, a int, s int static, PRIMARY KEY (k, c))"];
    let of = ScriptedMove::new(&create, |_| None).await;
    for at in 0..20 {
        let (from, until) = (10 * at, 10 * at + 5);
        of.run(&format!("DELETE FROM ks.t WHERE k = 1 AND c > {from} AND c < {until}"));
    }
    let job = job(&of);
    let sent = async |rows: &[Option<i32>]| {
        let name = |row: &Option<i32>| RowName { key: int(1), clustering: row.map(|row| vec![int(row)]) };
        let names: Vec<RowName> = rows.iter().map(name).collect();
        let (sender, mut batches) = mpsc::channel(AHEAD);
        let job = Arc::clone(&job);
        let reading = tokio::task::spawn_blocking(move || {
            held(&job, PartitionKey::new(int(1)), &names, sender).map(|lists| lists.len())
        });
        let mut writes = 0;
        while let Some(batch) = batches.recv().await {
            writes += batch.writes.len();
        }
        reading.await.unwrap().unwrap();
        writes
    };
    // Those of 52 and between both rows; that of 72 covers its row.
    assert_eq!(sent(&[Some(52), Some(70)]).await, 2);
    assert_eq!(sent(&[Some(72)]).await, 1);
    assert_eq!((sent(&[Some(77)]).await, sent(&[Some(-1)]).await, sent(&[None]).await), (0, 0, 0));
    assert_eq!(sent(&[Some(-1), Some(1_000)]).await, 20);
}

/// The first attempt is done there, and its answer is a time-out.
#[tokio::test]
async fn a_list_whose_repair_has_no_answer_is_not_appended_twice() {
    for is_done in [true, false] {
        let create = [
            KEYSPACE,
            "CREATE TABLE ks.t (k int PRIMARY KEY, l list<text>)",
            "INSERT INTO ks.t (k, l) VALUES (1, ['a', 'b']) USING TIMESTAMP 1000",
        ];
        let list: Arc<Mutex<List>> = Arc::default();
        let (there, mut attempts) = (Arc::clone(&list), 0);
        let mut late = List::new();
        let of = ScriptedMove::new(&create, move |asked| {
            let mut list = there.lock();
            let stamp = || i64::from_be_bytes(asked.values[0].as_ref().unwrap()[..].try_into().unwrap());
            if asked.is_run_of("SELECT k") {
                return Some(list_row(&list));
            }
            if asked.is_run_of("DELETE l") {
                let stamp = stamp();
                // What comes late is hidden by what was deleted since.
                late.retain(|(time, _)| *time > stamp);
                list.append(&mut late);
                list.retain(|(time, _)| *time > stamp);
            }
            if !asked.is_run_of("UPDATE ks.t USING TIMESTAMP ? AND TTL ? SET l = l + ?") {
                return None;
            }
            attempts += 1;
            let elements = Elements::of_list(asked.values[2].as_ref().unwrap());
            let elements = elements.map(|element| (stamp(), element.unwrap().to_vec()));
            match attempts == 1 && !is_done {
                true => late.extend(elements),
                false => list.extend(elements),
            }
            let progress = Progress { consistency: Consistency::LocalQuorum, received: 0, block_for: 1 };
            let write_type = WriteType::UnloggedBatch;
            let detail = ErrorDetail::WriteTimeout { progress, write_type, contentions: None };
            let error = ErrorMessage { message: "late".to_owned(), detail };
            (attempts == 1).then_some(Answer::Error(error))
        });
        let of = of.await;
        let name = RowName { key: int(1), clustering: Some(Vec::new()) };
        repair(&job(&of), &[name]).await.unwrap();
        let values: Vec<Vec<u8>> = list.lock().iter().map(|(_, value)| value.clone()).collect();
        assert_eq!(values, [b"a", b"b"], "{is_done}");
    }
}

/// The row of a list, with its times.
fn list_row(list: &[(i64, Vec<u8>)]) -> Answer {
    let collection = |parts: Vec<Option<Vec<u8>>>| {
        let mut bytes = int(parts.len() as i32);
        for part in parts {
            bytes.extend(part.as_ref().map_or(-1, |part| part.len() as i32).to_be_bytes());
            bytes.extend(part.unwrap_or_default());
        }
        Some(bytes).filter(|_| !list.is_empty())
    };
    let of = |element: CqlType| CqlType::List { element: Arc::new(element), frozen: false };
    let columns = vec![
        ("k", CqlType::Int),
        ("l", of(CqlType::Text)),
        ("writetime(l)", of(CqlType::BigInt)),
        ("ttl(l)", of(CqlType::Int)),
    ];
    let values = collection(list.iter().map(|(_, value)| Some(value.clone())).collect());
    let times = collection(list.iter().map(|(time, _)| Some(time.to_be_bytes().to_vec())).collect());
    let ttls = collection(list.iter().map(|_| None).collect());
    Answer::Rows(columns, vec![vec![Some(int(1)), values, times, ttls]])
}
