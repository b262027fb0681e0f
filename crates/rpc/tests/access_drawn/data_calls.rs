//! Drawn calls that read and write column families.

use crate::server::{COUNTERS, Draw, KEYSPACE, Resource, Server, TABLES};
use helenus_wire::thrift::{
    Column, ColumnOrSuperColumn, ColumnParent, ColumnPath, ColumnSlice, ConsistencyLevel, CounterColumn,
    IndexClause, IndexExpression, IndexOperator, KeyRange, Map, Method, MultiSliceRequest, Mutation,
    SlicePredicate, SliceRange, args,
};

const ONE: ConsistencyLevel = ConsistencyLevel::One;

/// A call's name, the permissions that it needs, and its answer.
pub type Called = (String, Vec<(&'static str, Resource)>, Result<(), String>);

fn column(name: &[u8]) -> Column<'_> {
    Column { name, value: Some(b"v"), timestamp: Some(1), ttl: None }
}

/// Makes a drawn call on data. Returns its name, its needs, and its answer.
pub fn data_call(server: &mut Server, draw: &mut Draw) -> Called {
    let table = TABLES[draw.below(TABLES.len())];
    let column_parent = ColumnParent { column_family: table, super_column: None };
    let column_path = ColumnPath { column_family: table, super_column: None, column: Some(b"c") };
    let slice_range = SliceRange { start: b"", finish: b"", reversed: false, count: 10 };
    let predicate = SlicePredicate { column_names: None, slice_range: Some(slice_range) };
    let range = KeyRange {
        start_key: Some(b""),
        end_key: Some(b""),
        start_token: None,
        end_token: None,
        row_filter: None,
        count: 10,
    };
    let (key, keys): (&[u8], Vec<&[u8]>) = (b"k", vec![b"k", b"l"]);
    let (reads, writes) =
        (vec![("SELECT", Resource::Table(table))], vec![("MODIFY", Resource::Table(table))]);
    let slice =
        |column_parent, predicate| args::GetSlice { key, column_parent, predicate, consistency_level: ONE };
    let (method, needs, answer) = match draw.below(20) {
        0 => {
            let asked = args::Get { key, column_path, consistency_level: ONE };
            (Method::Get, reads, server.call(Method::Get, &asked))
        }
        1 => (Method::GetSlice, reads, server.call(Method::GetSlice, &slice(column_parent, predicate))),
        2 => (Method::GetCount, reads, server.call(Method::GetCount, &slice(column_parent, predicate))),
        number @ (3 | 4) => {
            let method = if number == 3 { Method::MultigetSlice } else { Method::MultigetCount };
            let asked = args::MultigetSlice { keys, column_parent, predicate, consistency_level: ONE };
            (method, reads, server.call(method, &asked))
        }
        5 => {
            let asked = args::GetRangeSlices { column_parent, predicate, range, consistency_level: ONE };
            (Method::GetRangeSlices, reads, server.call(Method::GetRangeSlices, &asked))
        }
        6 => {
            let asked = args::GetPagedSlice {
                column_family: table,
                range,
                start_column: b"",
                consistency_level: ONE,
            };
            (Method::GetPagedSlice, reads, server.call(Method::GetPagedSlice, &asked))
        }
        7 => {
            let request = MultiSliceRequest {
                key: Some(key),
                column_parent: Some(column_parent),
                column_slices: Some(vec![ColumnSlice { start: Some(b""), finish: Some(b"") }]),
                reversed: None,
                count: Some(5),
                consistency_level: Some(ONE),
            };
            (
                Method::GetMultiSlice,
                reads,
                server.call(Method::GetMultiSlice, &args::GetMultiSlice { request }),
            )
        }
        number @ (8 | 9) => {
            let method = if number == 8 { Method::DescribeSplits } else { Method::DescribeSplitsEx };
            let asked = args::DescribeSplits {
                column_family: table,
                start_token: "0",
                end_token: "5",
                keys_per_split: 128,
            };
            (method, reads, server.call(method, &asked))
        }
        10 => {
            let asked = args::Insert { key, column_parent, column: column(b"c"), consistency_level: ONE };
            (Method::Insert, writes, server.call(Method::Insert, &asked))
        }
        11 => {
            let asked = args::Remove { key, column_path, timestamp: 1, consistency_level: Some(ONE) };
            (Method::Remove, writes, server.call(Method::Remove, &asked))
        }
        12 => {
            let asked = args::OfColumnFamily { column_family: table };
            (Method::Truncate, writes, server.call(Method::Truncate, &asked))
        }
        13 => {
            let asked = args::Cas {
                key,
                column_family: table,
                expected: Some(vec![column(b"c")]),
                updates: Some(vec![column(b"d")]),
                serial_consistency_level: ConsistencyLevel::Serial,
                commit_consistency_level: ONE,
            };
            let both = vec![("MODIFY", Resource::Table(table)), ("SELECT", Resource::Table(table))];
            (Method::Cas, both, server.call(Method::Cas, &asked))
        }
        number @ (14 | 15) => {
            let method = if number == 14 { Method::BatchMutate } else { Method::AtomicBatchMutate };
            let mutation = |_: usize| Mutation {
                column_or_supercolumn: Some(ColumnOrSuperColumn {
                    column: Some(column(b"c")),
                    super_column: None,
                    counter_column: None,
                    counter_super_column: None,
                }),
                deletion: None,
            };
            let named: Vec<&str> = TABLES.into_iter().filter(|_| draw.below(2) == 0).chain([table]).collect();
            let of_tables = named.iter().map(|table| (*table, vec![mutation(0), mutation(1)])).collect();
            let asked =
                args::BatchMutate { mutation_map: Map(vec![(key, Map(of_tables))]), consistency_level: ONE };
            let needs = named.iter().map(|table| ("MODIFY", Resource::Table(table))).collect();
            (method, needs, server.call(method, &asked))
        }
        16 => {
            let column_parent = ColumnParent { column_family: COUNTERS, super_column: None };
            let column = CounterColumn { name: b"c", value: 1 };
            let asked = args::Add { key, column_parent, column, consistency_level: ONE };
            (Method::Add, vec![("MODIFY", Resource::Table(COUNTERS))], server.call(Method::Add, &asked))
        }
        17 => {
            let path = ColumnPath { column_family: COUNTERS, super_column: None, column: Some(b"c") };
            let asked = args::RemoveCounter { key, path, consistency_level: ONE };
            let needs = vec![("MODIFY", Resource::Table(COUNTERS))];
            (Method::RemoveCounter, needs, server.call(Method::RemoveCounter, &asked))
        }
        18 => {
            let expressions = vec![IndexExpression { column_name: b"c", op: IndexOperator::Eq, value: b"v" }];
            let index_clause = IndexClause { expressions, start_key: b"", count: 10 };
            let asked = args::GetIndexedSlices {
                column_parent,
                index_clause,
                column_predicate: predicate,
                consistency_level: ONE,
            };
            (Method::GetIndexedSlices, reads, server.call(Method::GetIndexedSlices, &asked))
        }
        _ => {
            let asked = args::OfKeyspace { keyspace: KEYSPACE };
            (Method::DescribeKeyspace, Vec::new(), server.call(Method::DescribeKeyspace, &asked))
        }
    };
    (format!("{method:?} {table}"), needs, answer)
}
