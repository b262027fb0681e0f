//! Data types as written. Whether a user-defined type or a class exists is not checked.

use std::borrow::Cow;

use super::{Pos, QualifiedName};

/// A data type and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataType<'a> {
    /// The type.
    pub kind: DataTypeKind<'a>,
    /// Its position.
    pub pos: Pos,
}

/// The forms of a data type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataTypeKind<'a> {
    /// A type that has a keyword.
    Native(Native),
    /// `list<T>`.
    List(Box<DataType<'a>>),
    /// `set<T>`.
    Set(Box<DataType<'a>>),
    /// `map<K, V>`.
    Map(Box<(DataType<'a>, DataType<'a>)>),
    /// `tuple<A, B, ...>`, at least one.
    Tuple(Vec<DataType<'a>>),
    /// `vector<T, n>`.
    Vector(Box<DataType<'a>>, i32),
    /// `frozen<T>`; `T` is a collection, tuple, vector or user-defined type.
    Frozen(Box<DataType<'a>>),
    /// The name of a user-defined type.
    User(QualifiedName<'a>),
    /// `'org.apache.cassandra.db.marshal.XType(...)'`, not checked here.
    Custom(Cow<'a, str>),
}

macro_rules! natives {
    ($($name:ident $text:literal),+ $(,)?) => {
        /// A type that has a keyword.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Native {
            $(#[doc = concat!("`", $text, "`.")] $name),+
        }

        impl Native {
            /// Every native type.
            pub const ALL: &'static [Native] = &[$(Native::$name),+];

            /// The type's keyword, in lower case.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Native::$name => $text),+
                }
            }

            /// The type of a keyword.
            pub(in crate::syntax) const fn of(kind: crate::syntax::token::Kind) -> Option<Native> {
                match kind {
                    $(crate::syntax::token::Kind::$name => Some(Native::$name),)+
                    _ => None,
                }
            }
        }
    };
}

natives! {
    Ascii "ascii", Bigint "bigint", Blob "blob", Boolean "boolean", Counter "counter", Date "date", Decimal "decimal",
    Double "double", Duration "duration", Float "float", Inet "inet", Int "int", Smallint "smallint", Text "text",
    Time "time", Timestamp "timestamp", Timeuuid "timeuuid", Tinyint "tinyint", Uuid "uuid", Varchar "varchar",
    Varint "varint",
}
