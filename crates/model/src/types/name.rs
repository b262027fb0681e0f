//! Types and identifiers as CQL text.

use std::borrow::Cow;
use std::fmt;

use super::CqlType;

/// Words that are identifiers only in quotes (Cassandra's `reserved_keywords.txt`), sorted.
const RESERVED: &[&str] = &[
    "add",
    "allow",
    "alter",
    "and",
    "apply",
    "asc",
    "authorize",
    "batch",
    "begin",
    "by",
    "columnfamily",
    "create",
    "delete",
    "desc",
    "describe",
    "drop",
    "entries",
    "execute",
    "from",
    "full",
    "grant",
    "if",
    "in",
    "index",
    "infinity",
    "insert",
    "into",
    "is",
    "keyspace",
    "limit",
    "materialized",
    "modify",
    "nan",
    "norecursive",
    "not",
    "null",
    "of",
    "on",
    "or",
    "order",
    "primary",
    "rename",
    "revoke",
    "schema",
    "select",
    "set",
    "table",
    "to",
    "token",
    "truncate",
    "unlogged",
    "update",
    "use",
    "using",
    "view",
    "where",
    "with",
];

/// The identifier in CQL: bare if it is lower case and not reserved, otherwise in double quotes.
pub fn quote_identifier(name: &str) -> Cow<'_, str> {
    if is_bare(name) { Cow::Borrowed(name) } else { Cow::Owned(format!("\"{}\"", name.replace('"', "\"\""))) }
}

/// Whether a name is written without quotes.
pub(super) fn is_bare(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && RESERVED.binary_search(&name).is_err()
}

impl fmt::Display for CqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let simple = match self {
            CqlType::Ascii => "ascii",
            CqlType::BigInt => "bigint",
            CqlType::Blob => "blob",
            CqlType::Boolean => "boolean",
            CqlType::Counter => "counter",
            CqlType::Date => "date",
            CqlType::Decimal => "decimal",
            CqlType::Double => "double",
            CqlType::Duration => "duration",
            CqlType::Empty => "empty",
            CqlType::Float => "float",
            CqlType::Inet => "inet",
            CqlType::Int => "int",
            CqlType::SmallInt => "smallint",
            CqlType::Text => "text",
            CqlType::Time => "time",
            CqlType::Timestamp => "timestamp",
            CqlType::TimeUuid => "timeuuid",
            CqlType::TinyInt => "tinyint",
            CqlType::Uuid => "uuid",
            CqlType::Varint => "varint",
            CqlType::List { element, frozen } => {
                return frozen_if(*frozen, f, |f| write!(f, "list<{element}>"));
            }
            CqlType::Set { element, frozen } => {
                return frozen_if(*frozen, f, |f| write!(f, "set<{element}>"));
            }
            CqlType::Map { key, value, frozen } => {
                return frozen_if(*frozen, f, |f| write!(f, "map<{key}, {value}>"));
            }
            CqlType::Udt(udt) => {
                return frozen_if(udt.frozen, f, |f| f.write_str(&quote_identifier(&udt.name)));
            }
            CqlType::Tuple(types) => {
                f.write_str("frozen<tuple<")?;
                for (i, ty) in types.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}{ty}")?;
                }
                return f.write_str(">>");
            }
            CqlType::Vector { element, dimension } => return write!(f, "vector<{element}, {dimension}>"),
            CqlType::Custom(class) if &**class == super::class_name::DATE_CLASS => "timestamp",
            CqlType::Custom(class) => return write!(f, "'{class}'"),
        };
        f.write_str(simple)
    }
}

fn frozen_if(
    frozen: bool,
    f: &mut fmt::Formatter<'_>,
    inner: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    if !frozen {
        return inner(f);
    }
    f.write_str("frozen<")?;
    inner(f)?;
    f.write_str(">")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn reserved_words_are_in_order_for_the_search() {
        assert!(RESERVED.is_sorted());
        assert_eq!(quote_identifier("table"), "\"table\"");
        assert_eq!(quote_identifier("a_1"), "a_1");
        assert_eq!(quote_identifier("_a"), "\"_a\"");
        assert_eq!(quote_identifier("a\"B"), "\"a\"\"B\"");
        assert_eq!(quote_identifier(""), "\"\"");
    }

    #[test]
    fn types_print_as_in_cassandra() {
        let list = CqlType::List { element: Arc::new(CqlType::Int), frozen: true };
        let map = CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(list.clone()), frozen: false };
        assert_eq!(map.to_string(), "map<text, frozen<list<int>>>");
        assert_eq!(
            CqlType::Tuple(Arc::new([CqlType::Int, list])).to_string(),
            "frozen<tuple<int, frozen<list<int>>>>"
        );
        assert_eq!(CqlType::Custom("a.B".into()).to_string(), "'a.B'");
    }
}
