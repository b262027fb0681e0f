//! Reads of many partitions whose pages do not fit into the room that there is.

use super::*;
use crate::families::family_of;
use crate::statements::scripted_node::{Then, node};
use helenus_cluster::{AnswerRoom, Cluster, ClusterOptions};
use helenus_model::filter::{ClusteringFilter, Limits, Slice};
use helenus_model::row::RowView;
use helenus_model::schema::{ColumnKind, TableId};
use helenus_model::types::CqlType;
use helenus_wire::native::Consistency;
use std::time::Duration;

#[derive(Default)]
struct Count {
    partitions: Vec<Vec<u8>>,
    rows: u64,
}

impl RowSink for Count {
    fn partition(&mut self, key: &[u8], _: Option<RowView<'_>>) -> Result<(), helenus_engine::Error> {
        self.partitions.push(key.to_vec());
        Ok(())
    }

    fn row(&mut self, _: RowView<'_>) -> Result<RowOutcome, helenus_engine::Error> {
        self.rows += 1;
        Ok(RowOutcome::Counted)
    }

    fn partition_end(&mut self, _: u64) -> Result<RowOutcome, helenus_engine::Error> {
        Ok(RowOutcome::Skipped)
    }
}

/// A family whose rows are a name and a counter, as the scripted node answers.
fn family() -> Arc<Table> {
    let columns = [
        Column::new("key", ColumnKind::PartitionKey, CqlType::Blob),
        Column::new("column1", ColumnKind::Clustering, CqlType::Blob),
        Column::new("value", ColumnKind::Regular, CqlType::Counter),
    ];
    let table = Table::new(("ks", "t"), TableId(uuid::Uuid::nil()), columns);
    let flags = vec!["compound".to_owned(), "counter".to_owned()];
    Arc::new(family_of(&Table { flags, ..table }).unwrap())
}

#[test]
fn partitions_whose_pages_do_not_fit_together_are_read_one_after_the_other() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let answers = AnswerRoom::new(1 << 20);
    let options = |address| ClusterOptions {
        answers: Arc::clone(&answers),
        timeout: Duration::from_secs(60),
        ..ClusterOptions::new(vec![address])
    };
    let cluster = runtime.block_on(async {
        let (address, _) = node(Then::Pages).await;
        Cluster::connect(options(address)).await.unwrap()
    });
    let sender = Sender {
        cluster,
        prepared: Arc::default(),
        has_logins: false,
        consistency: Consistency::One,
        written: Arc::default(),
    };
    // A row has 64 KiB, so that a page fits of these by itself, and of the last ones not even that.
    for per_partition in [1, 2, 8, 15, 1000] {
        let keys: Vec<Vec<u8>> = (0..40_u8).map(|number| vec![number]).collect();
        let partitions = keys.iter().map(|key| PartitionKey::new(key.clone())).collect();
        let command = ReadCommand {
            table: family(),
            partitions: Partitions::Keys(partitions),
            filter: Arc::new(ClusteringFilter::Slices(vec![Slice::all()])),
            reversed: false,
            statics: false,
            columns: None,
            limits: Limits { rows: u64::MAX, per_partition },
            now_s: 0,
            resume: None,
            page_rows: None,
        };
        let (runtime, sender) = (runtime.handle(), sender.clone());
        let reading = Reading { runtime, sender, command: &command, found_by: None, cancelled: None };
        let mut count = Count::default();
        reading.run(&mut count).unwrap();
        assert_eq!(count.partitions, keys, "{per_partition}");
        // The node has one page for each, of as many rows as are asked for in the end.
        assert!((40..=40 * per_partition.min(15)).contains(&count.rows), "{per_partition}: {}", count.rows);
        // The task that reads the connection may be about to let go of the last one.
        while answers.used() > 0 {
            std::thread::yield_now();
        }
    }
}
