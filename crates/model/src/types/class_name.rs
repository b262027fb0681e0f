//! The names of Cassandra's type classes, as in SSTable headers, `system_schema` and Thrift.
//!
//! The text follows each class's `toString`, including the blanks in `VectorType(.. , 3)`.

use std::fmt::Write as _;

use super::class_parser::{ParsedClass, parse_class_name, parse_class_name_as_written};
use super::text::write_hex;
use super::{CqlType, TypeError};

pub(super) const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// Class of UUIDs ordered as two signed longs, from Thrift; represented as [`CqlType::Custom`].
pub(crate) const LEXICAL_UUID_CLASS: &str = "org.apache.cassandra.db.marshal.LexicalUUIDType";
/// Class of old tables' timestamps, ordered as unsigned bytes; represented as [`CqlType::Custom`].
pub(crate) const DATE_CLASS: &str = "org.apache.cassandra.db.marshal.DateType";

/// Classes without parameters, and their types.
pub(super) const PLAIN: [(&str, CqlType); 21] = [
    ("AsciiType", CqlType::Ascii),
    ("LongType", CqlType::BigInt),
    ("BytesType", CqlType::Blob),
    ("BooleanType", CqlType::Boolean),
    ("CounterColumnType", CqlType::Counter),
    ("SimpleDateType", CqlType::Date),
    ("DecimalType", CqlType::Decimal),
    ("DoubleType", CqlType::Double),
    ("DurationType", CqlType::Duration),
    ("EmptyType", CqlType::Empty),
    ("FloatType", CqlType::Float),
    ("InetAddressType", CqlType::Inet),
    ("Int32Type", CqlType::Int),
    ("ShortType", CqlType::SmallInt),
    ("UTF8Type", CqlType::Text),
    ("TimeType", CqlType::Time),
    ("TimestampType", CqlType::Timestamp),
    ("TimeUUIDType", CqlType::TimeUuid),
    ("ByteType", CqlType::TinyInt),
    ("UUIDType", CqlType::Uuid),
    ("IntegerType", CqlType::Varint),
];

impl CqlType {
    /// The full class name, as in an SSTable's header: `org.apache.cassandra.db.marshal.UTF8Type`.
    pub fn class_name(&self) -> String {
        let mut out = String::new();
        write_class(self, false, &mut out);
        out
    }

    /// The class name of a clustering column: wrapped in `ReversedType(..)` if `reversed`.
    pub fn class_name_ordered(&self, reversed: bool) -> String {
        if reversed { format!("{PACKAGE}ReversedType({})", self.class_name()) } else { self.class_name() }
    }

    /// The type that a class name denotes. The order of a reversed class is dropped; a composite becomes
    /// [`CqlType::Custom`].
    pub fn from_class_name(name: &str) -> Result<CqlType, TypeError> {
        Ok(of_parsed(parse_class_name(name)?))
    }

    /// The same, with parts frozen only where the name says so: [`CqlType::class_name`] gives the name again.
    pub fn from_class_name_as_written(name: &str) -> Result<CqlType, TypeError> {
        Ok(of_parsed(parse_class_name_as_written(name)?))
    }
}

impl CqlType {
    /// Whether this is `DateType`, the timestamp of old tables.
    pub fn is_date_type(&self) -> bool {
        matches!(self, CqlType::Custom(class) if &**class == DATE_CLASS)
    }

    /// Refuses classes, in this type or its parts, that Cassandra does not have without extra jars.
    ///
    /// # Errors
    /// [`TypeError::UnknownClass`].
    pub fn check_classes(&self) -> Result<(), TypeError> {
        match self {
            CqlType::Custom(class) => {
                let name = class.split('(').next().unwrap_or_default();
                let is_known = name.starts_with(PACKAGE) && !name.ends_with(".ColumnToCollectionType");
                if is_known { Ok(()) } else { Err(TypeError::UnknownClass { class: name.to_owned() }) }
            }
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. } => element.check_classes(),
            CqlType::Map { key, value, .. } => key.check_classes().and_then(|()| value.check_classes()),
            CqlType::Tuple(types) => types.iter().try_for_each(CqlType::check_classes),
            CqlType::Udt(udt) => udt.fields.iter().try_for_each(|(_, ty)| ty.check_classes()),
            _ => Ok(()),
        }
    }
}

fn of_parsed(class: ParsedClass) -> CqlType {
    match class {
        ParsedClass::Plain { ty, .. } => ty,
        ParsedClass::Composite(components) => CqlType::Custom(composite_class_name(&components).into()),
    }
}

/// `CompositeType(..)` of these components, each with its type and whether it is reversed: the type of a partition key
/// of several columns.
pub fn composite_class_name(components: &[(CqlType, bool)]) -> String {
    let names: Vec<_> = components.iter().map(|(ty, reversed)| ty.class_name_ordered(*reversed)).collect();
    format!("{PACKAGE}CompositeType({})", names.join(","))
}

fn write_class(ty: &CqlType, ignore_freezing: bool, out: &mut String) {
    let frozen = !ignore_freezing
        && match ty {
            CqlType::List { frozen, .. } | CqlType::Set { frozen, .. } | CqlType::Map { frozen, .. } => {
                *frozen
            }
            CqlType::Udt(udt) => udt.frozen,
            _ => false,
        };
    if frozen {
        _ = write!(out, "{PACKAGE}FrozenType(");
    }
    write_unfrozen(ty, ignore_freezing || frozen, out);
    if frozen {
        out.push(')');
    }
}

fn write_unfrozen(ty: &CqlType, ignore_freezing: bool, out: &mut String) {
    let list = |class: &str, types: &mut dyn Iterator<Item = &CqlType>, ignore: bool, out: &mut String| {
        _ = write!(out, "{PACKAGE}{class}(");
        for (i, ty) in types.enumerate() {
            if i > 0 {
                out.push(',');
            }
            write_class(ty, ignore, out);
        }
        out.push(')');
    };
    match ty {
        CqlType::List { element, .. } => {
            list("ListType", &mut [&**element].into_iter(), ignore_freezing, out)
        }
        CqlType::Set { element, .. } => list("SetType", &mut [&**element].into_iter(), ignore_freezing, out),
        CqlType::Map { key, value, .. } => {
            list("MapType", &mut [&**key, &**value].into_iter(), ignore_freezing, out);
        }
        CqlType::Tuple(types) => list("TupleType", &mut types.iter(), true, out),
        CqlType::Vector { element, dimension } => {
            _ = write!(out, "{PACKAGE}VectorType(");
            write_class(element, ignore_freezing, out);
            _ = write!(out, " , {dimension})");
        }
        CqlType::Udt(udt) => {
            _ = write!(out, "{PACKAGE}UserType({},", udt.keyspace);
            write_hex(udt.name.as_bytes(), out);
            for (name, ty) in &udt.fields {
                out.push(',');
                write_hex(name.as_bytes(), out);
                out.push(':');
                write_class(ty, ignore_freezing, out);
            }
            out.push(')');
        }
        CqlType::Custom(class) => out.push_str(class),
        plain => {
            let class = PLAIN.iter().find(|(_, ty)| ty == plain).map_or("BytesType", |(class, _)| class);
            out.push_str(PACKAGE);
            out.push_str(class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::class_parser::ParsedClass;
    use super::*;

    const P: &str = PACKAGE;

    /// Names as a node writes them: `FrozenType` stands around what is frozen and not within what is frozen already
    /// (`CollectionType.toString`, `UserType.toString`), and not within a tuple.
    fn drawn(random: &mut impl FnMut(usize) -> usize, depth: usize, in_frozen: bool) -> String {
        let frozen = |text: String| if in_frozen { text } else { format!("{P}FrozenType({text})") };
        let is_frozen = in_frozen || random(2) == 0;
        let of = |text: String| if is_frozen { frozen(text) } else { text };
        if depth == 0 {
            return format!("{P}{}", ["Int32Type", "UTF8Type", "FloatType"][random(3)]);
        }
        match random(6) {
            0 => of(format!("{P}ListType({})", drawn(random, depth - 1, is_frozen))),
            1 => of(format!("{P}SetType({})", drawn(random, depth - 1, is_frozen))),
            2 => {
                let parts = [0; 2].map(|_| drawn(random, depth - 1, is_frozen));
                of(format!("{P}MapType({})", parts.join(",")))
            }
            3 => of(format!("{P}UserType(ks,61,62:{},63:{P}Int32Type)", drawn(random, depth - 1, is_frozen))),
            4 => format!("{P}TupleType({},{P}ByteType)", drawn(random, depth - 1, true)),
            _ => format!("{P}VectorType({} , 3)", drawn(random, depth - 1, in_frozen)),
        }
    }

    #[test]
    fn drawn_names_as_written_survive_the_way_back() {
        let mut state = 1_u64;
        let mut random = |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % end
        };
        for depth in [1, 2, 3, 4].into_iter().cycle().take(2_000) {
            let name = drawn(&mut random, depth, false);
            assert_eq!(CqlType::from_class_name_as_written(&name).unwrap().class_name(), name);
        }
    }

    #[test]
    fn names_survive_the_way_back() {
        let names = [
            format!("{P}UTF8Type"),
            format!("{P}ListType({P}Int32Type)"),
            format!("{P}FrozenType({P}MapType({P}UTF8Type,{P}SetType({P}IntegerType)))"),
            format!("{P}MapType({P}UTF8Type,{P}FrozenType({P}SetType({P}IntegerType)))"),
            format!("{P}TupleType({P}Int32Type,{P}ListType({P}ByteType))"),
            format!("{P}VectorType({P}FloatType , 3)"),
            format!("{P}UserType(ks,61,62:{P}Int32Type,63:{P}FrozenType({P}ListType({P}UTF8Type)))"),
            format!("{P}FrozenType({P}UserType(ks,61,62:{P}Int32Type,63:{P}ListType({P}UTF8Type)))"),
            format!("{P}LexicalUUIDType"),
            "com.example.Odd(a,b)".to_owned(),
        ];
        for name in names {
            assert_eq!(CqlType::from_class_name(&name).unwrap().class_name(), name);
        }
        let composite = format!("{P}CompositeType({P}UTF8Type,{P}ReversedType({P}LongType))");
        let ParsedClass::Composite(components) = parse_class_name(&composite).unwrap() else { panic!() };
        assert_eq!(components, [(CqlType::Text, false), (CqlType::BigInt, true)]);
        assert_eq!(composite_class_name(&components), composite);
    }
}
