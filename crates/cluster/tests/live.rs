//! The client against a real cluster of three nodes with a data center `datacenter1`. By command:
//!
//!     tests/tools/cluster.sh start 3 /tmp/ring --port 9142
//!     HELENUS_CLUSTER=127.0.0.1:9142 cargo test -p helenus-cluster --test live -- --ignored
#![allow(clippy::unwrap_used, reason = "a test ends where its expectation does")]

use std::time::Duration;

use helenus_cluster::{Cluster, ClusterEvent, ClusterOptions, partition_key_token};
use helenus_wire::native::{Consistency, QueryParameters, Value, Values, Version};

fn options() -> ClusterOptions {
    let point = std::env::var("HELENUS_CLUSTER").unwrap_or_else(|_| "127.0.0.1:9142".to_owned());
    ClusterOptions::new(vec![point])
}

async fn all_is_done(options: ClusterOptions, keyspace: &str) {
    let cluster = Cluster::connect(options).await.unwrap();
    let mut events = cluster.events();
    assert_eq!(cluster.topology().nodes.len(), 3);
    let run = async |text: String| {
        cluster.query(&text, &[], Consistency::One).await.unwrap();
        cluster.wait_for_agreement(Duration::from_secs(20)).await.unwrap();
    };
    run(format!("DROP KEYSPACE IF EXISTS {keyspace}")).await;
    run(format!(
        "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 2}}"
    ))
    .await;
    run(format!("CREATE TABLE {keyspace}.t (a int, b text, c blob, PRIMARY KEY ((a, b)))")).await;
    let created = async {
        loop {
            if let ClusterEvent::Schema(change) = events.recv().await.unwrap()
                && change.keyspace == keyspace
            {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), created).await.unwrap();
    let known = async {
        while !cluster.topology().keyspaces.contains_key(keyspace) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), known).await.unwrap();

    let insert = cluster.prepare("INSERT INTO t (a, b, c) VALUES (?, ?, ?)", Some(keyspace)).await.unwrap();
    assert_eq!(insert.partition_key, [0, 1]);
    let select = format!("SELECT c FROM {keyspace}.t WHERE a = ? AND b = ?");
    let select = cluster.prepare(&select, None).await.unwrap();
    for number in 0..200_i32 {
        let (a, c) = (number.to_be_bytes(), vec![7; number as usize * 1000]);
        let values = [Value::Bytes(&a), Value::Bytes(b"x"), Value::Bytes(&c)];
        let token = partition_key_token(&[&a, b"x"]);
        assert_eq!(insert.token(|marker| values.get(marker).copied()), token);
        let holders = cluster.topology().replicas(keyspace, token.unwrap());
        assert_eq!(holders.len(), 2, "RF is 2");
        let picked = cluster.pick(Some((keyspace, token.unwrap()))).unwrap().host_id;
        assert!(holders.iter().any(|node| node.host_id == picked));
        let parameters = QueryParameters {
            consistency: Consistency::Quorum,
            values: Values::positional(&values),
            ..QueryParameters::default()
        };
        cluster.execute(&insert, &parameters).await.unwrap();
        let parameters = QueryParameters { values: Values::positional(&values[..2]), ..parameters };
        let answer = cluster.execute(&select, &parameters).await.unwrap();
        let rows = answer.rows().unwrap();
        let row = rows.iter().next().unwrap().unwrap();
        assert_eq!(row.cells().next().unwrap().unwrap(), &*c);
    }
    let error = cluster.query("SELECT * FROM nowhere.t", &[], Consistency::One).await.unwrap_err();
    assert!(error.server().is_some() && !error.may_repeat(true), "{error}");
    run(format!("DROP KEYSPACE {keyspace}")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn version_5_works() {
    all_is_done(options(), "cluster_v5").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn version_5_works_compressed() {
    all_is_done(ClusterOptions { compress: true, ..options() }, "cluster_lz4").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster"]
async fn version_4_works_compressed() {
    all_is_done(ClusterOptions { newest: Version::V4, compress: true, ..options() }, "cluster_v4").await;
}
