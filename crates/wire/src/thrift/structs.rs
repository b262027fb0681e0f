//! The structs and enumerations of the interface: a table of their fields, with the numbers of `cassandra.thrift`
//! 20.1.0.
//!
//! A field with an unexpected type is skipped, as in generated code. A missing required field is an error. Texts and
//! bytes borrow from the message that is read, or from the caller that writes one.

use super::ThriftError;
use super::binary::{Reader, Type, put_field, put_i32};
use super::field::{Field, Map};
use std::borrow::Cow;

/// The bytes of a name, key or value.
pub type Bytes<'a> = &'a [u8];
/// A text of a definition: borrowed when read, often owned when written.
pub type Text<'a> = Cow<'a, str>;

macro_rules! held {
    (required $ty:ty) => { $ty };
    (optional $ty:ty) => { Option<$ty> };
}

macro_rules! finish {
    (required $value:ident, $of:ident) => {
        $value.ok_or(ThriftError::Missing { field: stringify!($value), of: stringify!($of) })?
    };
    (optional $value:ident, $of:ident) => {
        $value
    };
}

macro_rules! write_field {
    (required $ty:ty, $number:literal, $value:expr, $out:ident) => {
        put_field(<$ty as Field<'_>>::TYPE, $number, $out);
        $value.write($out);
    };
    (optional $ty:ty, $number:literal, $value:expr, $out:ident) => {
        if let Some(value) = &$value {
            put_field(<$ty as Field<'_>>::TYPE, $number, $out);
            value.write($out);
        }
    };
}

macro_rules! structs {
    ($($(#[$doc:meta])* struct $name:ident $(<$life:lifetime>)? { $($number:literal $need:ident $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the interface's own names; some structs have no fields")]
        pub struct $name $(<$life>)? { $(pub $field: held!($need $ty),)* }

        structs!(@field $name $(<$life>)? { $($number $need $field: $ty,)* });
    )*};
    (@field $name:ident <$life:lifetime> { $($number:literal $need:ident $field:ident: $ty:ty,)* }) => {
        impl<$life> Field<$life> for $name<$life> {
            structs!(@body $life $name { $($number $need $field: $ty,)* });
        }
    };
    (@field $name:ident { $($number:literal $need:ident $field:ident: $ty:ty,)* }) => {
        impl<'a> Field<'a> for $name {
            structs!(@body 'a $name { $($number $need $field: $ty,)* });
        }
    };
    (@body $life:lifetime $name:ident { $($number:literal $need:ident $field:ident: $ty:ty,)* }) => {
        const TYPE: Type = Type::Struct;

        fn read(reader: &mut Reader<$life>) -> Result<Self, ThriftError> {
            $(let mut $field: Option<$ty> = None;)*
            reader.enter()?;
            while let Some((ty, number)) = reader.field()? {
                match number {
                    $($number if ty == <$ty as Field<$life>>::TYPE => {
                        $field = Some(<$ty as Field<$life>>::read(reader)?);
                    })*
                    _ => reader.skip(ty)?,
                }
            }
            reader.leave();
            Ok(Self { $($field: finish!($need $field, $name),)* })
        }

        fn write(&self, out: &mut Vec<u8>) {
            $(write_field!($need $ty, $number, self.$field, out);)*
            out.push(Type::Stop as u8);
        }
    };
}
pub(super) use {finish, held, structs, write_field};

macro_rules! enumerations {
    ($($(#[$doc:meta])* enum $name:ident { $($member:ident = $number:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the interface's own names")]
        pub enum $name { $($member = $number,)* }

        impl Field<'_> for $name {
            const TYPE: Type = Type::I32;

            fn read(reader: &mut Reader<'_>) -> Result<$name, ThriftError> {
                match reader.i32()? {
                    $($number => Ok($name::$member),)*
                    number => Err(ThriftError::Enumeration { name: stringify!($name), number }),
                }
            }

            fn write(&self, out: &mut Vec<u8>) {
                put_i32(*self as i32, out);
            }
        }
    )*};
}

enumerations! {
    /// Consistency levels. Their numbers differ from the native protocol's.
    enum ConsistencyLevel {
        One = 1, Quorum = 2, LocalQuorum = 3, EachQuorum = 4, All = 5, Any = 6, Two = 7, Three = 8, Serial = 9,
        LocalSerial = 10, LocalOne = 11,
    }
    /// The operator of an index expression.
    enum IndexOperator { Eq = 0, Gte = 1, Gt = 2, Lte = 3, Lt = 4, }
    /// Kinds of indexes.
    enum IndexType { Keys = 0, Custom = 1, Composites = 2, }
    /// The compression of a statement's text.
    enum Compression { Gzip = 1, None = 2, }
    /// The kind of a statement's answer.
    enum CqlResultType { Rows = 1, Void = 2, Int = 3, }
}

structs! {
    /// A column: a name, a value and a timestamp.
    struct Column<'a> {
        1 required name: Bytes<'a>,
        2 optional value: Bytes<'a>,
        3 optional timestamp: i64,
        4 optional ttl: i32,
    }
    /// A named list of columns.
    struct SuperColumn<'a> {
        1 required name: Bytes<'a>,
        2 required columns: Vec<Column<'a>>,
    }
    /// A counter.
    struct CounterColumn<'a> {
        1 required name: Bytes<'a>,
        2 required value: i64,
    }
    /// A named list of counters.
    struct CounterSuperColumn<'a> {
        1 required name: Bytes<'a>,
        2 required columns: Vec<CounterColumn<'a>>,
    }
    /// One of the four kinds of columns.
    struct ColumnOrSuperColumn<'a> {
        1 optional column: Column<'a>,
        2 optional super_column: SuperColumn<'a>,
        3 optional counter_column: CounterColumn<'a>,
        4 optional counter_super_column: CounterSuperColumn<'a>,
    }
    /// The fields of the exception for a request that timed out.
    struct TimedOutException {
        1 optional acknowledged_by: i32,
        2 optional acknowledged_by_batchlog: bool,
        3 optional paxos_in_progress: bool,
    }
    /// The fields of the exceptions with a text.
    struct Why<'a> {
        1 required why: Text<'a>,
    }
    /// The fields of the exceptions without fields.
    struct Nothing {}
    /// A column family, or a super column in one.
    struct ColumnParent<'a> {
        3 required column_family: &'a str,
        4 optional super_column: Bytes<'a>,
    }
    /// A column in a column family.
    struct ColumnPath<'a> {
        3 required column_family: &'a str,
        4 optional super_column: Bytes<'a>,
        5 optional column: Bytes<'a>,
    }
    /// Columns from start to finish, in either direction.
    struct SliceRange<'a> {
        1 required start: Bytes<'a>,
        2 required finish: Bytes<'a>,
        3 required reversed: bool,
        4 required count: i32,
    }
    /// Columns by name, or by range.
    struct SlicePredicate<'a> {
        1 optional column_names: Vec<Bytes<'a>>,
        2 optional slice_range: SliceRange<'a>,
    }
    /// A condition on a column's value.
    struct IndexExpression<'a> {
        1 required column_name: Bytes<'a>,
        2 required op: IndexOperator,
        3 required value: Bytes<'a>,
    }
    /// Conditions, and the key to begin at.
    struct IndexClause<'a> {
        1 required expressions: Vec<IndexExpression<'a>>,
        2 required start_key: Bytes<'a>,
        3 required count: i32,
    }
    /// A range of rows, by key or by token.
    struct KeyRange<'a> {
        1 optional start_key: Bytes<'a>,
        2 optional end_key: Bytes<'a>,
        3 optional start_token: &'a str,
        4 optional end_token: &'a str,
        6 optional row_filter: Vec<IndexExpression<'a>>,
        5 required count: i32,
    }
    /// A row's key and columns.
    struct KeySlice<'a> {
        1 required key: Bytes<'a>,
        2 required columns: Vec<ColumnOrSuperColumn<'a>>,
    }
    /// What is deleted from a row.
    struct Deletion<'a> {
        1 optional timestamp: i64,
        2 optional super_column: Bytes<'a>,
        3 optional predicate: SlicePredicate<'a>,
    }
    /// An insertion or a deletion.
    struct Mutation<'a> {
        1 optional column_or_supercolumn: ColumnOrSuperColumn<'a>,
        2 optional deletion: Deletion<'a>,
    }
    /// The location of an endpoint.
    struct EndpointDetails<'a> {
        1 required host: Text<'a>,
        2 required datacenter: Text<'a>,
        3 optional rack: Text<'a>,
    }
    /// The result of a conditional write.
    struct CASResult<'a> {
        1 required success: bool,
        2 optional current_values: Vec<Column<'a>>,
    }
    /// A range of the ring and its endpoints.
    struct TokenRange<'a> {
        1 required start_token: Text<'a>,
        2 required end_token: Text<'a>,
        3 required endpoints: Vec<Text<'a>>,
        4 optional rpc_endpoints: Vec<Text<'a>>,
        5 optional endpoint_details: Vec<EndpointDetails<'a>>,
    }
    /// The credentials of a login.
    struct AuthenticationRequest<'a> {
        1 required credentials: Map<Text<'a>, Text<'a>>,
    }
    /// A declared column.
    struct ColumnDef<'a> {
        1 required name: Cow<'a, [u8]>,
        2 required validation_class: Text<'a>,
        3 optional index_type: IndexType,
        4 optional index_name: Text<'a>,
        5 optional index_options: Map<Text<'a>, Text<'a>>,
    }
    /// A trigger.
    struct TriggerDef<'a> {
        1 required name: Text<'a>,
        2 required options: Map<Text<'a>, Text<'a>>,
    }
    /// A column family. The missing numbers are former fields, which are read and ignored.
    struct CfDef<'a> {
        1 required keyspace: Text<'a>,
        2 required name: Text<'a>,
        3 optional column_type: Text<'a>,
        5 optional comparator_type: Text<'a>,
        6 optional subcomparator_type: Text<'a>,
        8 optional comment: Text<'a>,
        12 optional read_repair_chance: f64,
        13 optional column_metadata: Vec<ColumnDef<'a>>,
        14 optional gc_grace_seconds: i32,
        15 optional default_validation_class: Text<'a>,
        16 optional id: i32,
        17 optional min_compaction_threshold: i32,
        18 optional max_compaction_threshold: i32,
        26 optional key_validation_class: Text<'a>,
        28 optional key_alias: Cow<'a, [u8]>,
        29 optional compaction_strategy: Text<'a>,
        30 optional compaction_strategy_options: Map<Text<'a>, Text<'a>>,
        32 optional compression_options: Map<Text<'a>, Text<'a>>,
        33 optional bloom_filter_fp_chance: f64,
        34 optional caching: Text<'a>,
        37 optional dclocal_read_repair_chance: f64,
        39 optional memtable_flush_period_in_ms: i32,
        40 optional default_time_to_live: i32,
        41 optional index_interval: i32,
        42 optional speculative_retry: Text<'a>,
        43 optional triggers: Vec<TriggerDef<'a>>,
        44 optional cells_per_row_to_cache: Text<'a>,
        45 optional min_index_interval: i32,
        46 optional max_index_interval: i32,
    }
    /// A keyspace.
    struct KsDef<'a> {
        1 required name: Text<'a>,
        2 required strategy_class: Text<'a>,
        3 optional strategy_options: Map<Text<'a>, Text<'a>>,
        4 optional replication_factor: i32,
        5 required cf_defs: Vec<CfDef<'a>>,
        6 optional durable_writes: bool,
    }
    /// A row of a statement's result.
    struct CqlRow<'a> {
        1 required key: Bytes<'a>,
        2 required columns: Vec<Column<'a>>,
    }
    /// The types of a statement's result.
    struct CqlMetadata<'a> {
        1 required name_types: Map<Cow<'a, [u8]>, Text<'a>>,
        2 required value_types: Map<Cow<'a, [u8]>, Text<'a>>,
        3 required default_name_type: Text<'a>,
        4 required default_value_type: Text<'a>,
    }
    /// A statement's result.
    struct CqlResult<'a> {
        1 required kind: CqlResultType,
        2 optional rows: Vec<CqlRow<'a>>,
        3 optional num: i32,
        4 optional schema: CqlMetadata<'a>,
    }
    /// A prepared statement.
    struct CqlPreparedResult<'a> {
        1 required item_id: i32,
        2 required count: i32,
        3 optional variable_types: Vec<Text<'a>>,
        4 optional variable_names: Vec<Text<'a>>,
    }
    /// A split of a column family's rows.
    struct CfSplit<'a> {
        1 required start_token: Text<'a>,
        2 required end_token: Text<'a>,
        3 required row_count: i64,
    }
    /// A range of columns.
    struct ColumnSlice<'a> {
        1 optional start: Bytes<'a>,
        2 optional finish: Bytes<'a>,
    }
    /// Several slices of one row.
    struct MultiSliceRequest<'a> {
        1 optional key: Bytes<'a>,
        2 optional column_parent: ColumnParent<'a>,
        3 optional column_slices: Vec<ColumnSlice<'a>>,
        4 optional reversed: bool,
        5 optional count: i32,
        6 optional consistency_level: ConsistencyLevel,
    }
    /// The number of columns of a row.
    struct KeyCount<'a> {
        1 required key: Bytes<'a>,
        2 required count: i32,
    }
    /// The exception of the protocol for a call that was not run.
    struct ApplicationException<'a> {
        1 optional message: Text<'a>,
        2 optional kind: i32,
    }
}

impl<'a> CfDef<'a> {
    /// A definition with nothing but its name.
    pub fn named(keyspace: &'a str, name: &'a str) -> CfDef<'a> {
        CfDef {
            keyspace: keyspace.into(),
            name: name.into(),
            column_type: None,
            comparator_type: None,
            subcomparator_type: None,
            comment: None,
            read_repair_chance: None,
            column_metadata: None,
            gc_grace_seconds: None,
            default_validation_class: None,
            id: None,
            min_compaction_threshold: None,
            max_compaction_threshold: None,
            key_validation_class: None,
            key_alias: None,
            compaction_strategy: None,
            compaction_strategy_options: None,
            compression_options: None,
            bloom_filter_fp_chance: None,
            caching: None,
            dclocal_read_repair_chance: None,
            memtable_flush_period_in_ms: None,
            default_time_to_live: None,
            index_interval: None,
            speculative_retry: None,
            triggers: None,
            cells_per_row_to_cache: None,
            min_index_interval: None,
            max_index_interval: None,
        }
    }
}
