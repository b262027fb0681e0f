//! `CompositeType(..)` and `DynamicCompositeType(..)` as column types: several values in one.
//!
//! A component is two bytes of length, the value and an end byte, which is 0 except in bounds of old queries (1 and
//! -1). In a dynamic composite each component is preceded by its type: two bytes, whose first bit says that the second
//! byte is an alias; otherwise they are the length of a class name. In a `CompositeType` the bytes 0xFFFF before the
//! first component mark the static row of a compact table (`AbstractCompositeType`, `CompositeType`,
//! `DynamicCompositeType`).

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::Arc;

use super::class_name::PACKAGE;
use super::class_parser::{Alias, aliases_of};
use super::error::quoted;
use super::{CqlType, ParsedClass, TypeError, parse_class_name, parse_text, write_text};

/// First bit of a component header that contains an alias.
const IS_ALIAS: u16 = 0x8000;

/// The number of composites that a thread keeps: more than there can be within a class of the length below, because a
/// composite may have others as components.
const KEPT_MAX: usize = 256;
/// The longest class that is kept. Longer ones are parsed for each value.
pub const KEPT_CLASS_BYTES_MAX: usize = 16 << 10;

thread_local! {
    /// Classes and what they denote, the last used first.
    static KEPT: RefCell<Vec<(Box<str>, Arc<Composite>)>> = const { RefCell::new(Vec::new()) };
}

/// The component types: fixed by position, or given with each component.
pub(crate) enum Composite {
    Fixed(Vec<(CqlType, bool)>),
    Dynamic(Vec<Alias>),
}

/// A component of a value.
pub(crate) struct Component<'a> {
    pub(crate) ty: CqlType,
    pub(crate) reversed: bool,
    /// The bytes before the component that give its type: an alias or a class name.
    header: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) end: i8,
}

/// Whether a class is a composite.
pub(super) fn is_composite(class: &str) -> bool {
    let name = class.strip_prefix(PACKAGE).unwrap_or_default();
    name.starts_with("CompositeType(") || name.starts_with("DynamicCompositeType(")
}

impl Composite {
    /// Marks the static row, before the components.
    pub(crate) const STATIC: [u8; 2] = [0xFF, 0xFF];

    /// The composite that a class denotes; `None` if it is none. A collection asks for each of its elements, so the
    /// thread keeps the last few.
    pub(crate) fn of(class: &str) -> Option<Arc<Composite>> {
        if !is_composite(class) {
            return None;
        }
        let kept = KEPT.with_borrow_mut(|kept| {
            let at = kept.iter().position(|(of, _)| **of == *class)?;
            // The one that is asked for most is first.
            kept.get_mut(..=at)?.rotate_right(1);
            kept.first().map(|(_, composite)| composite.clone())
        });
        if let Some(kept) = kept {
            return Some(kept);
        }
        let composite = Arc::new(Composite::parsed(class)?);
        if class.len() <= KEPT_CLASS_BYTES_MAX {
            KEPT.with_borrow_mut(|kept| {
                kept.truncate(KEPT_MAX - 1);
                kept.insert(0, (class.into(), composite.clone()));
            });
        }
        Some(composite)
    }

    fn parsed(class: &str) -> Option<Composite> {
        if let Some(aliases) = aliases_of(class) {
            return Some(Composite::Dynamic(aliases));
        }
        match parse_class_name(class) {
            Ok(ParsedClass::Composite(types)) => Some(Composite::Fixed(types)),
            _ => None,
        }
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        matches!(self, Composite::Dynamic(_))
    }

    /// The type whose class has this full name. A class with parameters is known only if an alias denotes it.
    pub(crate) fn type_of_class(&self, class: &str) -> Result<CqlType, TypeError> {
        let aliases = match self {
            Composite::Dynamic(aliases) => aliases.as_slice(),
            Composite::Fixed(_) => &[],
        };
        match aliases.iter().find(|one| class_names(&one.ty).1 == class) {
            Some(alias) => Ok(alias.ty.clone()),
            None => CqlType::from_class_name(class),
        }
    }

    /// Appends what precedes a component of a dynamic composite: its alias, or its class if no alias denotes it.
    pub(crate) fn put_header(
        &self,
        (ty, reversed): &(CqlType, bool),
        out: &mut Vec<u8>,
    ) -> Result<(), TypeError> {
        let aliases = match self {
            Composite::Dynamic(aliases) => aliases.as_slice(),
            Composite::Fixed(_) => &[],
        };
        match aliases.iter().find(|one| one.ty == *ty && one.reversed == *reversed) {
            Some(one) => out.extend_from_slice(&(IS_ALIAS | u16::from(one.alias)).to_be_bytes()),
            None => put_short(ty.class_name_ordered(*reversed).as_bytes(), out)?,
        }
        Ok(())
    }

    /// The type at an index (fixed), or of an alias or class name (dynamic).
    pub(crate) fn component(&self, index: usize, name: &str) -> Result<(CqlType, bool), TypeError> {
        match self {
            Composite::Fixed(types) => types.get(index).cloned().ok_or(TypeError::TooManyComponents),
            Composite::Dynamic(aliases) => match aliases.iter().find(|one| [one.alias] == *name.as_bytes()) {
                Some(found) => Ok((found.ty.clone(), found.reversed)),
                None => Ok(match parse_class_name(name)? {
                    ParsedClass::Plain { ty, reversed } => (ty, reversed),
                    ParsedClass::Composite(_) => (CqlType::from_class_name(name)?, false),
                }),
            },
        }
    }

    /// Takes the component from the front of `rest`.
    pub(crate) fn take<'a>(&self, index: usize, rest: &mut &'a [u8]) -> Result<Component<'a>, TypeError> {
        let mut header: &[u8] = &[];
        let (ty, reversed) = match self {
            Composite::Fixed(_) => self.component(index, "")?,
            Composite::Dynamic(_) => {
                let cut = |what| TypeError::ComponentCut { what, index };
                let bytes =
                    *rest.first_chunk::<2>().ok_or(cut("header of the comparator part of component "))?;
                let named = u16::from_be_bytes(bytes);
                let length = if named & IS_ALIAS != 0 { 0 } else { usize::from(named) };
                let whole = rest.split_at_checked(2 + length);
                (header, *rest) = whole.ok_or(cut("read comparator name of component "))?;
                let unknown = || TypeError::UnknownComponent { index };
                let name = match header.get(2..).unwrap_or_default() {
                    // An alias must be declared; this is checked below.
                    [] if named & IS_ALIAS != 0 => char::from(named as u8).to_string(),
                    name => String::from_utf8(name.to_vec()).map_err(|_| unknown())?,
                };
                if header.len() == 2 && named & IS_ALIAS != 0 && !self.has_alias(named as u8) {
                    return Err(unknown());
                }
                self.component(index, &name).map_err(|_| unknown())?
            }
        };
        let cut = |what| TypeError::ComponentCut { what, index };
        let length = *rest.first_chunk::<2>().ok_or(cut("read value size of component "))?;
        let length = usize::from(u16::from_be_bytes(length));
        let value = rest.get(2..2 + length).ok_or(cut("read value of component "))?;
        let end = *rest.get(2 + length).ok_or(cut("read the end-of-component byte of component"))? as i8;
        *rest = rest.get(3 + length..).unwrap_or_default();
        Ok(Component { ty, reversed, header, value, end })
    }

    fn has_alias(&self, alias: u8) -> bool {
        matches!(self, Composite::Dynamic(aliases) if aliases.iter().any(|one| one.alias == alias))
    }

    /// Whether the value begins with the static mark, and the bytes of the components.
    pub(crate) fn start<'a>(&self, bytes: &'a [u8]) -> (bool, &'a [u8]) {
        match (self, bytes.strip_prefix(&Composite::STATIC)) {
            (Composite::Fixed(_), Some(rest)) => (true, rest),
            _ => (false, bytes),
        }
    }
}

/// Validates a value of the class. Any bytes are valid for a class that is not a composite.
pub(super) fn validate(class: &str, bytes: &[u8]) -> Result<(), TypeError> {
    let Some(composite) = Composite::of(class) else { return Ok(()) };
    let (_, mut rest) = composite.start(bytes);
    let mut index = 0;
    while !rest.is_empty() {
        let component = composite.take(index, &mut rest)?;
        component.ty.validate(component.value)?;
        if component.end != 0 && !rest.is_empty() {
            return Err(TypeError::ComponentExtraneous { index });
        }
        index += 1;
    }
    Ok(())
}

/// The order of two values; invalid values are ordered by their bytes.
pub(super) fn compare(class: &str, a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() || a == b {
        return a.len().cmp(&b.len());
    }
    let Some(composite) = Composite::of(class) else { return a.cmp(b) };
    let ((a_static, mut left), (b_static, mut right)) = (composite.start(a), composite.start(b));
    if a_static != b_static {
        return b_static.cmp(&a_static);
    }
    let mut index = 0;
    while !left.is_empty() && !right.is_empty() {
        let (Ok(one), Ok(other)) = (composite.take(index, &mut left), composite.take(index, &mut right))
        else {
            return a.cmp(b);
        };
        let order = order_of_types(&one, &other)
            .then_with(|| if one.reversed { other.value_order(&one) } else { one.value_order(&other) })
            .then_with(|| one.end.cmp(&other.end));
        if order.is_ne() {
            return order;
        }
        index += 1;
    }
    left.len().cmp(&right.len())
}

/// Components of a dynamic composite are ordered by the names of their types first.
fn order_of_types(one: &Component<'_>, other: &Component<'_>) -> Ordering {
    if one.header == other.header {
        return Ordering::Equal;
    }
    let name = |component: &Component<'_>| class_names(&component.ty).0;
    let reversed = |component: &Component<'_>| {
        if component.reversed { "ReversedType".to_owned() } else { name(component) }
    };
    if one.reversed && other.reversed {
        name(one).cmp(&name(other))
    } else {
        reversed(one).cmp(&reversed(other))
    }
}

/// The short and the full name of a type's class, without parameters. A frozen type has the class of what is frozen.
pub(crate) fn class_names(ty: &CqlType) -> (String, String) {
    let class = ty.class_name();
    let outer =
        class.strip_prefix(PACKAGE).and_then(|name| name.strip_prefix("FrozenType(")).unwrap_or(&class);
    let full = outer.split('(').next().unwrap_or_default();
    (full.rsplit('.').next().unwrap_or_default().to_owned(), full.to_owned())
}

impl Component<'_> {
    fn value_order(&self, other: &Component<'_>) -> Ordering {
        self.ty.compare(self.value, other.value)
    }
}

/// Parses components separated by colons: `1:abc`, or in a dynamic composite `s@abc:Int32Type@1`. A final `!` or `_`
/// makes a bound.
pub(super) fn parse(class: &str, text: &str) -> Result<Vec<u8>, TypeError> {
    let Some(composite) = Composite::of(class) else { return super::text::parse_blob(text) };
    let mut out = Vec::new();
    for (index, part) in split(text).into_iter().enumerate() {
        let end = match part {
            "!" => 1,
            "_" => 0xFF,
            _ => {
                parse_component(&composite, index, part, &mut out)?;
                continue;
            }
        };
        let Some(last) = out.last_mut() else {
            return Err(TypeError::Text {
                before: "Invalid component representation:",
                text: quoted(part),
                after: "",
            });
        };
        *last = end;
        break;
    }
    Ok(out)
}

fn parse_component(
    composite: &Composite,
    index: usize,
    part: &str,
    out: &mut Vec<u8>,
) -> Result<(), TypeError> {
    let (mut ty, mut text) = (None, part);
    if matches!(composite, Composite::Dynamic(_)) {
        let (name, value) = named(part)?;
        text = value;
        let found = composite.component(index, name)?;
        match name.as_bytes() {
            [alias] if composite.has_alias(*alias) => {
                out.extend_from_slice(&(IS_ALIAS | u16::from(*alias)).to_be_bytes())
            }
            name => put_short(name, out)?,
        }
        ty = Some(found);
    }
    let (ty, _) = match ty {
        Some(found) => found,
        None => composite.component(index, "")?,
    };
    let value = parse_text(&ty, &unescaped(text))?;
    ty.validate(&value)?;
    put_short(&value, out)?;
    out.push(0);
    Ok(())
}

/// Splits `type@value`; the value may be missing.
fn named(part: &str) -> Result<(&str, &str), TypeError> {
    let (name, value) = part.split_once('@').unwrap_or((part, ""));
    // Java's split drops empty parts at the end.
    let value = value.trim_end_matches('@');
    if value.contains('@') || (name.is_empty() && value.is_empty() && !part.is_empty()) {
        return Err(TypeError::Text {
            before: "Invalid component representation:",
            text: quoted(part),
            after: "",
        });
    }
    Ok((name, value))
}

fn put_short(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TypeError> {
    let length = u16::try_from(bytes.len());
    let length = length.map_err(|_| TypeError::Length {
        expected: "Expected at most 65535 bytes in a component",
        length_bytes: bytes.len(),
    })?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// Splits at colons that are not escaped by a backslash.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    if text.is_empty() {
        return parts;
    }
    let (mut start, mut before) = (0, b' ');
    for (at, byte) in text.bytes().enumerate() {
        if byte == b':' && before != b'\\' {
            parts.push(text.get(start..at).unwrap_or_default());
            start = at + 1;
        }
        before = byte;
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

fn unescaped(part: &str) -> String {
    let mut text = part.replace("\\:", ":");
    if text.ends_with('!') {
        text.pop();
    }
    text
}

/// Appends a valid value in the form that `parse` reads.
pub(super) fn write(class: &str, bytes: &[u8], out: &mut String) {
    let Some(composite) = Composite::of(class) else { return };
    let (_, mut rest) = composite.start(bytes);
    let mut index = 0;
    while !rest.is_empty() {
        let Ok(component) = composite.take(index, &mut rest) else { return };
        if index > 0 {
            out.push(':');
        }
        match component.header {
            [] => {}
            [_, alias] => out.extend([char::from(*alias), '@']),
            [_, _, name @ ..] => {
                out.push_str(&String::from_utf8_lossy(name));
                out.push('@');
            }
            [_] => {}
        }
        let mut text = String::new();
        write_text(&component.ty, component.value, &mut text);
        let mut text = text.replace(':', "\\:");
        if text.ends_with(['\\', '!']) {
            text.push('!');
        }
        out.push_str(&text);
        if component.end != 0 {
            out.push_str(if component.end < 0 { ":_" } else { ":!" });
            return;
        }
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str) -> String {
        CqlType::from_class_name(name).unwrap().class_name()
    }

    /// A collection validates and compares each of its elements.
    #[test]
    fn a_class_is_parsed_once_for_many_values() {
        let wide = class(&format!("CompositeType({})", vec!["Int32Type"; 190].join(",")));
        let nested = class(&format!(
            "CompositeType({})",
            ["CompositeType(Int32Type)", "CompositeType(UTF8Type)"].join(",")
        ));
        for class in [wide, nested] {
            let first = Composite::of(&class).unwrap();
            for _ in 0..3 {
                assert!(Arc::ptr_eq(&first, &Composite::of(&class).unwrap()));
            }
        }
        let (mut all, mut most) = (String::from("org.apache.cassandra.db.marshal.CompositeType("), 0);
        for number in 0..2 * KEPT_MAX {
            all.push_str(if number > 0 {
                ",org.apache.cassandra.db.marshal.Int32Type"
            } else {
                "org.apache.cassandra.db.marshal.Int32Type"
            });
            assert!(Composite::of(&format!("{all})")).is_some());
            most = most.max(KEPT.with_borrow(Vec::len));
        }
        assert_eq!(most, KEPT_MAX, "no more are kept");
    }

    fn hex(class: &str, text: &str) -> Result<String, String> {
        let bytes = parse(class, text).map_err(|error| error.to_string())?;
        validate(class, &bytes).unwrap();
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The bytes that Cassandra 5.0.6 stores for these constants.
    #[test]
    fn constants_are_what_cassandra_stores() {
        let fixed = class("CompositeType(Int32Type,UTF8Type)");
        for (text, bytes) in [
            ("1:abc", "00040000000100000361626300"),
            ("1", "00040000000100"),
            ("", ""),
            ("1:a\\:b", "000400000001000003613a6200"),
            ("1:a!", "0004000000010000016100"),
            ("1:!", "00040000000101"),
            ("1:_", "000400000001ff"),
            (":", "000000000000"),
            (":a", "00000000016100"),
            ("1:é", "000400000001000002c3a900"),
            ("1:abc\\!", "0004000000010000046162635c00"),
            ("1:abc!!", "0004000000010000046162632100"),
        ] {
            assert_eq!(hex(&fixed, text).as_deref(), Ok(bytes), "{text}");
        }
        assert_eq!(hex(&fixed, "x:a").unwrap_err(), "Unable to make int from 'x'");
        for text in ["1:a:b", "!", "1:abc:", "true"] {
            assert!(hex(&fixed, text).is_err(), "{text}");
        }
        let dynamic = class("DynamicCompositeType(s=>UTF8Type,i=>Int32Type)");
        for (text, bytes) in [
            ("s@foo:i@4", "80730003666f6f00806900040000000400"),
            (
                "UTF8Type@foo:Int32Type@5",
                "000855544638547970650003666f6f000009496e7433325479706500040000000500",
            ),
            ("s@", "8073000000"),
            ("s", "8073000000"),
            ("s@a:!", "807300016101"),
            ("s@a:", "8073000161000000000000"),
            ("ReversedType(Int32Type)@1", "001752657665727365645479706528496e743332547970652900040000000100"),
        ] {
            assert_eq!(hex(&dynamic, text).as_deref(), Ok(bytes), "{text}");
        }
        for text in ["z@foo", "foo", "s@a@b", "i@x", "@a", "@", "ListType(Int32Type)@1"] {
            assert!(hex(&dynamic, text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_as_the_same() {
        for (name, text) in [
            ("CompositeType(Int32Type,UTF8Type)", "1:a\\:b"),
            ("CompositeType(Int32Type,UTF8Type)", "1:a!!:_"),
            ("CompositeType(ReversedType(Int32Type),UTF8Type)", "7:\\!"),
            ("DynamicCompositeType(s=>UTF8Type,i=>Int32Type)", "s@foo:Int32Type@4:!"),
        ] {
            let class = class(name);
            let mut again = String::new();
            write(&class, &parse(&class, text).unwrap(), &mut again);
            assert_eq!(again, text);
        }
    }

    #[test]
    fn components_order_by_their_types() {
        let sorted = |name: &str, texts: &[&str]| {
            let class = class(name);
            let values: Vec<_> = texts.iter().map(|text| parse(&class, text).unwrap()).collect();
            for (at, one) in values.iter().enumerate() {
                for (to, other) in values.iter().enumerate() {
                    assert_eq!(compare(&class, one, other), at.cmp(&to), "{} {}", texts[at], texts[to]);
                }
            }
        };
        sorted(
            "CompositeType(Int32Type,UTF8Type)",
            &["", "-1:b", "1:_", "1", "1:abc", "1:z", "1:!", "2", "2:!"],
        );
        sorted("CompositeType(ReversedType(Int32Type),UTF8Type)", &["2:a", "1:a", "1:b", "-5"]);
        sorted("DynamicCompositeType(s=>UTF8Type,i=>Int32Type)", &["i@-7", "i@7", "s@ab", "s@b"]);
    }

    #[test]
    fn bytes_that_are_no_value_are_refused_and_ordered() {
        let mut state = 7_u64;
        let classes = ["CompositeType(Int32Type,UTF8Type)", "DynamicCompositeType(s=>UTF8Type,i=>Int32Type)"]
            .map(class);
        for round in 0..20_000 {
            let mut bytes = Vec::new();
            for _ in 0..round % 12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.push(match state >> 60 {
                    0..8 => 0,
                    8..11 => 0x80,
                    11..13 => b's',
                    _ => (state >> 40) as u8 % 6,
                });
            }
            for class in &classes {
                _ = validate(class, &bytes);
                assert_eq!(compare(class, &bytes, &bytes), Ordering::Equal);
                _ = compare(class, &bytes, &[0, 4, 0, 0, 0, 1, 0]);
                write(class, &bytes, &mut String::new());
            }
        }
    }
}
