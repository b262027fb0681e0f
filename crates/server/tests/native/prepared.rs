//! PREPARE and EXECUTE: when statements and their columns are described to a client.

use std::sync::atomic::Ordering;

use helenus_wire::native::*;

use crate::canned::Server;
use crate::client::{Answer, Client};

const KNOWN: [u8; 16] = [7; 16];
const ALTERED: [u8; 16] = [8; 16];

/// Prepares a statement; returns its id and the id of its columns.
fn prepare(client: &mut Client, query: &str) -> (Vec<u8>, Vec<u8>) {
    let answer = client.ask(Request::Prepare(Prepare { query, keyspace: None }));
    let Response::Result(ResultMessage::Prepared(prepared)) = answer.message().response else {
        panic!("a prepared statement: {:?}", answer.message())
    };
    (prepared.id.to_vec(), prepared.result_metadata_id.unwrap_or_default().to_vec())
}

fn execute(client: &mut Client, id: &[u8], metadata_id: &[u8], skip_metadata: bool) -> Answer {
    let values = [Value::Bytes(b"value")];
    let values = Values::positional(&values);
    let parameters = QueryParameters { skip_metadata, values, ..QueryParameters::default() };
    client.ask(Request::Execute(Execute { id, result_metadata_id: Some(metadata_id), parameters }))
}

/// Whether an answer describes its columns, and their new id if it has one.
fn described(answer: &Answer) -> (bool, Option<Vec<u8>>) {
    let Response::Result(ResultMessage::Rows(rows)) = answer.message().response else {
        panic!("rows: {:?}", answer.message())
    };
    assert_eq!((rows.row_count, rows.metadata.column_count), (2, 1));
    (!rows.metadata.columns.is_empty(), rows.metadata.changed_id.map(<[u8]>::to_vec))
}

#[test]
fn the_answer_to_prepare_describes_markers_key_and_columns() {
    let server = Server::start();
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[]);
        let answer = client.ask(Request::Prepare(Prepare { query: "rows 2 4", keyspace: None }));
        let Response::Result(ResultMessage::Prepared(prepared)) = answer.message().response else {
            panic!("a prepared statement")
        };
        assert_eq!(prepared.id, b"rows 2 4........");
        assert_eq!(prepared.result_metadata_id, (version >= Version::V5).then_some(KNOWN.as_slice()));
        assert!(!prepared.variables.is_empty());
        assert_eq!(prepared.result.column_count, 1);
        assert_eq!(prepared.partition_key, if version >= Version::V4 { &[0][..] } else { &[] });
        let answer = client.ask(Request::Prepare(Prepare { query: "write", keyspace: None }));
        let Response::Result(ResultMessage::Prepared(prepared)) = answer.message().response else {
            panic!("a prepared statement")
        };
        assert_eq!(prepared.result.column_count, 0);
        if version >= Version::V5 {
            let of_nothing = prepared.result_metadata_id.expect("an id in v5");
            assert_eq!(of_nothing[..4], [0xd4, 0x1d, 0x8c, 0xd9], "the MD5 of nothing");
        }
    }
}

#[test]
fn in_v5_columns_are_described_when_the_client_knows_others() {
    let server = Server::start();
    let mut client = Client::ready(server.address(), Version::V5, &[]);
    let (id, metadata_id) = prepare(&mut client, "rows 2 4");
    assert_eq!(metadata_id, KNOWN);
    assert_eq!(described(&execute(&mut client, &id, &KNOWN, true)), (false, None));
    assert_eq!(described(&execute(&mut client, &id, &KNOWN, false)), (true, None));
    // The table was altered: a client that asked to leave the columns out gets them nevertheless, with their new id.
    server.canned.altered.store(1, Ordering::Release);
    for skip in [true, false] {
        assert_eq!(described(&execute(&mut client, &id, &KNOWN, skip)), (true, Some(ALTERED.to_vec())));
    }
    assert_eq!(described(&execute(&mut client, &id, &ALTERED, true)), (false, None));
    assert_eq!(described(&execute(&mut client, &id, b"nonsense", true)), (true, Some(ALTERED.to_vec())));
}

#[test]
fn before_v5_columns_are_left_out_only_if_they_are_those_that_were_prepared() {
    let server = Server::start();
    for version in [Version::V3, Version::V4] {
        server.canned.altered.store(0, Ordering::Release);
        let mut client = Client::ready(server.address(), version, &[]);
        let (id, _) = prepare(&mut client, "rows 2 4");
        assert_eq!(described(&execute(&mut client, &id, b"", true)), (false, None));
        assert_eq!(described(&execute(&mut client, &id, b"", false)), (true, None));
        server.canned.altered.store(1, Ordering::Release);
        assert_eq!(described(&execute(&mut client, &id, b"", true)), (true, None));
    }
}

#[test]
fn an_executed_write_is_done_and_batches_take_prepared_statements() {
    let server = Server::start();
    for version in Version::ALL {
        let mut client = Client::ready(server.address(), version, &[]);
        let (id, metadata_id) = prepare(&mut client, "write");
        let answer = execute(&mut client, &id, &metadata_id, true);
        assert_eq!(answer.message().response, Response::Result(ResultMessage::Void));
    }
}

#[test]
fn a_client_is_warned_once_that_its_statements_depend_on_its_keyspace() {
    let server = Server::start();
    let warnings = |answer: &Answer| answer.message().warnings.iter().map(str::to_owned).collect::<Vec<_>>();
    let prepare = |query| Request::Prepare(Prepare { query, keyspace: None });
    let mut client = Client::ready(server.address(), Version::V4, &[]);
    client.query("use k1");
    assert_eq!(warnings(&client.ask(prepare("write"))), [""; 0], "it names its keyspace");
    let warned = warnings(&client.ask(prepare("write unqualified")));
    let [text] = &warned[..] else { panic!("{warned:?}") };
    assert!(
        text.starts_with("`USE <keyspace>` with prepared statements is considered to be an anti-pattern")
    );
    let id = "777269746520756e7175616c69666965";
    assert!(
        text.ends_with(&format!("Keyspace used: k1, statement keyspace: k1, statement id: {id}")),
        "{text}"
    );
    assert_eq!(warnings(&client.ask(prepare("write unqualified"))), [""; 0], "once is enough");
    // Another client runs the statement in another keyspace.
    let mut other = Client::ready(server.address(), Version::V5, &[]);
    other.query("use k2");
    let warned = warnings(&execute(&mut other, b"write unqualifie", b"", false));
    let [text] = &warned[..] else { panic!("{warned:?}") };
    assert!(
        text.ends_with(&format!("Keyspace used: k2, statement keyspace: k1, statement id: {id}")),
        "{text}"
    );
    assert_eq!(warnings(&execute(&mut other, b"write unqualifie", b"", false)), [""; 0]);
}
