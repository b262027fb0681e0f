//! Thrift RPC calls as templates, which `stress` and `profile` send repeatedly with different values.

use super::{Template, Text};
use anyhow::{Result, ensure};
use helenus_wire::thrift::{
    Column, ColumnOrSuperColumn, ColumnParent, ColumnPath, Compression, ConsistencyLevel, CounterColumn,
    Field, IndexClause, IndexExpression, IndexOperator, Map, Method, Mutation, SlicePredicate, SliceRange,
    args,
};

const LEVEL: ConsistencyLevel = ConsistencyLevel::One;

/// A predicate that selects a range of columns, from `start` (empty: from the first).
pub fn range<'a>(start: &'a [u8], finish: &'a [u8], reversed: bool, count: i32) -> SlicePredicate<'a> {
    let range = SliceRange { start, finish, reversed, count };
    SlicePredicate { column_names: None, slice_range: Some(range) }
}

fn parent(family: &str) -> ColumnParent<'_> {
    ColumnParent { column_family: family, super_column: None }
}

/// Bytes between a column's value and its timestamp: type and number of the timestamp's field.
const BEFORE_TIMESTAMP: usize = 3;

/// batch_mutate that writes columns of one row with the current time as timestamp. Its values: key, name and value of
/// each column in turn, with the key repeated for each column.
pub fn write_columns(family: &str, key: &[u8], columns: &[(&[u8], &[u8])]) -> Result<Template> {
    let held = columns.iter().map(|(name, value)| ColumnOrSuperColumn {
        column: Some(Column { name, value: Some(value), timestamp: Some(0), ttl: None }),
        super_column: None,
        counter_column: None,
        counter_super_column: None,
    });
    let after = |(at, (_, value)): (usize, &(&[u8], &[u8]))| (at * 3 + 2, value.len() + BEFORE_TIMESTAMP);
    Ok(mutate(family, key, held.collect())?.stamped(columns.iter().enumerate().map(after)))
}

/// batch_mutate that adds 1 to counters of one row. Its values: key and name of each counter, with the key repeated for
/// each counter.
pub fn add_to_counters(family: &str, key: &[u8], names: &[&[u8]]) -> Result<Template> {
    let held = names.iter().map(|name| ColumnOrSuperColumn {
        column: None,
        super_column: None,
        counter_column: Some(CounterColumn { name, value: 1 }),
        counter_super_column: None,
    });
    mutate(family, key, held.collect())
}

fn mutate(family: &str, key: &[u8], columns: Vec<ColumnOrSuperColumn<'_>>) -> Result<Template> {
    let mutation = |column| Mutation { column_or_supercolumn: Some(column), deletion: None };
    let mutations = columns.into_iter().map(mutation).collect();
    let families = Map(vec![(family, mutations)]);
    let asked = args::BatchMutate { mutation_map: Map(vec![(key, families)]), consistency_level: LEVEL };
    Template::call(
        Method::BatchMutate,
        |out| asked.write(out),
        |reader| {
            let read = args::BatchMutate::read(reader)?;
            let mut values = Vec::new();
            for (key, families) in read.mutation_map.0 {
                let mutations = families.0.into_iter().flat_map(|(_, mutations)| mutations);
                for held in mutations.filter_map(|mutation| mutation.column_or_supercolumn) {
                    values.push(key);
                    if let Some(column) = held.column {
                        values.extend([Some(column.name), column.value].into_iter().flatten());
                    }
                    values.extend(held.counter_column.map(|counter| counter.name));
                }
            }
            Ok(values)
        },
    )
}

/// add of 1 to a counter. Its value: the key.
pub fn add(family: &str, key: &[u8], name: &[u8]) -> Result<Template> {
    let column = CounterColumn { name, value: 1 };
    let asked = args::Add { key, column_parent: parent(family), column, consistency_level: LEVEL };
    Template::call(
        Method::Add,
        |out| asked.write(out),
        |reader| args::Add::read(reader).map(|read| vec![read.key]),
    )
}

/// execute_cql_query with a statement of CQL 2. Its values: those of the text.
pub fn execute_first(text: &Text) -> Result<Template> {
    let asked = args::CqlQuery { query: text.as_str().as_bytes(), compression: Compression::None };
    Template::call(
        Method::ExecuteCqlQuery,
        |out| asked.write(out),
        |reader| args::CqlQuery::read(reader).map(|read| text.values(read.query)),
    )
}

/// get of a column. Its value: the key.
pub fn get(family: &str, key: &[u8], column: &[u8]) -> Result<Template> {
    let column_path = ColumnPath { column_family: family, super_column: None, column: Some(column) };
    let asked = args::Get { key, column_path, consistency_level: LEVEL };
    Template::call(
        Method::Get,
        |out| asked.write(out),
        |reader| args::Get::read(reader).map(|read| vec![read.key]),
    )
}

/// get_slice. Its values: the key, then the start or the names of the predicate.
pub fn get_slice(family: &str, key: &[u8], predicate: SlicePredicate<'_>) -> Result<Template> {
    let asked = args::GetSlice { key, column_parent: parent(family), predicate, consistency_level: LEVEL };
    Template::call(
        Method::GetSlice,
        |out| asked.write(out),
        |reader| {
            let read = args::GetSlice::read(reader)?;
            let first = read.predicate.column_names.and_then(|names| names.first().copied());
            let start = read.predicate.slice_range.map(|range| range.start);
            Ok([Some(read.key), first.or(start)].into_iter().flatten().collect())
        },
    )
}

/// get_indexed_slices of at most `count` rows whose column has a given value. Its value: that value.
pub fn find(family: &str, column: &[u8], value: &[u8], count: i32) -> Result<Template> {
    ensure!(!value.is_empty(), "a value to be found");
    let expression = IndexExpression { column_name: column, op: IndexOperator::Eq, value };
    let asked = args::GetIndexedSlices {
        column_parent: parent(family),
        index_clause: IndexClause { expressions: vec![expression], start_key: b"", count },
        column_predicate: range(b"", b"", false, 100),
        consistency_level: LEVEL,
    };
    Template::call(
        Method::GetIndexedSlices,
        |out| asked.write(out),
        |reader| {
            let read = args::GetIndexedSlices::read(reader)?;
            Ok(read.index_clause.expressions.iter().map(|expression| expression.value).collect())
        },
    )
}
