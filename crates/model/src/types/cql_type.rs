//! The enum of all CQL types, which all layers use.

use std::sync::Arc;

/// A CQL data type. Cheap to clone: nested types are shared.
///
/// `text` and `varchar` are one type, as in Cassandra, and print as `text`. The order of a reversed clustering
/// column is not part of its type: see `schema::Column::reversed`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CqlType {
    /// US-ASCII text.
    Ascii,
    /// 64-bit signed integer.
    BigInt,
    /// Any bytes.
    Blob,
    /// One byte, 0 or 1.
    Boolean,
    /// A counter: Cassandra's counter context in storage, a 64-bit sum to clients.
    Counter,
    /// Days since 1970-01-01, as an unsigned number with 2^31 for that day.
    Date,
    /// Scale (i32) and unscaled big integer.
    Decimal,
    /// IEEE 754, 64 bits.
    Double,
    /// Months, days, nanoseconds, each a zigzag vint.
    Duration,
    /// No bytes; the value type of tables without values.
    Empty,
    /// IEEE 754, 32 bits.
    Float,
    /// An IPv4 or IPv6 address, 4 or 16 bytes.
    Inet,
    /// 32-bit signed integer.
    Int,
    /// 16-bit signed integer.
    SmallInt,
    /// UTF-8 text; `varchar` is the same type.
    Text,
    /// Nanoseconds since midnight, i64.
    Time,
    /// Milliseconds since the epoch, i64.
    Timestamp,
    /// Version 1 UUID, ordered by time.
    TimeUuid,
    /// 8-bit signed integer.
    TinyInt,
    /// Any UUID.
    Uuid,
    /// Arbitrary-precision integer, two's complement, big endian.
    Varint,
    /// A list. A frozen list is one value, any other has a cell for each element.
    List {
        /// Type of the elements.
        element: Arc<CqlType>,
        /// One serialised value instead of a cell for each element.
        frozen: bool,
    },
    /// A set, ordered by its element type.
    Set {
        /// Type of the elements.
        element: Arc<CqlType>,
        /// One serialised value instead of a cell for each element.
        frozen: bool,
    },
    /// A map, ordered by its key type.
    Map {
        /// Type of the keys.
        key: Arc<CqlType>,
        /// Type of the values.
        value: Arc<CqlType>,
        /// One serialised value instead of a cell for each entry.
        frozen: bool,
    },
    /// A tuple; always frozen.
    Tuple(Arc<[CqlType]>),
    /// A user-defined type.
    Udt(Arc<UserType>),
    /// A vector of fixed dimension.
    Vector {
        /// Type of the elements.
        element: Arc<CqlType>,
        /// Number of elements.
        dimension: u32,
    },
    /// A type class that this server does not know, by its Java name; compared as bytes.
    Custom(Arc<str>),
}

/// A user-defined type as a column uses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserType {
    /// Keyspace the type belongs to.
    pub keyspace: Arc<str>,
    /// Name of the type, unquoted.
    pub name: Arc<str>,
    /// Fields in declared order: name, type.
    pub fields: Vec<(Arc<str>, CqlType)>,
    /// One serialised value instead of a cell for each field.
    pub frozen: bool,
}

/// Maximum depth of nested types, fields of user-defined types included. So code may walk a type by recursion, and
/// every class name of such a type can be parsed. Cassandra has no limit and overflows its stack.
pub const TYPE_DEPTH_MAX: usize = 64;

/// Maximum number of types in a type. If each user-defined type has two fields of another, the number doubles with each
/// level; class names, result metadata and values are as long as all of them together.
pub const TYPE_PARTS_MAX: usize = 10_000;

impl CqlType {
    /// Whether the type is within both limits. Of a larger type only as much is visited as they allow.
    pub fn is_bounded(&self) -> bool {
        self.is_bounded_below(TYPE_DEPTH_MAX, &mut { TYPE_PARTS_MAX })
    }

    fn is_bounded_below(&self, levels: usize, parts: &mut usize) -> bool {
        let (Some(levels), Some(fewer)) = (levels.checked_sub(1), parts.checked_sub(1)) else { return false };
        *parts = fewer;
        match self {
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. } => element.is_bounded_below(levels, parts),
            CqlType::Map { key, value, .. } => {
                key.is_bounded_below(levels, parts) && value.is_bounded_below(levels, parts)
            }
            CqlType::Tuple(types) => types.iter().all(|ty| ty.is_bounded_below(levels, parts)),
            CqlType::Udt(udt) => udt.fields.iter().all(|(_, ty)| ty.is_bounded_below(levels, parts)),
            _ => true,
        }
    }

    /// All types without nested types.
    pub const SIMPLE: [CqlType; 21] = [
        CqlType::Ascii,
        CqlType::BigInt,
        CqlType::Blob,
        CqlType::Boolean,
        CqlType::Counter,
        CqlType::Date,
        CqlType::Decimal,
        CqlType::Double,
        CqlType::Duration,
        CqlType::Empty,
        CqlType::Float,
        CqlType::Inet,
        CqlType::Int,
        CqlType::SmallInt,
        CqlType::Text,
        CqlType::Time,
        CqlType::Timestamp,
        CqlType::TimeUuid,
        CqlType::TinyInt,
        CqlType::Uuid,
        CqlType::Varint,
    ];

    /// Whether it contains other types.
    pub fn has_parts(&self) -> bool {
        matches!(
            self,
            CqlType::List { .. }
                | CqlType::Set { .. }
                | CqlType::Map { .. }
                | CqlType::Tuple(_)
                | CqlType::Udt(_)
                | CqlType::Vector { .. }
        )
    }

    /// Whether values of this type are stored as several cells of one column (non-frozen collections and UDTs).
    pub fn is_multi_cell(&self) -> bool {
        match self {
            CqlType::List { frozen, .. } | CqlType::Set { frozen, .. } | CqlType::Map { frozen, .. } => {
                !frozen
            }
            CqlType::Udt(udt) => !udt.frozen,
            _ => false,
        }
    }
}
