//! `helenus serve --gateway --rpc`: the same calls to tables of the cluster and to a local Helenus, whose answers are the same bytes.
//!
//! The local tables have COMPACT STORAGE; those of the cluster are what DROP COMPACT STORAGE makes of them.

use std::time::{Duration, Instant};

use end_to_end::{Calls, Cql, Server, is_result};
use helenus_wire::thrift::{
    Column, ColumnOrSuperColumn, ColumnPath, Compression, CounterColumn, Deletion, KeyRange, Map, Method,
    Mutation, SlicePredicate, SliceRange, args,
};

use crate::both::{Both, QUORUM, parent};
use crate::ring::Ring;

const KEYSPACE: &str = "gate_rpc";
/// Columns of the wide rows: more than a page of the gateway.
const COLUMNS: i64 = 1500;
/// Rows of the families.
const KEYS: u8 = 40;

/// The families: columns and options of the local table, and of the one at the cluster.
const FAMILIES: [(&str, &str, &str); 6] = [
    ("ascending", "n text, value blob, PRIMARY KEY (key, n))", ""),
    ("descending", "n text, value blob, PRIMARY KEY (key, n))", " WITH CLUSTERING ORDER BY (n DESC)"),
    ("composite", "n text, m bigint, value blob, PRIMARY KEY (key, n, m))", ""),
    ("counting", "n text, value counter, PRIMARY KEY (key, n))", ""),
    ("declared", "c0100 blob, c0300 blob, PRIMARY KEY (key))", ""),
    ("fixed", "a text, b text, PRIMARY KEY (key))", ""),
];

pub fn passes(ring: &Ring) {
    let cluster = Cql::connect(&ring.address(1));
    cluster.run(&format!("DROP KEYSPACE IF EXISTS {KEYSPACE}"));
    make_tables(&cluster, Some(ring.copies()));
    let gateway = Server::start_with(&["--gateway", &ring.address(1), "--rpc", "127.0.0.1:0"]);
    let local = Server::start_with(&["--rpc", "127.0.0.1:0"]);
    make_tables(&Cql::connect(local.address()), None);
    let mut both = Both { cluster: Calls::of(&gateway), local: Calls::of(&local) };
    both.same(Method::SetKeyspace, &args::OfKeyspace { keyspace: KEYSPACE });
    describing_calls_answer(&mut both);
    fill(&mut both);
    let asked = read(&mut both);
    assert!(asked > 200, "{asked} calls");
    deletions_delete(&mut both);
    statements_run(&mut both);
    tables_that_are_no_families_are_refused_with_the_reason(&cluster, &mut both.cluster);
    cluster.run(&format!("DROP KEYSPACE {KEYSPACE}"));
}

/// Makes the tables; `copies`: those at the cluster.
fn make_tables(cql: &Cql, copies: Option<u32>) {
    let (is_cluster, copies) = (copies.is_some(), copies.unwrap_or(1));
    cql.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {copies}}}"
    ));
    for (family, columns, options) in FAMILIES {
        let compact = match (is_cluster, options) {
            (true, _) => options.to_owned(),
            (false, "") => " WITH COMPACT STORAGE".to_owned(),
            (false, options) => format!("{options} AND COMPACT STORAGE"),
        };
        let columns = match (family, is_cluster) {
            ("declared", true) => {
                "column1 text, value blob, c0100 blob static, c0300 blob static, PRIMARY KEY (key, column1))"
            }
            _ => columns,
        };
        cql.run(&format!("CREATE TABLE {KEYSPACE}.{family} (key blob, {columns}{compact}"));
    }
}

fn describing_calls_answer(both: &mut Both) {
    both.same(Method::DescribeVersion, &args::OfKeyspace { keyspace: "" });
    both.same(Method::DescribePartitioner, &args::OfKeyspace { keyspace: "" });
    for method in [
        Method::DescribeClusterName,
        Method::DescribeKeyspaces,
        Method::DescribeKeyspace,
        Method::DescribeRing,
        Method::DescribeSchemaVersions,
        Method::DescribeSnitch,
    ] {
        let answer = both.cluster.exchange(method, &args::OfKeyspace { keyspace: KEYSPACE });
        assert!(is_result(&answer, method), "{method:?}: {}", String::from_utf8_lossy(&answer));
        if matches!(method, Method::DescribeKeyspace | Method::DescribeKeyspaces) {
            let text = String::from_utf8_lossy(&answer);
            for (family, ..) in FAMILIES {
                assert!(text.contains(family), "{method:?} without {family}: {text}");
            }
        }
    }
    both.compared(Method::SetKeyspace, &args::OfKeyspace { keyspace: "gate_missing" });
}

fn composite(number: i64) -> Vec<u8> {
    let text = format!("n{:03}", number / 10);
    let mut name = (text.len() as u16).to_be_bytes().to_vec();
    name.extend_from_slice(text.as_bytes());
    name.extend_from_slice(&[0, 0, 8]);
    name.extend_from_slice(&number.to_be_bytes());
    name.push(0);
    name
}

fn name(family: &str, number: i64) -> Vec<u8> {
    match family {
        "composite" => composite(number),
        "fixed" => vec![b"ab"[number as usize % 2]],
        _ => format!("c{number:04}").into_bytes(),
    }
}

fn insertion<'c>(column: &Column<'c>) -> Mutation<'c> {
    let column = Some(column.clone());
    let insertion =
        ColumnOrSuperColumn { column, super_column: None, counter_column: None, counter_super_column: None };
    Mutation { column_or_supercolumn: Some(insertion), deletion: None }
}

/// Writes by all calls that write.
fn fill(both: &mut Both) {
    for (family, ..) in FAMILIES {
        for key in 0..KEYS {
            let count = if key == 0 && family != "fixed" { COLUMNS } else { 3 + i64::from(key % 5) };
            let names: Vec<Vec<u8>> = (0..count).map(|number| name(family, number)).collect();
            let values: Vec<Vec<u8>> = (0..count).map(|number| vec![b'v'; number as usize % 60]).collect();
            let columns = names.iter().zip(&values).zip(0_i64..);
            if family == "counting" {
                for ((name, _), number) in columns.take(60) {
                    let column = CounterColumn { name, value: number };
                    let add = args::Add {
                        key: &[key],
                        column_parent: parent(family),
                        column,
                        consistency_level: QUORUM,
                    };
                    both.same(Method::Add, &add);
                }
                continue;
            }
            let columns: Vec<Column<'_>> = columns
                .map(|((name, value), number)| Column {
                    name,
                    value: Some(value),
                    timestamp: Some(1_000_000 + number),
                    ttl: None,
                })
                .collect();
            // One by itself, the others in batches.
            let (first, rest) = columns.split_first().expect("columns");
            let insert = args::Insert {
                key: &[key],
                column_parent: parent(family),
                column: first.clone(),
                consistency_level: QUORUM,
            };
            both.same(Method::Insert, &insert);
            for part in rest.chunks(200) {
                let mutations = part.iter().map(insertion).collect();
                let key: &[u8] = &[key];
                let batch = args::BatchMutate {
                    mutation_map: Map(vec![(key, Map(vec![(family, mutations)]))]),
                    consistency_level: QUORUM,
                };
                let method =
                    if part.len() % 2 == 0 { Method::BatchMutate } else { Method::AtomicBatchMutate };
                both.same(method, &batch);
            }
        }
    }
}

fn slice<'a>((start, finish): (&'a [u8], &'a [u8]), reversed: bool, count: i32) -> SlicePredicate<'a> {
    SlicePredicate { column_names: None, slice_range: Some(SliceRange { start, finish, reversed, count }) }
}

/// Reads by all calls that read. Returns the number of calls.
fn read(both: &mut Both) -> usize {
    let mut asked = 0;
    let empty: &[u8] = b"";
    for (family, ..) in FAMILIES {
        let bounds = [name(family, 30), name(family, 1203)];
        let (low, high) = (&bounds[0][..], &bounds[1][..]);
        let named: Vec<Vec<u8>> = [7, 100, 2, 300, 1400, 5000].map(|number| name(family, number)).into();
        let named: Vec<&[u8]> = named.iter().map(Vec::as_slice).collect();
        let mut predicates = vec![SlicePredicate { column_names: Some(named.clone()), slice_range: None }];
        for (reversed, count) in [(false, 10_000), (true, 10_000), (false, 100), (true, 7), (false, 1)] {
            for ends in [(empty, empty), (low, high), (high, low), (low, empty), (empty, low)] {
                predicates.push(slice(ends, reversed, count));
            }
        }
        for predicate in predicates {
            let (column_parent, consistency_level) = (parent(family), QUORUM);
            for key in [&[0_u8][..], &[3], &[200]] {
                let one = args::GetSlice {
                    key,
                    column_parent: column_parent.clone(),
                    predicate: predicate.clone(),
                    consistency_level,
                };
                both.compared(Method::GetSlice, &one);
                both.compared(Method::GetCount, &one);
                asked += 2;
            }
            let keys: Vec<&[u8]> = vec![&[3], &[0], &[9], &[17], &[4]];
            let many = args::MultigetSlice {
                keys,
                column_parent: column_parent.clone(),
                predicate: predicate.clone(),
                consistency_level,
            };
            both.compared(Method::MultigetSlice, &many);
            both.compared(Method::MultigetCount, &many);
            asked += 2;
        }
        for name in named {
            let column_path = ColumnPath { column_family: family, super_column: None, column: Some(name) };
            for key in [&[0_u8][..], &[200]] {
                let get = args::Get { key, column_path: column_path.clone(), consistency_level: QUORUM };
                both.compared(Method::Get, &get);
                asked += 1;
            }
        }
        asked += ranges(both, family, (low, high));
    }
    asked
}

fn ranges(both: &mut Both, family: &str, (low, high): (&[u8], &[u8])) -> usize {
    let mut asked = 0;
    let of_keys = |start, end, count| KeyRange {
        start_key: Some(start),
        end_key: Some(end),
        start_token: None,
        end_token: None,
        row_filter: None,
        count,
    };
    let of_tokens = |start, end, count| KeyRange {
        start_key: None,
        end_key: None,
        start_token: Some(start),
        end_token: Some(end),
        row_filter: None,
        count,
    };
    let least = "-9223372036854775808";
    for range in [
        of_keys(&b""[..], &b""[..], 100),
        of_keys(b"", b"", 5),
        of_keys(&[7], b"", 9),
        of_tokens(least, "0", 100),
        of_tokens("0", least, 100),
        of_tokens("4000000000000000000", "-4000000000000000000", 11),
    ] {
        for predicate in
            [slice((b"", b""), false, 20), slice((b"", b""), true, 2), slice((low, high), false, 3)]
        {
            let call = args::GetRangeSlices {
                column_parent: parent(family),
                predicate,
                range: range.clone(),
                consistency_level: QUORUM,
            };
            both.compared(Method::GetRangeSlices, &call);
            asked += 1;
        }
    }
    asked
}

fn deletions_delete(both: &mut Both) {
    let everything = |both: &mut Both, family: &str, key: u8| {
        let read = args::GetSlice {
            key: &[key],
            column_parent: parent(family),
            predicate: slice((b"", b""), false, 10_000),
            consistency_level: QUORUM,
        };
        both.same(Method::GetSlice, &read);
    };
    for (family, ..) in FAMILIES {
        let removed = name(family, 1);
        // Older than what is there, then newer; then the whole row.
        for (column, timestamp) in
            [(Some(&removed[..]), 5), (Some(&removed[..]), 2_000_000), (None, 2_000_000)]
        {
            let path = ColumnPath { column_family: family, super_column: None, column };
            if family == "counting" {
                let remove = args::RemoveCounter { key: &[3], path, consistency_level: QUORUM };
                both.same(Method::RemoveCounter, &remove);
            } else {
                let remove =
                    args::Remove { key: &[3], column_path: path, timestamp, consistency_level: Some(QUORUM) };
                both.same(Method::Remove, &remove);
            }
            everything(both, family, 3);
        }
        if family == "counting" {
            continue;
        }
        let (low, high) = (name(family, 1), name(family, 700));
        let deletion = |predicate| Mutation {
            column_or_supercolumn: None,
            deletion: Some(Deletion { timestamp: Some(3_000_000), super_column: None, predicate }),
        };
        let names = SlicePredicate { column_names: Some(vec![&low, &high]), slice_range: None };
        let mut mutations = vec![deletion(Some(names))];
        if !matches!(family, "descending" | "fixed") {
            mutations.push(deletion(Some(slice((&low, &high), false, 100))));
        }
        let key: &[u8] = &[0];
        let batch = args::BatchMutate {
            mutation_map: Map(vec![(key, Map(vec![(family, mutations)]))]),
            consistency_level: QUORUM,
        };
        both.same(Method::BatchMutate, &batch);
        everything(both, family, 0);
    }
    let truncate = args::OfColumnFamily { column_family: "ascending" };
    both.same(Method::Truncate, &truncate);
    everything(both, "ascending", 0);
}

fn statements_run(both: &mut Both) {
    for text in [
        "INSERT INTO fixed (key, a) VALUES (0x77, 'by CQL') USING TIMESTAMP 5",
        "SELECT key, a, b FROM fixed WHERE key = 0x77",
        "USE gate_rpc",
        "SELECT a FROM fixed WHERE key = 0x77",
    ] {
        let compression = Compression::None;
        let call = args::Cql3Query { query: text.as_bytes(), compression, consistency: QUORUM };
        both.same(Method::ExecuteCql3Query, &call);
    }
}

fn tables_that_are_no_families_are_refused_with_the_reason(cluster: &Cql, calls: &mut Calls) {
    cluster.run(&format!(
        "CREATE TABLE {KEYSPACE}.two (key blob, n text, a blob, b blob, PRIMARY KEY (key, n))"
    ));
    cluster.run(&format!("CREATE TABLE {KEYSPACE}.several (key blob PRIMARY KEY, l list<int>)"));
    for (family, why) in
        [("two", "clustering, and not exactly one other column"), ("several", "its column l is a collection")]
    {
        let read = args::GetSlice {
            key: &[1],
            column_parent: parent(family),
            predicate: slice((b"", b""), false, 1),
            consistency_level: QUORUM,
        };
        // The gateway learns of a table by an event.
        let until = Instant::now() + Duration::from_secs(30);
        let text = loop {
            let answer = calls.exchange(Method::GetSlice, &read);
            let text = String::from_utf8_lossy(&answer).into_owned();
            if !text.contains("unconfigured table") || Instant::now() > until {
                break text;
            }
            std::thread::yield_now();
        };
        assert!(text.contains(why), "{family}: {text}");
    }
    // A declared family without rows of its own takes no other names.
    let insert = args::Insert {
        key: &[1],
        column_parent: parent("fixed"),
        column: Column { name: b"unknown", value: Some(b"x"), timestamp: Some(1), ttl: None },
        consistency_level: QUORUM,
    };
    let answer = calls.exchange(Method::Insert, &insert);
    let text = String::from_utf8_lossy(&answer).into_owned();
    assert!(text.contains("table fixed has no column unknown"), "{text}");
}
