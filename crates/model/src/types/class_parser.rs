//! Parses the names of Cassandra's type classes, as its `TypeParser` does: a class without a package is Cassandra's,
//! blanks are ignored, and `(reversed=true)` after a plain class means `ReversedType(..)`.

use std::sync::Arc;

use super::class_name::{PACKAGE, PLAIN, composite_class_name};
use super::error::quoted;
use super::text::hex_bytes;
use super::{CqlType, TYPE_DEPTH_MAX, TypeError, UserType};

/// Maximum nesting of classes: each type may be wrapped in `FrozenType(..)`, and the whole in `ReversedType(..)`. So
/// every type that a schema may contain can be parsed.
const DEPTH_MAX: usize = 2 * TYPE_DEPTH_MAX + 2;

/// Classes that Cassandra has but this server represents as custom types.
const UNMODELLED_CLASSES: [&str; 4] =
    ["LexicalUUIDType", "DateType", "PartitionerDefinedOrder", "ColumnToCollectionType"];

/// Classes that Cassandra creates by their own factory methods. For any error in their parameters it reports only that
/// the definition is invalid (`TypeParser.getAbstractType`).
const FACTORY_CLASSES: [&str; 11] = [
    "ListType",
    "SetType",
    "MapType",
    "TupleType",
    "VectorType",
    "UserType",
    "FrozenType",
    "ReversedType",
    "CompositeType",
    "DynamicCompositeType",
    "PartitionerDefinedOrder",
];

/// Classes of Cassandra's package that are not types by themselves.
const ABSTRACT: [&str; 7] = [
    "AbstractType",
    "AbstractCompositeType",
    "AbstractTimeUUIDType",
    "CollectionType",
    "NumberType",
    "StringType",
    "TemporalType",
];

/// A parsed class name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedClass {
    /// One type, and whether its order is descending.
    Plain {
        /// The type.
        ty: CqlType,
        /// `ReversedType(..)` or `(reversed=true)`.
        reversed: bool,
    },
    /// `CompositeType(..)`: the components, each with whether it is reversed.
    Composite(Vec<(CqlType, bool)>),
}

/// Parses a class name. An empty one is `BytesType`, as in Thrift. A class of another package becomes
/// [`CqlType::Custom`].
///
/// # Errors
/// [`TypeError::ClassSyntax`], [`TypeError::UnknownClass`] for a class that Cassandra does not have either,
/// [`TypeError::ClassParameters`].
pub fn parse_class_name(name: &str) -> Result<ParsedClass, TypeError> {
    parse(name, true)
}

/// As [`parse_class_name`], with parts frozen only where the text says so: the name of the result is the text. A node answers PREPARE
/// with such names, of types that come from CQL, where parts of a vector are not frozen.
///
/// # Errors
/// As `parse_class_name`.
pub(super) fn parse_class_name_as_written(name: &str) -> Result<ParsedClass, TypeError> {
    parse(name, false)
}

fn parse(name: &str, freezes: bool) -> Result<ParsedClass, TypeError> {
    let mut parser = Parser { text: name, position: 0, depth: 0, types: 0, freezes };
    parser.skip_blank();
    if parser.peek().is_none_or(|byte| !is_identifier(byte)) {
        return Ok(ParsedClass::Plain { ty: CqlType::Blob, reversed: false });
    }
    parser.class()
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    /// Number of classes around the current one.
    depth: usize,
    /// The number of those classes that are types, that is not `FrozenType` or `ReversedType`.
    types: usize,
    /// Whether the parts of collections, tuples and vectors are frozen, as they are in a class (`AbstractType.freeze`).
    freezes: bool,
}

impl<'a> Parser<'a> {
    fn part(&self, class: ParsedClass) -> CqlType {
        let ty = single(class);
        if self.freezes { ty.freeze() } else { ty }
    }

    fn class(&mut self) -> Result<ParsedClass, TypeError> {
        self.skip_blank();
        let start = self.position;
        let name = self.identifier();
        let is_type = !name.ends_with("FrozenType") && !name.ends_with("ReversedType");
        self.depth += 1;
        self.types += usize::from(is_type);
        if self.depth > DEPTH_MAX || self.types > TYPE_DEPTH_MAX {
            return Err(self.error("classes nested too deep"));
        }
        self.skip_blank();
        let parsed = match name.strip_prefix(PACKAGE).or((!name.contains('.')).then_some(name)) {
            Some(class) => match self.known(class, start) {
                Err(cause) if FACTORY_CLASSES.contains(&class) => {
                    let class = format!("{PACKAGE}{class}");
                    return Err(TypeError::ClassDefinition { class, cause: cause.into() });
                }
                found => found?,
            },
            None => {
                self.skip_parameters()?;
                plain(CqlType::Custom(self.text.get(start..self.position).unwrap_or_default().trim().into()))
            }
        };
        self.depth -= 1;
        self.types -= usize::from(is_type);
        Ok(parsed)
    }

    fn known(&mut self, class: &str, start: usize) -> Result<ParsedClass, TypeError> {
        let wrong = |problem| TypeError::ClassParameters { problem };
        let one = |types: Vec<ParsedClass>, problem| match <[ParsedClass; 1]>::try_from(types) {
            Ok([class]) => Ok(class),
            Err(_) => Err(TypeError::ClassParameters { problem }),
        };
        if let Some((_, ty)) = PLAIN.iter().find(|(name, _)| *name == class) {
            return Ok(ParsedClass::Plain { ty: ty.clone(), reversed: self.reversed_parameter()? });
        }
        let frozen = false;
        let ty = match class {
            "LegacyTimeUUIDType" => CqlType::TimeUuid,
            "ReversedType" => {
                let inner = one(self.types()?, "ReversedType takes exactly one argument")?;
                return Ok(ParsedClass::Plain { ty: single(inner), reversed: true });
            }
            "FrozenType" => single(one(self.types()?, "FrozenType() only accepts one parameter")?).freeze(),
            "ListType" => {
                let class = one(self.types()?, "ListType takes exactly 1 type parameter")?;
                let element = self.part(class);
                CqlType::List { element: element.into(), frozen }
            }
            "SetType" => {
                let class = one(self.types()?, "SetType takes exactly 1 type parameter")?;
                let element = self.part(class);
                CqlType::Set { element: element.into(), frozen }
            }
            "MapType" => {
                let types = <[ParsedClass; 2]>::try_from(self.types()?);
                let [key, value] = types.map_err(|_| wrong("MapType takes exactly 2 type parameters"))?;
                CqlType::Map { key: self.part(key).into(), value: self.part(value).into(), frozen }
            }
            "TupleType" => CqlType::Tuple(self.types()?.into_iter().map(|class| self.part(class)).collect()),
            "VectorType" => self.vector()?,
            "UserType" => self.user_type()?,
            "CompositeType" => {
                let component = |class| match class {
                    ParsedClass::Plain { ty, reversed } => (ty, reversed),
                    composite @ ParsedClass::Composite(_) => (single(composite), false),
                };
                let types = self.types()?;
                if types.is_empty() {
                    return Err(wrong("CompositeType takes at least one type"));
                }
                return Ok(ParsedClass::Composite(types.into_iter().map(component).collect()));
            }
            "DynamicCompositeType" => CqlType::Custom(dynamic_class_name(&self.aliases()?).into()),
            _ if UNMODELLED_CLASSES.contains(&class) => {
                let reversed = self.reversed_parameter_or_skip()?;
                let parameters = self.text.get(start..self.position).unwrap_or_default();
                let parameters = parameters.find('(').map_or("", |open| &parameters[open..]);
                let parameters =
                    if matches!(class, "LexicalUUIDType" | "DateType") { "" } else { parameters };
                let name = format!("{PACKAGE}{class}{parameters}");
                return Ok(ParsedClass::Plain { ty: CqlType::Custom(name.into()), reversed });
            }
            _ if ABSTRACT.contains(&class) => {
                return Err(TypeError::AbstractClass { class: format!("{PACKAGE}{class}") });
            }
            _ => return Err(TypeError::UnknownClass { class: format!("{PACKAGE}{class}") }),
        };
        Ok(plain(ty))
    }

    /// Parses `(type, type, ..)`; an empty list if there is no parenthesis.
    fn types(&mut self) -> Result<Vec<ParsedClass>, TypeError> {
        let mut types = Vec::new();
        if !self.take(b'(') {
            return Ok(types);
        }
        while self.skip_blank_and_comma() {
            if self.take(b')') {
                return Ok(types);
            }
            self.expect_identifier()?;
            types.push(self.class()?);
        }
        Err(self.error("unexpected end of string"))
    }

    /// Parses `(a=>type, b=>type, ..)`; the last definition of an alias counts.
    fn aliases(&mut self) -> Result<Vec<Alias>, TypeError> {
        let mut aliases: Vec<Alias> = Vec::new();
        if !self.take(b'(') {
            return Ok(aliases);
        }
        while self.skip_blank_and_comma() {
            if self.take(b')') {
                return Ok(in_hash_order(aliases));
            }
            let &[alias] = self.identifier().as_bytes() else {
                return Err(self.error("An alias should be a single character"));
            };
            self.skip_blank();
            if !(self.take(b'=') && self.take(b'>')) {
                return Err(self.error("expecting '=>' token"));
            }
            self.skip_blank();
            self.expect_identifier()?;
            let (ty, reversed) = match self.class()? {
                ParsedClass::Plain { ty, reversed } => (ty, reversed),
                composite @ ParsedClass::Composite(_) => (single(composite), false),
            };
            match aliases.iter_mut().find(|known| known.alias == alias) {
                Some(known) => (known.ty, known.reversed) = (ty, reversed),
                None => aliases.push(Alias { alias, ty, reversed }),
            }
        }
        Err(self.error("unexpected end of string"))
    }

    /// Parses `(type , dimension)`.
    fn vector(&mut self) -> Result<CqlType, TypeError> {
        if !self.take(b'(') {
            return Err(self.error("VectorType takes a type and a dimension"));
        }
        // The elements of a vector in a class name are frozen; in CQL they are not (`VectorType.getInstance`).
        let class = self.class()?;
        let element = self.part(class);
        self.skip_blank_and_comma();
        let dimension = self.identifier().parse().ok().filter(|dimension: &u32| *dimension > 0);
        let dimension = dimension.ok_or_else(|| self.error("vectors may only have positive dimensions"))?;
        self.skip_blank();
        if !self.take(b')') {
            return Err(self.error("expecting ')' token"));
        }
        Ok(CqlType::Vector { element: element.into(), dimension })
    }

    /// Parses `(keyspace, name in hex, field in hex : type, ..)`.
    fn user_type(&mut self) -> Result<CqlType, TypeError> {
        if !self.take(b'(') {
            return Err(self.error("UserType takes a keyspace, a name and fields"));
        }
        self.skip_blank_and_comma();
        let keyspace = Arc::from(self.identifier());
        self.skip_blank_and_comma();
        let name = self.hex_identifier()?;
        let mut fields = Vec::new();
        while self.skip_blank_and_comma() {
            if self.take(b')') {
                return Ok(CqlType::Udt(UserType { keyspace, name, fields, frozen: false }.into()));
            }
            let field = self.hex_identifier()?;
            self.skip_blank();
            if !self.take(b':') {
                return Err(self.error("expecting ':' token"));
            }
            fields.push((field, single(self.class()?)));
        }
        Err(self.error("unexpected end of string"))
    }

    /// Parses `(reversed=true)` or `(reversed)` after a class without parameters; other keys are ignored.
    fn reversed_parameter(&mut self) -> Result<bool, TypeError> {
        let mut reversed = false;
        if !self.take(b'(') {
            return Ok(false);
        }
        while self.skip_blank_and_comma() {
            if self.take(b')') {
                return Ok(reversed);
            }
            self.expect_identifier()?;
            let key = self.identifier();
            self.skip_blank();
            let value = if self.take(b'=') {
                self.skip_blank();
                self.identifier()
            } else {
                ""
            };
            if key == "reversed" {
                reversed = matches!(value, "" | "true");
            }
        }
        Err(self.error("unexpected end of string"))
    }

    /// As `reversed_parameter`, but skips parameters of another form.
    fn reversed_parameter_or_skip(&mut self) -> Result<bool, TypeError> {
        let start = self.position;
        match self.reversed_parameter() {
            Ok(reversed) => Ok(reversed),
            Err(_) => {
                self.position = start;
                self.skip_parameters().map(|()| false)
            }
        }
    }

    /// Skips a balanced pair of parentheses, if there is one.
    fn skip_parameters(&mut self) -> Result<(), TypeError> {
        if self.peek() != Some(b'(') {
            return Ok(());
        }
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            self.position += 1;
            match byte {
                b'(' => open += 1,
                b')' if open == 1 => return Ok(()),
                b')' => open -= 1,
                _ => {}
            }
        }
        Err(self.error("unexpected end of string"))
    }

    fn hex_identifier(&mut self) -> Result<Arc<str>, TypeError> {
        let hex = self.identifier();
        let bytes = hex_bytes(hex).ok_or_else(|| self.error("expecting a name in hexadecimal digits"))?;
        String::from_utf8(bytes).map(Arc::from).map_err(|_| self.error("expecting a name in UTF-8"))
    }

    fn identifier(&mut self) -> &'a str {
        let rest = self.text.get(self.position..).unwrap_or_default();
        let length = rest.bytes().take_while(|byte| is_identifier(*byte)).count();
        self.position += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Fails unless an identifier follows, so that the loops over parameters always advance.
    fn expect_identifier(&self) -> Result<(), TypeError> {
        match self.peek() {
            Some(byte) if is_identifier(byte) => Ok(()),
            _ => Err(self.error("unexpected character")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let here = self.peek() == Some(byte);
        self.position += usize::from(here);
        here
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n')) {
            self.position += 1;
        }
    }

    /// Skips blanks and at most one comma; returns false at the end of the text.
    fn skip_blank_and_comma(&mut self) -> bool {
        self.skip_blank();
        if self.take(b',') {
            self.skip_blank();
        }
        self.peek().is_some()
    }

    fn error(&self, problem: &'static str) -> TypeError {
        TypeError::ClassSyntax { text: quoted(self.text), position: self.position, problem }
    }
}

/// A component type of `DynamicCompositeType(..)`, and the character that denotes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alias {
    pub(super) alias: u8,
    pub(super) ty: CqlType,
    pub(super) reversed: bool,
}

/// The aliases of a `DynamicCompositeType`; `None` for other class names.
pub(super) fn aliases_of(name: &str) -> Option<Vec<Alias>> {
    let parameters = name.strip_prefix(PACKAGE)?.strip_prefix("DynamicCompositeType")?;
    Parser { text: parameters, position: 0, depth: 0, types: 0, freezes: true }.aliases().ok()
}

/// Sorts aliases in the order of Java's `HashMap<Byte, ..>`, in which Cassandra lists them.
fn in_hash_order(mut aliases: Vec<Alias>) -> Vec<Alias> {
    let mut buckets = 16;
    while aliases.len() * 4 > buckets * 3 {
        buckets *= 2;
    }
    aliases.sort_by_key(|one| usize::from(one.alias) % buckets);
    aliases
}

fn dynamic_class_name(aliases: &[Alias]) -> String {
    let names: Vec<_> = aliases
        .iter()
        .map(|one| format!("{}=>{}", char::from(one.alias), one.ty.class_name_ordered(one.reversed)))
        .collect();
    format!("{PACKAGE}DynamicCompositeType({})", names.join(","))
}

fn plain(ty: CqlType) -> ParsedClass {
    ParsedClass::Plain { ty, reversed: false }
}

/// The type of a class inside another. A reversed order is ignored there, and a composite becomes a custom type.
fn single(class: ParsedClass) -> CqlType {
    match class {
        ParsedClass::Plain { ty, .. } => ty,
        ParsedClass::Composite(components) => CqlType::Custom(composite_class_name(&components).into()),
    }
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.' | b'_' | b'&')
}

#[cfg(test)]
mod tests {
    use super::super::class_name::LEXICAL_UUID_CLASS;
    use super::*;

    #[test]
    fn thrift_spellings_are_understood() {
        let plain = |ty, reversed| Ok(ParsedClass::Plain { ty, reversed });
        assert_eq!(parse_class_name(""), plain(CqlType::Blob, false));
        assert_eq!(parse_class_name("AsciiType(reversed=true)"), plain(CqlType::Ascii, true));
        assert_eq!(parse_class_name(" LongType ( reversed = false )"), plain(CqlType::BigInt, false));
        assert_eq!(parse_class_name("ReversedType( UTF8Type )"), plain(CqlType::Text, true));
        assert_eq!(
            parse_class_name("LexicalUUIDType(reversed=true)"),
            plain(CqlType::Custom(LEXICAL_UUID_CLASS.into()), true)
        );
    }

    #[test]
    fn aliases_are_named_in_the_order_of_their_hashes() {
        let named = CqlType::from_class_name(
            "DynamicCompositeType(s => UTF8Type, i=>ReversedType(Int32Type),s=>AsciiType)",
        );
        let class = format!(
            "{PACKAGE}DynamicCompositeType(s=>{PACKAGE}AsciiType,i=>{PACKAGE}ReversedType({PACKAGE}Int32Type))"
        );
        assert_eq!(named, Ok(CqlType::Custom(class.as_str().into())));
        assert_eq!(CqlType::from_class_name(&class), named);
        // All of one hash bucket: they stay in the order of the text.
        let class = "DynamicCompositeType(a=>AsciiType,q=>LongType,1=>BytesType,A=>TimeUUIDType)";
        let aliases = aliases_of(&CqlType::from_class_name(class).unwrap().class_name()).unwrap();
        assert_eq!(aliases.iter().map(|one| one.alias).collect::<Vec<_>>(), b"aq1A");
    }

    #[test]
    fn mistakes_are_named_and_end() {
        assert_eq!(
            parse_class_name("FooType").unwrap_err().to_string(),
            "Unable to find abstract-type class 'org.apache.cassandra.db.marshal.FooType'"
        );
        for (name, outer) in
            [("ListType(FooType)", "ListType"), ("MapType(ListType(), Int32Type)", "MapType")]
        {
            assert_eq!(
                parse_class_name(name).unwrap_err().to_string(),
                format!("Invalid definition for comparator org.apache.cassandra.db.marshal.{outer}.")
            );
        }
        for name in [
            "ListType",
            "MapType(UTF8Type)",
            "ListType(",
            "ListType(UTF8Type",
            "ListType(=)",
            "UserType(k,6x)",
            "VectorType(FloatType, 0)",
            "VectorType(FloatType",
            "UserType(k,61,62)",
            "UTF8Type(%)",
            "a.B(",
            "CompositeType",
            "DynamicCompositeType(a)",
            "DynamicCompositeType(ab=>Int32Type)",
            "DynamicCompositeType(a=>",
            "AbstractType",
        ] {
            assert!(parse_class_name(name).is_err(), "{name}");
        }
        assert!(parse_class_name(&"ListType(".repeat(100_000)).is_err());
    }
}
