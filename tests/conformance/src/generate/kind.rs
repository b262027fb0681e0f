//! Types of generated columns and their values as literals.

use std::fmt;

use super::Draw;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A type without parameters, by name.
    Simple(&'static str),
    /// `list<..>`, frozen or not.
    List(Box<Kind>, bool),
    /// `set<..>`.
    Set(Box<Kind>, bool),
    /// `map<.., ..>`.
    Map(Box<Kind>, Box<Kind>, bool),
    /// `tuple<..>`.
    Tuple(Vec<Kind>),
    /// `vector<.., n>`.
    Vector(Box<Kind>, usize),
    /// A user-defined type, with its fields.
    Udt(String, Vec<(String, Kind)>, bool),
}

/// Types without parameters and the literals that are drawn of each.
const SIMPLE: &[(&str, &[&str])] = &[
    ("int", &["0", "1", "-1", "2", "3", "5", "100", "2147483647", "-2147483648"]),
    ("text", &["''", "'a'", "'b'", "'aa'", "'B'", "'it''s'", "'Ünï'", "'zz'"]),
    ("bigint", &["0", "1", "-1", "2", "9223372036854775807", "-9223372036854775808"]),
    ("ascii", &["''", "'a'", "'b'", "'Z'"]),
    ("blob", &["0x", "0x00", "0x01", "0x0102", "0xff"]),
    ("boolean", &["true", "false"]),
    ("tinyint", &["0", "1", "-1", "127", "-128"]),
    ("smallint", &["0", "1", "-1", "32767", "-32768"]),
    ("varint", &["0", "1", "-1", "127", "128", "-128", "-129", "123456789012345678901234567890"]),
    // No two of them are equal: which spelling of an equal key is shown depends on memtables and files.
    ("decimal", &["0", "1", "2.0", "-1.50", "0.001", "1E+3", "123456789.123456789"]),
    ("float", &["0", "1.5", "-1.5", "-0.0", "NaN", "Infinity", "1E10"]),
    ("double", &["0", "1.5", "-1.5", "-0.0", "NaN", "-Infinity", "1E100"]),
    ("date", &["'2026-11-21'", "'1970-01-01'", "'1969-12-31'", "0"]),
    ("time", &["'00:00:00'", "'08:12:54.123456789'", "'23:59:59.999999999'"]),
    ("timestamp", &["0", "1", "-1", "'2026-11-21 09:30:00+0000'", "'2026-11-21T09:30:00.123Z'"]),
    (
        "uuid",
        &[
            "00000000-0000-0000-0000-000000000000",
            "123e4567-e89b-12d3-a456-426655440000",
            "8b3e4567-e89b-42d3-a456-426655440001",
        ],
    ),
    (
        "timeuuid",
        &[
            "00000000-0000-1000-8080-808080808080",
            "50554d6e-29bb-11e5-b345-feff819cdc9f",
            "d2177dd0-eaa2-11de-a572-001b779c76e3",
        ],
    ),
    ("inet", &["'127.0.0.1'", "'10.0.0.1'", "'::1'", "'2001:db8::1'"]),
    ("duration", &["1d", "2h3m", "-1mo", "P1Y2M", "0s"]),
];

/// What is added to counters.
const COUNTED: &[&str] = &["0", "1", "-1", "2", "1000", "9223372036854775807"];

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frozen = matches!(
            self,
            Kind::List(_, true) | Kind::Set(_, true) | Kind::Map(_, _, true) | Kind::Udt(_, _, true)
        );
        if frozen {
            f.write_str("frozen<")?;
        }
        match self {
            Kind::Simple(name) => f.write_str(name)?,
            Kind::List(element, _) => write!(f, "list<{element}>")?,
            Kind::Set(element, _) => write!(f, "set<{element}>")?,
            Kind::Map(key, value, _) => write!(f, "map<{key}, {value}>")?,
            Kind::Tuple(fields) => {
                let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
                write!(f, "tuple<{}>", fields.join(", "))?;
            }
            Kind::Vector(element, dimension) => write!(f, "vector<{element}, {dimension}>")?,
            Kind::Udt(name, ..) => f.write_str(name)?,
        }
        f.write_str(if frozen { ">" } else { "" })
    }
}

impl Kind {
    /// A type without parameters; int and text come often.
    pub fn simple(draw: &mut Draw) -> Kind {
        let kinds = if draw.chance(50) { &SIMPLE[..2] } else { SIMPLE };
        Kind::Simple(draw.one(kinds).0)
    }

    /// One that may be part of a key.
    pub fn of_key(draw: &mut Draw) -> Kind {
        if draw.chance(8) {
            return Kind::nested(draw, 0);
        }
        loop {
            let kind = Kind::simple(draw);
            if kind != Kind::Simple("duration") {
                return kind;
            }
        }
    }

    /// One of a value: simple, or a collection or user type that may be not frozen.
    pub fn of_value(draw: &mut Draw, types: &[Kind]) -> Kind {
        let frozen = draw.chance(30);
        match draw.below(12) {
            0 => Kind::List(Box::new(Kind::element(draw)), frozen),
            1 => Kind::Set(Box::new(Kind::of_key(draw)), frozen),
            2 => Kind::Map(Box::new(Kind::of_key(draw)), Box::new(Kind::element(draw)), frozen),
            3 if !types.is_empty() => match draw.one(types).clone() {
                Kind::Udt(name, fields, _) => Kind::Udt(name, fields, frozen),
                other => other,
            },
            4 => Kind::nested(draw, 0),
            _ => Kind::simple(draw),
        }
    }

    fn element(draw: &mut Draw) -> Kind {
        if draw.chance(15) { Kind::nested(draw, 1) } else { Kind::simple(draw) }
    }

    /// A frozen collection, a tuple or a vector.
    pub fn nested(draw: &mut Draw, depth: usize) -> Kind {
        let inner = |draw: &mut Draw| {
            if depth < 2 && draw.chance(20) { Kind::nested(draw, depth + 1) } else { Kind::of_set(draw) }
        };
        match draw.below(5) {
            0 => Kind::List(Box::new(inner(draw)), true),
            1 => Kind::Set(Box::new(inner(draw)), true),
            2 => Kind::Map(Box::new(inner(draw)), Box::new(inner(draw)), true),
            3 => Kind::Tuple((0..draw.between(1, 3)).map(|_| inner(draw)).collect()),
            _ => {
                Kind::Vector(Box::new(Kind::Simple(draw.word(&["float", "int", "text"]))), draw.between(1, 3))
            }
        }
    }

    fn of_set(draw: &mut Draw) -> Kind {
        loop {
            let kind = Kind::simple(draw);
            if kind != Kind::Simple("duration") {
                return kind;
            }
        }
    }

    /// Whether it is made of several cells.
    pub fn is_multi_cell(&self) -> bool {
        matches!(
            self,
            Kind::List(_, false) | Kind::Set(_, false) | Kind::Map(_, _, false) | Kind::Udt(_, _, false)
        )
    }

    /// A value of it.
    pub fn literal(&self, draw: &mut Draw) -> String {
        let many = |draw: &mut Draw, of: &dyn Fn(&mut Draw) -> String| {
            let count = draw.below(4);
            (0..count).map(|_| of(draw)).collect::<Vec<_>>().join(", ")
        };
        match self {
            Kind::Simple("counter") => draw.word(COUNTED).to_owned(),
            Kind::Simple(name) => {
                let found = SIMPLE.iter().find(|(simple, _)| simple == name);
                (*draw.one(found.map_or(&["null"], |(_, literals)| literals))).to_owned()
            }
            Kind::List(element, _) => format!("[{}]", many(draw, &|draw| element.literal(draw))),
            Kind::Set(element, _) => format!("{{{}}}", many(draw, &|draw| element.literal(draw))),
            Kind::Map(key, value, _) => {
                let mut entries = std::collections::BTreeMap::new();
                // Of keys that are equal and written differently nobody knows which counts.
                let shape = key.to_string();
                let is_ambiguous = ["decimal", "set<", "map<"].iter().any(|part| shape.contains(part));
                let most = if is_ambiguous { 2 } else { 4 };
                for _ in 0..draw.below(most) {
                    entries.insert(key.literal(draw), value.literal(draw));
                }
                let entries: Vec<String> =
                    entries.iter().map(|(key, value)| format!("{key}: {value}")).collect();
                format!("{{{}}}", entries.join(", "))
            }
            Kind::Tuple(fields) => {
                let fields: Vec<String> = fields.iter().map(|field| field.literal_or_null(draw)).collect();
                format!("({})", fields.join(", "))
            }
            Kind::Vector(element, dimension) => {
                let elements: Vec<String> = (0..*dimension).map(|_| element.literal(draw)).collect();
                format!("[{}]", elements.join(", "))
            }
            Kind::Udt(_, fields, _) => {
                let taken = draw.some(fields, 70);
                let fields: Vec<String> = taken
                    .iter()
                    .map(|(name, kind)| format!("{name}: {}", kind.literal_or_null(draw)))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
        }
    }

    fn literal_or_null(&self, draw: &mut Draw) -> String {
        if draw.chance(10) { "null".to_owned() } else { self.literal(draw) }
    }
}
