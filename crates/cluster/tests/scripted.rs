//! The client against a node that answers by a script: versions, ids of prepared statements, and what was sent when a connection
//! ends.
#![allow(clippy::unwrap_used, reason = "a test ends where its expectation does")]

#[path = "nodes/scripted_node.rs"]
mod scripted_node;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helenus_cluster::{AnswerRoom, Asks, CallError, Cluster, ClusterError, ClusterOptions, Extras};
use helenus_wire::native::{Consistency, ErrorCode, Query, QueryParameters, Request, Version};
use scripted_node::{Says, Then, node, nodes};
use tokio::net::TcpListener;

/// A time that no test waits for.
fn until() -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_secs(60)
}

fn options(address: String) -> ClusterOptions {
    ClusterOptions {
        timeout: Duration::from_millis(300),
        connections: 1,
        ..ClusterOptions::new(vec![address])
    }
}

#[tokio::test]
async fn an_older_node_is_asked_in_its_version() {
    let (address, _) = node(Then::Void).await;
    let cluster = Cluster::connect(options(address)).await.unwrap();
    let topology = cluster.topology();
    assert_eq!((topology.local_dc.as_str(), topology.tokens()), ("east", [42].as_slice()));
    assert_eq!(topology.oldest_release(), "3.11.19");
    let node = cluster.pick(None).unwrap();
    assert_eq!(node.connection().unwrap().version(), Version::V4);
    cluster.query("INSERT", &[], Consistency::One).await.unwrap();
    cluster.wait_for_agreement(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn a_data_center_that_is_not_there_is_named_with_those_that_are() {
    let (address, _) = node(Then::Void).await;
    let error = Cluster::connect(ClusterOptions { local_dc: Some("west".to_owned()), ..options(address) })
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "the cluster has no data center 'west'; it has east");
}

#[tokio::test]
async fn a_statement_that_a_node_has_forgotten_is_prepared_again() {
    let (address, counts) = node(Then::UnpreparedOnce).await;
    let cluster = Cluster::connect(options(address)).await.unwrap();
    let statement = cluster.prepare("INSERT", None).await.unwrap();
    cluster.execute(&statement, &QueryParameters::default()).await.unwrap();
    cluster.execute(&statement, &QueryParameters::default()).await.unwrap();
    assert_eq!(counts.prepared.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_answer_that_is_lost_says_that_the_request_was_sent() {
    let (address, _) = node(Then::Close).await;
    let cluster = Cluster::connect(options(address)).await.unwrap();
    let error = cluster.query("INSERT", &[], Consistency::One).await.unwrap_err();
    assert!(matches!(&error, ClusterError::Call(CallError::Lost { .. })), "{error}");
    assert!(!error.may_repeat(false) && error.may_repeat(true));
}

#[tokio::test]
async fn a_request_without_an_answer_times_out_and_the_connection_goes_on() {
    let (address, _) = node(Then::Silence).await;
    let cluster = Cluster::connect(options(address)).await.unwrap();
    let error = cluster.query("INSERT", &[], Consistency::One).await.unwrap_err();
    assert!(matches!(&error, ClusterError::Call(CallError::Timeout { .. })), "{error}");
    assert!(!error.may_repeat(false));
    cluster.wait_for_agreement(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn nobody_there_is_said_for_each_contact_point() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let error = Cluster::connect(options(free.clone())).await.unwrap_err();
    assert!(error.to_string().contains(&free), "{error}");
}

/// Every kind of answer to every kind of request: whatever was not asked for ends the connection, so that what it has changed there concerns
/// nobody else, and the request is not sent again.
#[tokio::test]
async fn an_answer_that_nothing_asked_for_ends_the_connection_and_fails_the_request() {
    let answers = ["keyspace", "schema", "rows", "ready", "void"];
    for (asks, asked_for) in [
        (Asks::Statement, ["schema", "rows", "void"].as_slice()),
        (Asks::Rows, &["rows"]),
        (Asks::Write, &["rows", "void"]),
        (Asks::Keyspace, &["keyspace"]),
    ] {
        for text in answers {
            let (address, _) = node(Then::ByText).await;
            let cluster = Cluster::connect(options(address)).await.unwrap();
            let connection = cluster.pick(None).unwrap().connection().unwrap();
            let query = |query| Request::Query(Query { query, parameters: QueryParameters::default() });
            let waiting = {
                let connection = connection.clone();
                tokio::spawn(async move {
                    connection.call(&query("silence"), &Extras::default()).await.unwrap_err()
                })
            };
            let extras = Extras { asks, ..Extras::default() };
            let answer = connection.call(&query(text), &extras).await;
            if asked_for.contains(&text) {
                answer.unwrap();
                assert!(!connection.is_closed(), "{asks:?} {text}");
                waiting.abort();
                continue;
            }
            let error = answer.unwrap_err();
            assert!(matches!(&error, CallError::Unasked { .. }), "{asks:?} {text}: {error}");
            let error = ClusterError::Call(error);
            assert!(!error.may_repeat(true) && !error.may_repeat(false), "{error}");
            connection.closed().await;
            let lost = waiting.await.unwrap();
            assert!(matches!(&lost, CallError::Lost { .. } | CallError::NotSent { .. }), "{lost}");
        }
    }
}

#[tokio::test]
async fn a_long_answer_asks_for_room_before_it_is_taken_and_without_it_only_its_request_fails() {
    let (address, _) = node(Then::ByText).await;
    for (room, fits) in [(8 << 20, true), (1 << 20, false)] {
        let options = ClusterOptions {
            answers: AnswerRoom::new(room),
            timeout: Duration::from_secs(10),
            ..options(address.clone())
        };
        let cluster = Cluster::connect(options).await.unwrap();
        let connection = cluster.pick(None).unwrap().connection().unwrap();
        for _ in 0..3 {
            let query = Query { query: "long", parameters: QueryParameters::default() };
            let answer = connection.call(&Request::Query(query), &Extras::default()).await;
            assert_eq!(answer.is_ok(), fits, "{room}");
            if let Err(error) = answer {
                assert!(matches!(&error, CallError::TooLong { .. }), "{error}");
                assert!(!ClusterError::Call(error).may_repeat(true));
            }
            // The connection goes on behind it.
            let query = Query { query: "rows", parameters: QueryParameters::default() };
            connection.call(&Request::Query(query), &Extras::default()).await.unwrap();
        }
        assert!(!connection.is_closed());
    }
}

/// An answer that is dropped frees its stream like any other.
#[tokio::test]
async fn who_waits_for_the_stream_of_an_answer_that_is_dropped_goes_on() {
    let (address, _) = node(Then::ByText).await;
    let options = ClusterOptions {
        answers: AnswerRoom::new(1 << 20),
        timeout: Duration::from_secs(600),
        heartbeat: Duration::from_secs(600),
        in_flight_max: 1,
        ..options(address)
    };
    let cluster = Cluster::connect(options).await.unwrap();
    let connection = cluster.pick(None).unwrap().connection().unwrap();
    let call = async |query| {
        let query = Query { query, parameters: QueryParameters::default() };
        connection.call(&Request::Query(query), &Extras::default()).await
    };
    let both = async { tokio::join!(call("long"), call("rows")) };
    let (long, rows) = tokio::time::timeout(Duration::from_secs(60), both).await.expect("it is woken");
    assert!(matches!(long, Err(CallError::TooLong { .. })));
    rows.unwrap();
}

#[tokio::test]
async fn the_room_of_a_long_answer_is_kept_as_long_as_the_answer() {
    let (address, _) = node(Then::ByText).await;
    let answers = AnswerRoom::new(64 << 20);
    let options = ClusterOptions {
        answers: Arc::clone(&answers),
        timeout: Duration::from_secs(60),
        ..options(address)
    };
    let cluster = Cluster::connect(options).await.unwrap();
    let connection = cluster.pick(None).unwrap().connection().unwrap();
    let query = Query { query: "long", parameters: QueryParameters::default() };
    let kept = connection.call(&Request::Query(query), &Extras::default()).await.unwrap();
    assert!(answers.used() > 4 << 20);
    drop(kept);
    assert_eq!(answers.used(), 0);
    let query = Query { query: "rows", parameters: QueryParameters::default() };
    let short = connection.call(&Request::Query(query), &Extras::default()).await.unwrap();
    assert_eq!(answers.used(), 0);
    let length = short.body.len() as u64;
    let counted = short.counted(&answers).unwrap();
    assert_eq!(answers.used(), length);
    drop(counted);
    assert_eq!(answers.used(), 0);
}

#[tokio::test]
async fn keyspaces_that_clients_name_open_few_connections() {
    let (address, counts) = node(Then::ByText).await;
    let options = ClusterOptions { timeout: Duration::from_secs(60), ..options(address) };
    let cluster = Cluster::connect(options).await.unwrap();
    let node = cluster.pick(None).unwrap();
    let at_once = async |name: &'static str| {
        let mut waiting = Vec::new();
        for _ in 0..50 {
            let node = Arc::clone(&node);
            waiting.push(tokio::spawn(async move { node.connection_in(name, until()).await.map(drop) }));
        }
        let mut answers = Vec::new();
        for one in waiting {
            answers.push(one.await.unwrap());
        }
        answers
    };
    let before = counts.connections.load(Ordering::SeqCst);
    let begun = || counts.connections.load(Ordering::SeqCst) - before;
    assert!(at_once("app").await.iter().all(Result::is_ok));
    assert_eq!(begun(), 1, "one for all who ask at the same time");
    assert!(at_once("app").await.iter().all(Result::is_ok));
    assert_eq!(begun(), 1, "which stays");
    assert!(at_once("broken").await.iter().all(Result::is_err));
    assert_eq!(begun(), 2, "a failure is the answer to all");
    for number in 0..100 {
        let name = format!("nothing{number}");
        let error = node.connection_in(&name, until()).await.unwrap_err();
        assert_eq!(error.server().unwrap().message, format!("Keyspace '{name}' does not exist"));
    }
    assert_eq!(begun(), 2, "nor does a name that the node does not know");
    let open = counts.open.load(Ordering::SeqCst);
    for number in 0..200 {
        node.connection_in(&format!("app{number}"), until()).await.unwrap();
    }
    // Connections that are given up end on tasks of their own.
    while counts.open.load(Ordering::SeqCst) > open + 64 {
        tokio::task::yield_now().await;
    }
    assert!(node.connection_in("app199", until()).await.is_ok());
    assert_eq!(begun(), 202);
}

/// Every failure of a node, at either of the tables of keyspaces: none says that a keyspace does not exist.
#[tokio::test]
async fn a_node_that_fails_to_answer_does_not_say_that_a_keyspace_is_not_there() {
    let (address, _) = node(Then::ByText).await;
    let cluster = Cluster::connect(options(address)).await.unwrap();
    let node = cluster.pick(None).unwrap();
    for (name, code) in [
        ("overloaded", ErrorCode::Overloaded),
        ("bootstrapping", ErrorCode::IsBootstrapping),
        ("server", ErrorCode::Server),
        ("unauthorized", ErrorCode::Unauthorized),
        ("nothing", ErrorCode::Invalid),
    ] {
        for name in [name.to_owned(), format!("virtual{name}")] {
            for error in [
                node.connection_in(&name, until()).await.unwrap_err(),
                cluster.check_keyspace(&name, until()).await.unwrap_err(),
            ] {
                let error = error.server().expect("the node's own error");
                assert_eq!(error.detail.code(), code, "{name}");
                assert_eq!(error.message.contains("does not exist"), code == ErrorCode::Invalid, "{name}");
            }
        }
    }
    cluster.check_keyspace("app", until()).await.unwrap();
}

#[tokio::test]
async fn who_finds_a_node_full_asks_another_that_has_room() {
    let address = nodes(&[Says::Nothing, Says::Nothing]).await;
    let cluster = Cluster::connect(ClusterOptions {
        connections: 1,
        in_flight_max: 1,
        timeout: Duration::from_secs(60),
        ..options(address)
    })
    .await
    .unwrap();
    while cluster.plan(None).len() < 2 {
        tokio::task::yield_now().await;
    }
    let query = |text| Request::Query(Query { query: text, parameters: QueryParameters::default() });
    let waits = {
        let cluster = cluster.clone();
        tokio::spawn(async move { cluster.send(&query("SELECT silence"), None).await.map(drop) })
    };
    while !cluster.plan(None).iter().any(|node| node.is_full()) {
        tokio::task::yield_now().await;
    }
    for _ in 0..4 {
        let request = query("SELECT");
        let asked = tokio::time::timeout(Duration::from_secs(20), cluster.send(&request, None));
        asked.await.expect("the other node is idle").unwrap();
    }
    waits.abort();
}
