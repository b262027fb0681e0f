//! Rows that are found by an index, columns that are compared and set, and prepared statements, at a gateway and at a local server.
//!
//! The families are those of `rpc_definitions`.

use std::time::{SystemTime, UNIX_EPOCH};

use helenus_wire::thrift::{
    CASResult, Column, ColumnOrSuperColumn, ColumnPath, Compression, ConsistencyLevel, CqlPreparedResult,
    Field, IndexClause, IndexExpression, IndexOperator, KeyRange, Map, Method, Mutation, Reader, args,
};

use crate::both::{Both, QUORUM, everything, insert, parent, result_of};

const SERIAL: ConsistencyLevel = ConsistencyLevel::Serial;
/// Rows of the family with indexes: more than are read at the same time.
const ROWS: u8 = 90;

/// Finds rows of `users`.
pub fn rows_are_found_by_an_index(both: &mut Both) {
    for row in 0..ROWS {
        let key = format!("row {row}");
        let age = i64::from(row % 7).to_be_bytes();
        let state: &[u8] = [&b"UT"[..], b"WA", b"CA"][usize::from(row % 3)];
        let mutation = |name, value| {
            let column = Column { name, value: Some(value), timestamp: Some(1_000), ttl: None };
            let column = ColumnOrSuperColumn {
                column: Some(column),
                super_column: None,
                counter_column: None,
                counter_super_column: None,
            };
            Mutation { column_or_supercolumn: Some(column), deletion: None }
        };
        let mut mutations =
            vec![mutation(b"State", state), mutation(b"other", b"x"), mutation(b"zone", b"z")];
        if row % 5 != 0 {
            mutations.push(mutation(b"age", &age));
        }
        let mutation_map = Map(vec![(key.as_bytes(), Map(vec![("users", mutations)]))]);
        both.same(Method::BatchMutate, &args::BatchMutate { mutation_map, consistency_level: QUORUM });
    }
    // What an index found before does not match any more.
    insert_at(both, 2_000, "row 3", (b"State", b"NY"));
    let path = |column| ColumnPath { column_family: "users", super_column: None, column: Some(column) };
    let remove = args::Remove {
        key: b"row 6",
        column_path: path(&b"State"[..]),
        timestamp: 2_000,
        consistency_level: Some(QUORUM),
    };
    both.same(Method::Remove, &remove);
    let ages: Vec<[u8; 8]> = [2_i64, 4, 6].iter().map(|age| age.to_be_bytes()).collect();
    let is = |column_name, op, value| IndexExpression { column_name, op, value };
    use IndexOperator::{Eq, Gt, Gte, Lt, Lte};
    let clauses: Vec<Vec<IndexExpression<'_>>> = vec![
        vec![is(b"State", Eq, b"UT")],
        vec![is(b"State", Eq, b"nowhere")],
        vec![is(b"age", Eq, &ages[0])],
        vec![is(b"State", Eq, b"WA"), is(b"age", Gt, &ages[1])],
        vec![is(b"age", Lte, &ages[1]), is(b"State", Eq, b"CA"), is(b"other", Eq, b"x")],
        vec![is(b"State", Eq, b"UT"), is(b"age", Eq, &ages[2]), is(b"zone", Gte, b"y")],
        vec![is(b"age", Lt, &ages[1])],
        vec![is(b"other", Eq, b"x")],
        vec![],
    ];
    let mut found = 0;
    for expressions in clauses {
        for (count, columns) in [(100, 100), (7, 1), (1, 100)] {
            for start_key in [&b""[..], b"row 17"] {
                let clause = IndexClause { expressions: expressions.clone(), start_key, count };
                let call = args::GetIndexedSlices {
                    column_parent: parent("users"),
                    index_clause: clause,
                    column_predicate: everything(columns),
                    consistency_level: QUORUM,
                };
                found += usize::from(both.compared(Method::GetIndexedSlices, &call).len() > 200);
            }
            if expressions.is_empty() {
                continue;
            }
            let range = KeyRange {
                start_key: Some(b""),
                end_key: Some(b""),
                start_token: None,
                end_token: None,
                row_filter: Some(expressions.clone()),
                count,
            };
            let call = args::GetRangeSlices {
                column_parent: parent("users"),
                predicate: everything(columns),
                range,
                consistency_level: QUORUM,
            };
            both.same(Method::GetRangeSlices, &call);
        }
    }
    assert!(found > 10, "{found} answers with rows");
}

/// Inserts a column into `users`, with this timestamp.
pub fn insert_at(both: &mut Both, timestamp: i64, key: &str, (name, value): (&[u8], &[u8])) {
    let column = Column { name, value: Some(value), timestamp: Some(timestamp), ttl: None };
    let (key, column_parent) = (key.as_bytes(), parent("users"));
    both.same(Method::Insert, &args::Insert { key, column_parent, column, consistency_level: QUORUM });
}

type Pair<'a> = (&'a [u8], &'a [u8]);

fn columns<'a>(pairs: &[Pair<'a>], timestamp: Option<i64>) -> Option<Vec<Column<'a>>> {
    let column = |(name, value): &Pair<'a>| Column { name, value: Some(value), timestamp, ttl: None };
    Some(pairs.iter().map(column).collect())
}

/// Asks both to compare and set, and returns whether they did. The timestamps of what was there are the local server's alone.
fn swap(
    both: &mut Both,
    (column_family, key): (&str, &[u8]),
    (expected, updates): (&[Pair<'_>], &[Pair<'_>]),
) -> bool {
    let call = args::Cas {
        key,
        column_family,
        expected: columns(expected, None),
        updates: columns(updates, Some(1)),
        serial_consistency_level: SERIAL,
        commit_consistency_level: QUORUM,
    };
    let (cluster, local) = both.answers(Method::Cas, &call);
    let read = |answer: &[u8]| {
        let result = CASResult::read(&mut Reader::new(result_of(answer, Method::Cas))).expect("a result");
        let values = result.current_values.map(|columns| {
            let named = |column: Column<'_>| (column.name.to_vec(), column.value.map(<[u8]>::to_vec));
            columns.into_iter().map(named).collect::<Vec<_>>()
        });
        (result.success, values)
    };
    let (cluster, local) = (read(&cluster), read(&local));
    assert_eq!(cluster, local, "{column_family} {expected:?} {updates:?}");
    cluster.0
}

/// Compares and sets in `wide` and in a table without clustering.
pub fn columns_are_compared_and_set(both: &mut Both) {
    // Columns that are rows: whichever are expected are compared, and no other.
    let row = ("wide", &b"swapped"[..]);
    insert(both, row, (b"a", b"1"));
    insert(both, row, (b"b", b"2"));
    let cases: [(&[Pair<'_>], &[Pair<'_>], bool); 11] = [
        (&[(b"a", b"1")], &[(b"a", b"3")], true),
        (&[(b"a", b"1")], &[(b"a", b"4")], false),
        (&[(b"a", b"3"), (b"b", b"2")], &[(b"c", b"5")], true),
        (&[(b"a", b"3"), (b"b", b"1")], &[(b"c", b"6")], false),
        (&[(b"c", b"5"), (b"missing", b"x")], &[(b"a", b"7")], false),
        (&[(b"missing", b"x")], &[(b"a", b"7")], false),
        (&[(b"c", b"5")], &[], true),
        // Declared columns of the family, and both kinds at the same time.
        (&[(b"c", b"5")], &[(b"n", b"declared"), (b"d", b"8")], true),
        (&[(b"n", b"declared"), (b"d", b"8")], &[(b"n", b"again")], true),
        (&[(b"n", b"declared"), (b"d", b"8")], &[(b"a", b"9")], false),
        (&[(b"n", b"again")], &[(b"fresh", b"12345678"), (b"n", b"third")], true),
    ];
    for (expected, updates, is_done) in cases {
        assert_eq!(swap(both, row, (expected, updates)), is_done, "{expected:?} {updates:?}");
    }
    let text = b"SELECT key, column1, value, n, fresh FROM wide WHERE key = 'swapped'";
    let call = args::Cql3Query { query: text, compression: Compression::None, consistency: QUORUM };
    let answer = both.cluster.answer(Method::ExecuteCql3Query, &call);
    let shown = String::from_utf8_lossy(&answer);
    assert!(shown.contains("third") && shown.contains("12345678"), "{shown}");
    // A written column is newer than what the client has inserted, and it expires.
    let mut call = args::Cas {
        key: b"swapped",
        column_family: "wide",
        expected: columns(&[(b"c", b"5")], None),
        updates: Some(vec![Column { name: b"ttl", value: Some(b"x"), timestamp: Some(1), ttl: Some(1_000) }]),
        serial_consistency_level: ConsistencyLevel::LocalSerial,
        commit_consistency_level: QUORUM,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_micros() as i64;
    both.same(Method::Cas, &call);
    let column_path = ColumnPath { column_family: "wide", super_column: None, column: Some(b"ttl") };
    let get = args::Get { key: b"swapped", column_path, consistency_level: QUORUM };
    let answer = both.cluster.answer(Method::Get, &get);
    let found = ColumnOrSuperColumn::read(&mut Reader::new(result_of(&answer, Method::Get))).expect("one");
    let found = found.column.expect("a column");
    assert!(found.ttl.is_some_and(|ttl| (900..=1_000).contains(&ttl)), "{found:?}");
    assert!(found.timestamp.is_some_and(|timestamp| timestamp > now - 60_000_000), "{found:?}");
    // What is refused is refused by both, but for a row that is to have no column: a cluster is asked for that only where all columns
    // are declared.
    call.serial_consistency_level = QUORUM;
    both.refused(Method::Cas, &call, "Invalid consistency for conditional update");
    call.serial_consistency_level = SERIAL;
    call.commit_consistency_level = SERIAL;
    both.refused(Method::Cas, &call, "not supported as conditional update commit consistency");
    call.commit_consistency_level = QUORUM;
    call.column_family = "counting";
    both.refused(Method::Cas, &call, "invalid operation for commutative table counting");
    call.column_family = "wide";
    call.expected = None;
    let refused = both.cluster.exception(Method::Cas, &call);
    let refused = String::from_utf8_lossy(&refused);
    assert!(
        refused.contains("cas without expected columns cannot be asked of a cluster for wide"),
        "{refused}"
    );
    let made = |query: &'static str| args::Cql3Query {
        query: query.as_bytes(),
        compression: Compression::None,
        consistency: QUORUM,
    };
    let table = "CREATE TABLE fixed (key blob PRIMARY KEY, a text, b text)";
    both.cluster.answer(Method::ExecuteCql3Query, &made(table));
    let table = "CREATE TABLE fixed (key blob PRIMARY KEY, a text, b text) WITH COMPACT STORAGE";
    both.local.answer(Method::ExecuteCql3Query, &made(table));
    let cases: [(&[Pair<'_>], &[Pair<'_>], bool); 4] = [
        (&[], &[(b"a", b"1")], true),
        (&[], &[(b"b", b"2")], false),
        (&[(b"a", b"1")], &[(b"b", b"2")], true),
        (&[(b"a", b"1"), (b"b", b"3")], &[(b"a", b"4")], false),
    ];
    for (expected, updates, is_done) in cases {
        let row = ("fixed", &b"swapped"[..]);
        assert_eq!(swap(both, row, (expected, updates)), is_done, "{expected:?} {updates:?}");
        slice_values(both, row);
    }
}

/// Compares the columns of a row without their timestamps, which each side gives by itself.
fn slice_values(both: &mut Both, (column_family, key): (&str, &[u8])) {
    let read = args::GetSlice {
        key,
        column_parent: parent(column_family),
        predicate: everything(100),
        consistency_level: QUORUM,
    };
    let (cluster, local) = both.answers(Method::GetSlice, &read);
    let values = |answer: &[u8]| {
        let mut reader = Reader::new(result_of(answer, Method::GetSlice));
        let columns = Vec::<ColumnOrSuperColumn<'_>>::read(&mut reader).expect("columns");
        let columns = columns.into_iter().filter_map(|found| found.column);
        let pairs = columns.map(|column| (column.name.to_vec(), column.value.map(<[u8]>::to_vec)));
        pairs.collect::<Vec<_>>()
    };
    assert_eq!(values(&cluster), values(&local), "{column_family}");
}

/// Prepares and executes.
pub fn statements_are_prepared(both: &mut Both) {
    // By name of keyspace, and in the keyspace in use when it was prepared.
    for (text, values) in [
        ("INSERT INTO fixed (key, a, b) VALUES (?, ?, ?) USING TIMESTAMP 7", &[&b"p"[..], b"x", b"y"][..]),
        ("SELECT key, a, b FROM fixed WHERE key = ?", &[b"p"]),
        ("SELECT a FROM gate_rpc_definitions.fixed WHERE key = :which", &[b"nothing"]),
        ("SELECT b FROM fixed WHERE key = 0x70", &[]),
    ] {
        let call = args::CqlQuery { query: text.as_bytes(), compression: Compression::None };
        let (cluster, local) = both.answers(Method::PrepareCql3Query, &call);
        let read = |answer: &[u8]| {
            let bytes = result_of(answer, Method::PrepareCql3Query).to_vec();
            let result = CqlPreparedResult::read(&mut Reader::new(&bytes)).expect("a result");
            (result.item_id, format!("{:?} {:?}", result.variable_names, result.variable_types))
        };
        let ((cluster, of_cluster), (local, of_local)) = (read(&cluster), read(&local));
        assert_eq!(of_cluster, of_local, "{text}");
        let execute = |item_id| args::PreparedCql3 { item_id, values: values.to_vec(), consistency: QUORUM };
        let answers = (
            both.cluster.answer(Method::ExecutePreparedCql3Query, &execute(cluster)),
            both.local.answer(Method::ExecutePreparedCql3Query, &execute(local)),
        );
        assert!(answers.0 == answers.1, "{text}");
    }
    let call = args::CqlQuery { query: b"SELEC", compression: Compression::None };
    both.cluster.exception(Method::PrepareCql3Query, &call);
    let unknown = args::PreparedCql3 { item_id: 1, values: vec![], consistency: QUORUM };
    both.refused(Method::ExecutePreparedCql3Query, &unknown, "Prepared query with ID 1 not found");
}
