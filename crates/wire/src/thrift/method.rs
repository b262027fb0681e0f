//! The calls of the interface: their names, and the exceptions that each declares.

/// An exception of the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exception {
    /// The requested item does not exist.
    NotFound,
    /// The request is not valid; the text gives the reason.
    InvalidRequest(String),
    /// The server is too busy.
    Unavailable,
    /// The request timed out.
    TimedOut,
    /// The login was refused.
    Authentication(String),
    /// The user lacks the permission.
    Authorization(String),
}

/// Kinds of exceptions, for a method's declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    NotFound,
    InvalidRequest,
    Unavailable,
    TimedOut,
    Authentication,
    Authorization,
    SchemaDisagreement,
}

impl Exception {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Exception::NotFound => Kind::NotFound,
            Exception::InvalidRequest(_) => Kind::InvalidRequest,
            Exception::Unavailable => Kind::Unavailable,
            Exception::TimedOut => Kind::TimedOut,
            Exception::Authentication(_) => Kind::Authentication,
            Exception::Authorization(_) => Kind::Authorization,
        }
    }
}

const NONE: &[Kind] = &[];
const LOGIN: &[Kind] = &[Kind::Authentication, Kind::Authorization];
const INVALID: &[Kind] = &[Kind::InvalidRequest];
const GET: &[Kind] = &[Kind::InvalidRequest, Kind::NotFound, Kind::Unavailable, Kind::TimedOut];
const DATA: &[Kind] = &[Kind::InvalidRequest, Kind::Unavailable, Kind::TimedOut];
const DESCRIBE: &[Kind] = &[Kind::NotFound, Kind::InvalidRequest];
const SCHEMA: &[Kind] = &[Kind::InvalidRequest, Kind::SchemaDisagreement];
const CQL: &[Kind] = &[Kind::InvalidRequest, Kind::Unavailable, Kind::TimedOut, Kind::SchemaDisagreement];

macro_rules! methods {
    ($($member:ident $name:literal $throws:ident,)*) => {
        /// A call of the interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the interface's own names")]
        pub enum Method { $($member,)* }

        impl Method {
            /// All calls.
            pub const ALL: &[Method] = &[$(Method::$member,)*];

            /// The call with a name.
            pub fn of_name(name: &[u8]) -> Option<Method> {
                $(if name == $name.as_bytes() { return Some(Method::$member); })*
                None
            }

            /// The name of the call.
            pub fn name(self) -> &'static str {
                match self { $(Method::$member => $name,)* }
            }

            /// The exceptions that it declares; the first has number 1.
            pub(super) fn throws(self) -> &'static [Kind] {
                match self { $(Method::$member => $throws,)* }
            }
        }
    };
}

// The calls of the data path come first, because names are searched in this order.
methods! {
    GetSlice "get_slice" DATA,
    BatchMutate "batch_mutate" DATA,
    Get "get" GET,
    Insert "insert" DATA,
    MultigetSlice "multiget_slice" DATA,
    GetCount "get_count" DATA,
    MultigetCount "multiget_count" DATA,
    GetRangeSlices "get_range_slices" DATA,
    GetPagedSlice "get_paged_slice" DATA,
    GetIndexedSlices "get_indexed_slices" DATA,
    GetMultiSlice "get_multi_slice" DATA,
    Add "add" DATA,
    Cas "cas" DATA,
    Remove "remove" DATA,
    RemoveCounter "remove_counter" DATA,
    AtomicBatchMutate "atomic_batch_mutate" DATA,
    Truncate "truncate" DATA,
    Login "login" LOGIN,
    SetKeyspace "set_keyspace" INVALID,
    DescribeSchemaVersions "describe_schema_versions" INVALID,
    DescribeKeyspaces "describe_keyspaces" INVALID,
    DescribeClusterName "describe_cluster_name" NONE,
    DescribeVersion "describe_version" NONE,
    DescribeRing "describe_ring" INVALID,
    DescribeLocalRing "describe_local_ring" INVALID,
    DescribeTokenMap "describe_token_map" INVALID,
    DescribePartitioner "describe_partitioner" NONE,
    DescribeSnitch "describe_snitch" NONE,
    DescribeKeyspace "describe_keyspace" DESCRIBE,
    DescribeSplits "describe_splits" INVALID,
    DescribeSplitsEx "describe_splits_ex" INVALID,
    TraceNextQuery "trace_next_query" NONE,
    SystemAddColumnFamily "system_add_column_family" SCHEMA,
    SystemDropColumnFamily "system_drop_column_family" SCHEMA,
    SystemAddKeyspace "system_add_keyspace" SCHEMA,
    SystemDropKeyspace "system_drop_keyspace" SCHEMA,
    SystemUpdateKeyspace "system_update_keyspace" SCHEMA,
    SystemUpdateColumnFamily "system_update_column_family" SCHEMA,
    ExecuteCqlQuery "execute_cql_query" CQL,
    ExecuteCql3Query "execute_cql3_query" CQL,
    PrepareCqlQuery "prepare_cql_query" INVALID,
    PrepareCql3Query "prepare_cql3_query" INVALID,
    ExecutePreparedCqlQuery "execute_prepared_cql_query" CQL,
    ExecutePreparedCql3Query "execute_prepared_cql3_query" CQL,
    SetCqlVersion "set_cql_version" INVALID,
}
