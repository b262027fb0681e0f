//! The argument structs of the calls. Calls without arguments have none.

use super::ThriftError;
use super::binary::{Reader, Type, put_field};
use super::field::{Field, Map};
use super::structs::*;

structs! {
    /// Arguments of `login`.
    struct Login<'a> {
        1 required auth_request: AuthenticationRequest<'a>,
    }
    /// Arguments of the calls that take a keyspace: `set_keyspace`, `describe_keyspace`, `describe_ring`,
    /// `system_drop_keyspace`.
    struct OfKeyspace<'a> {
        1 required keyspace: &'a str,
    }
    /// Arguments of the calls that take a column family: `truncate`, `system_drop_column_family`.
    struct OfColumnFamily<'a> {
        1 required column_family: &'a str,
    }
    /// Arguments of `get`.
    struct Get<'a> {
        1 required key: Bytes<'a>,
        2 required column_path: ColumnPath<'a>,
        3 required consistency_level: ConsistencyLevel,
    }
    /// Arguments of `get_slice` and `get_count`.
    struct GetSlice<'a> {
        1 required key: Bytes<'a>,
        2 required column_parent: ColumnParent<'a>,
        3 required predicate: SlicePredicate<'a>,
        4 required consistency_level: ConsistencyLevel,
    }
    /// Arguments of `multiget_slice` and `multiget_count`.
    struct MultigetSlice<'a> {
        1 required keys: Vec<Bytes<'a>>,
        2 required column_parent: ColumnParent<'a>,
        3 required predicate: SlicePredicate<'a>,
        4 required consistency_level: ConsistencyLevel,
    }
    /// Arguments of `get_range_slices`.
    struct GetRangeSlices<'a> {
        1 required column_parent: ColumnParent<'a>,
        2 required predicate: SlicePredicate<'a>,
        3 required range: KeyRange<'a>,
        4 required consistency_level: ConsistencyLevel,
    }
    /// Arguments of `get_paged_slice`.
    struct GetPagedSlice<'a> {
        1 required column_family: &'a str,
        2 required range: KeyRange<'a>,
        3 required start_column: Bytes<'a>,
        4 required consistency_level: ConsistencyLevel,
    }
    /// Arguments of `get_indexed_slices`.
    struct GetIndexedSlices<'a> {
        1 required column_parent: ColumnParent<'a>,
        2 required index_clause: IndexClause<'a>,
        3 required column_predicate: SlicePredicate<'a>,
        4 required consistency_level: ConsistencyLevel,
    }
    /// Arguments of `insert`.
    struct Insert<'a> {
        1 required key: Bytes<'a>,
        2 required column_parent: ColumnParent<'a>,
        3 required column: Column<'a>,
        4 required consistency_level: ConsistencyLevel,
    }
    /// Arguments of `add`.
    struct Add<'a> {
        1 required key: Bytes<'a>,
        2 required column_parent: ColumnParent<'a>,
        3 required column: CounterColumn<'a>,
        4 required consistency_level: ConsistencyLevel,
    }
    /// Arguments of `cas`.
    struct Cas<'a> {
        1 required key: Bytes<'a>,
        2 required column_family: &'a str,
        3 optional expected: Vec<Column<'a>>,
        4 optional updates: Vec<Column<'a>>,
        5 required serial_consistency_level: ConsistencyLevel,
        6 required commit_consistency_level: ConsistencyLevel,
    }
    /// Arguments of `remove`.
    struct Remove<'a> {
        1 required key: Bytes<'a>,
        2 required column_path: ColumnPath<'a>,
        3 required timestamp: i64,
        4 optional consistency_level: ConsistencyLevel,
    }
    /// Arguments of `remove_counter`.
    struct RemoveCounter<'a> {
        1 required key: Bytes<'a>,
        2 required path: ColumnPath<'a>,
        3 required consistency_level: ConsistencyLevel,
    }
    /// Arguments of `batch_mutate` and `atomic_batch_mutate`, as a client writes them; the server reads the map as it
    /// goes.
    struct BatchMutate<'a> {
        1 required mutation_map: Map<Bytes<'a>, Map<&'a str, Vec<Mutation<'a>>>>,
        2 required consistency_level: ConsistencyLevel,
    }
    /// Arguments of `get_multi_slice`.
    struct GetMultiSlice<'a> {
        1 required request: MultiSliceRequest<'a>,
    }
    /// Arguments of `describe_splits` and `describe_splits_ex`.
    struct DescribeSplits<'a> {
        1 required column_family: &'a str,
        2 required start_token: &'a str,
        3 required end_token: &'a str,
        4 required keys_per_split: i32,
    }
    /// Arguments of `system_add_column_family` and `system_update_column_family`.
    struct WithCfDef<'a> {
        1 required cf_def: CfDef<'a>,
    }
    /// Arguments of `system_add_keyspace` and `system_update_keyspace`.
    struct WithKsDef<'a> {
        1 required ks_def: KsDef<'a>,
    }
    /// Arguments of `execute_cql_query`, `prepare_cql_query` and `prepare_cql3_query`.
    struct CqlQuery<'a> {
        1 required query: Bytes<'a>,
        2 required compression: Compression,
    }
    /// Arguments of `execute_cql3_query`.
    struct Cql3Query<'a> {
        1 required query: Bytes<'a>,
        2 required compression: Compression,
        3 required consistency: ConsistencyLevel,
    }
    /// Arguments of `execute_prepared_cql_query`.
    struct PreparedCql<'a> {
        1 required item_id: i32,
        2 required values: Vec<Bytes<'a>>,
    }
    /// Arguments of `execute_prepared_cql3_query`.
    struct PreparedCql3<'a> {
        1 required item_id: i32,
        2 required values: Vec<Bytes<'a>>,
        3 required consistency: ConsistencyLevel,
    }
    /// Arguments of `set_cql_version`.
    struct SetCqlVersion<'a> {
        1 required version: &'a str,
    }
}
