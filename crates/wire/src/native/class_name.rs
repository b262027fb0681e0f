//! Types as Java class names: what the protocol says where it has no option for a type.
//!
//! A vector, the empty type, `duration` before v5 and `date`, `time`, `smallint`, `tinyint` before v4 travel as option 0
//! with such a name; so does any type inside them. Written as Cassandra's `AbstractType.toString` writes it, blank
//! before a vector's comma included, and read as its `TypeParser` reads it.

use std::fmt::{self, Write};
use std::sync::Arc;

use helenus_model::types::{CqlType, UserType};

/// Where Cassandra's types live; a name without a package means this one.
const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// How deep types may be nested, in names and in options.
pub(crate) const MAX_DEPTH: u8 = 64;

/// Prints a type as its class name.
#[derive(Clone, Copy, Debug)]
pub struct ClassName<'a>(pub &'a CqlType);

impl fmt::Display for ClassName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(f, self.0, false)
    }
}

/// The class of a type without parameters, without its package.
fn simple_class(ty: &CqlType) -> Option<&'static str> {
    Some(match ty {
        CqlType::Ascii => "AsciiType",
        CqlType::BigInt => "LongType",
        CqlType::Blob => "BytesType",
        CqlType::Boolean => "BooleanType",
        CqlType::Counter => "CounterColumnType",
        CqlType::Date => "SimpleDateType",
        CqlType::Decimal => "DecimalType",
        CqlType::Double => "DoubleType",
        CqlType::Duration => "DurationType",
        CqlType::Empty => "EmptyType",
        CqlType::Float => "FloatType",
        CqlType::Inet => "InetAddressType",
        CqlType::Int => "Int32Type",
        CqlType::SmallInt => "ShortType",
        CqlType::Text => "UTF8Type",
        CqlType::Time => "TimeType",
        CqlType::Timestamp => "TimestampType",
        CqlType::TimeUuid => "TimeUUIDType",
        CqlType::TinyInt => "ByteType",
        CqlType::Uuid => "UUIDType",
        CqlType::Varint => "IntegerType",
        _ => return None,
    })
}

const SIMPLE: [CqlType; 21] = [
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

/// `hide_frozen`: inside something frozen the word is not repeated.
fn write_name(f: &mut fmt::Formatter<'_>, ty: &CqlType, hide_frozen: bool) -> fmt::Result {
    if let Some(class) = simple_class(ty) {
        return write!(f, "{PACKAGE}{class}");
    }
    match ty {
        CqlType::List { element, frozen } => write_frozen(f, *frozen && !hide_frozen, |f| {
            write_parameters(f, "ListType", &[element], hide_frozen || *frozen)
        }),
        CqlType::Set { element, frozen } => write_frozen(f, *frozen && !hide_frozen, |f| {
            write_parameters(f, "SetType", &[element], hide_frozen || *frozen)
        }),
        CqlType::Map { key, value, frozen } => write_frozen(f, *frozen && !hide_frozen, |f| {
            write_parameters(f, "MapType", &[key, value], hide_frozen || *frozen)
        }),
        CqlType::Udt(udt) => write_frozen(f, udt.frozen && !hide_frozen, |f| {
            write!(f, "{PACKAGE}UserType({},{}", udt.keyspace, Hex(udt.name.as_bytes()))?;
            for (name, ty) in &udt.fields {
                write!(f, ",{}:", Hex(name.as_bytes()))?;
                write_name(f, ty, hide_frozen || udt.frozen)?;
            }
            f.write_char(')')
        }),
        CqlType::Tuple(types) => {
            write!(f, "{PACKAGE}TupleType(")?;
            for (i, ty) in types.iter().enumerate() {
                f.write_str(if i > 0 { "," } else { "" })?;
                write_name(f, ty, true)?;
            }
            f.write_char(')')
        }
        CqlType::Vector { element, dimension } => {
            write!(f, "{PACKAGE}VectorType(")?;
            write_name(f, element, hide_frozen)?;
            write!(f, " , {dimension})")
        }
        CqlType::Custom(name) => f.write_str(name),
        _ => Ok(()),
    }
}

fn write_frozen(
    f: &mut fmt::Formatter<'_>,
    frozen: bool,
    inner: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    if !frozen {
        return inner(f);
    }
    write!(f, "{PACKAGE}FrozenType(")?;
    inner(f)?;
    f.write_char(')')
}

fn write_parameters(
    f: &mut fmt::Formatter<'_>,
    class: &str,
    types: &[&Arc<CqlType>],
    hide_frozen: bool,
) -> fmt::Result {
    write!(f, "{PACKAGE}{class}(")?;
    for (i, ty) in types.iter().enumerate() {
        f.write_str(if i > 0 { "," } else { "" })?;
        write_name(f, ty, hide_frozen)?;
    }
    f.write_char(')')
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Reads a class name. One that is not understood, for whatever reason, is a [`CqlType::Custom`] by that name: a client
/// can still hand its bytes on.
pub fn parse_class_name(name: &str) -> CqlType {
    let mut parser = Parser { left: name.trim() };
    match parser.parse(false, 0) {
        Some(ty) if parser.left.trim().is_empty() => ty,
        _ => CqlType::Custom(Arc::from(name)),
    }
}

struct Parser<'a> {
    left: &'a str,
}

impl<'a> Parser<'a> {
    fn parse(&mut self, frozen: bool, depth: u8) -> Option<CqlType> {
        if depth > MAX_DEPTH {
            return None;
        }
        let deeper = depth + 1;
        let name = self.identifier();
        let class = name.strip_prefix(PACKAGE).unwrap_or(name);
        if let Some(ty) = SIMPLE.iter().find(|ty| simple_class(ty) == Some(class)) {
            return Some(ty.clone());
        }
        self.expect('(')?;
        let ty = match class {
            "FrozenType" => self.parse(true, deeper)?,
            "ReversedType" => self.parse(frozen, deeper)?,
            "ListType" => CqlType::List { element: Arc::new(self.parse(frozen, deeper)?), frozen },
            "SetType" => CqlType::Set { element: Arc::new(self.parse(frozen, deeper)?), frozen },
            "MapType" => {
                let key = Arc::new(self.parse(frozen, deeper)?);
                self.expect(',')?;
                CqlType::Map { key, value: Arc::new(self.parse(frozen, deeper)?), frozen }
            }
            "TupleType" => CqlType::Tuple(self.tuple(deeper)?.into()),
            "VectorType" => {
                let element = Arc::new(self.parse(true, deeper)?);
                self.expect(',')?;
                CqlType::Vector { element, dimension: self.identifier().parse().ok()? }
            }
            "UserType" => CqlType::Udt(Arc::new(self.user_type(frozen, deeper)?)),
            _ => return None,
        };
        self.expect(')')?;
        Some(ty)
    }

    fn tuple(&mut self, depth: u8) -> Option<Vec<CqlType>> {
        let mut types = vec![self.parse(true, depth)?];
        while self.expect(',').is_some() {
            types.push(self.parse(true, depth)?);
        }
        Some(types)
    }

    fn user_type(&mut self, frozen: bool, depth: u8) -> Option<UserType> {
        let keyspace = Arc::from(self.identifier());
        self.expect(',')?;
        let name = from_hex(self.identifier())?;
        let mut fields = Vec::new();
        while self.expect(',').is_some() {
            let field = from_hex(self.identifier())?;
            self.expect(':')?;
            fields.push((field, self.parse(frozen, depth)?));
        }
        Some(UserType { keyspace, name, fields, frozen })
    }

    /// The characters Cassandra allows in an identifier.
    fn identifier(&mut self) -> &'a str {
        self.left = self.left.trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_' | '&' | '$');
        let end = self.left.find(|c| !is_part(c)).unwrap_or(self.left.len());
        let (name, rest) = self.left.split_at(end);
        self.left = rest;
        name
    }

    fn expect(&mut self, wanted: char) -> Option<()> {
        self.left = self.left.trim_start().strip_prefix(wanted)?;
        Some(())
    }
}

fn from_hex(digits: &str) -> Option<Arc<str>> {
    let bytes = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok().map(Arc::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_cassandra_writes_them() {
        let m = "org.apache.cassandra.db.marshal.";
        let vector = CqlType::Vector { element: Arc::new(CqlType::Float), dimension: 3 };
        assert_eq!(ClassName(&vector).to_string(), format!("{m}VectorType({m}FloatType , 3)"));
        let list = CqlType::List { element: Arc::new(CqlType::Int), frozen: true };
        let map = CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(list.clone()), frozen: false };
        let frozen_list = format!("{m}FrozenType({m}ListType({m}Int32Type))");
        assert_eq!(ClassName(&map).to_string(), format!("{m}MapType({m}UTF8Type,{frozen_list})"));
        let tuple = CqlType::Tuple([CqlType::Date, list].into());
        let inner = format!("{m}SimpleDateType,{m}ListType({m}Int32Type)");
        assert_eq!(ClassName(&tuple).to_string(), format!("{m}TupleType({inner})"));
    }

    #[test]
    fn names_written_are_read_back() {
        let udt = UserType {
            keyspace: "ks".into(),
            name: "straße".into(),
            fields: vec![("a".into(), CqlType::Duration), ("b c".into(), CqlType::Empty)],
            frozen: true,
        };
        let inner = CqlType::Set { element: Arc::new(CqlType::Udt(Arc::new(udt))), frozen: true };
        let ty = CqlType::Vector {
            element: Arc::new(CqlType::Tuple([inner, CqlType::Inet].into())),
            dimension: 7,
        };
        assert_eq!(parse_class_name(&ClassName(&ty).to_string()), ty);
        for ty in SIMPLE {
            assert_eq!(parse_class_name(&ClassName(&ty).to_string()), ty);
        }
    }

    #[test]
    fn what_is_not_understood_is_custom() {
        for name in ["com.example.Odd", "ListType(", "VectorType(FloatType , x)", "Int32Type)", "é(", ""] {
            assert_eq!(parse_class_name(name), CqlType::Custom(name.into()), "{name}");
        }
        let deep = format!("{}Int32Type{}", "ListType(".repeat(5000), ")".repeat(5000));
        assert!(matches!(parse_class_name(&deep), CqlType::Custom(_)));
    }
}
