//! Types of generated columns and their values as literals.

use std::fmt;

use super::Draw;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A type without parameters, by name.
    Simple(&'static str),
    /// The same by its class, in quotes, with its name.
    Class(&'static str, &'static str),
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

/// Types by their classes.
const CLASSES: &[(&str, &str)] = &[
    ("'Int32Type'", "int"),
    ("'org.apache.cassandra.db.marshal.UTF8Type'", "text"),
    ("'LongType()'", "bigint"),
    ("'DecimalType'", "decimal"),
    ("'DoubleType'", "double"),
    ("'FrozenType(FloatType)'", "float"),
    ("'TimestampType'", "timestamp"),
    ("'SimpleDateType'", "date"),
    ("'UUIDType'", "uuid"),
];

/// Constants at the bounds of their types and beyond them.
const EDGES: &[(&str, &[&str])] = &[
    ("int", &["2147483648", "-2147483649", "1.0"]),
    ("bigint", &["9223372036854775808", "-9223372036854775809"]),
    ("tinyint", &["128", "-129"]),
    ("smallint", &["32768", "-32769"]),
    ("varint", &["-0", "1.0", "99999999999999999999999999999999999999999999"]),
    (
        "decimal",
        &["1E+308", "1e309", "1e400", "1e2147483648", "1e-2147483648", "1e99999999999", "-1E-400", "NaN"],
    ),
    ("float", &["3.4028235e38", "3.4028236e38", "1e39", "1e-46", "1e400", "16777217", "1e99999999999"]),
    ("double", &["1.7976931348623157e308", "1.7976931348623159e308", "5e-324", "1e-400", "-1e400", "2e23"]),
    ("date", &["4294967295", "4294967296", "-1", "'-5877641-06-23'", "'-5877641-06-22'", "'+5881580-07-12'"]),
    ("date", &["'-0001-01-01'", "'-0000-01-01'", "'10000-01-01'", "'2023-02-29'", "'0000-01-01'"]),
    ("time", &["86399999999999", "86400000000000", "-1", "'24:00:00'", "'1:2'", "'1:2:3.1234567890'"]),
    (
        "timestamp",
        &["9223372036854775808", "'0000-01-01'", "'0000-01-01 UTC'", "'-0001-02-03'", "'-0000-02-03'"],
    ),
    (
        "timestamp",
        &["'2011-02-31'", "'2011-02-03 24:00'", "'2011-02-03+01:30:20'", "'2011-02-03 04:05 UTC+01'"],
    ),
    ("duration", &["178956970y", "178956971y", "2147483648d", "P9999-99-99T99:99:99"]),
    ("inet", &["'1.2.3'", "'256.1.1.1'", "'::ffff:1.2.3.4'"]),
    ("timeuuid", &["123e4567-e89b-42d3-a456-426614174000"]),
    ("ascii", &["'é'"]),
    ("boolean", &["1"]),
    ("blob", &["0x0"]),
];

/// Names of time zones: ids, short names and long ones, and some that are none.
const ZONES: &[&str] = &[
    "UTC",
    "Z",
    "GMT+02:00",
    "CET",
    "CEST",
    "PST",
    "EST5EDT",
    "America/New_York",
    "Europe/Paris",
    "Asia/Kathmandu",
    "Etc/UTC",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Pacific Standard Time",
    "Central European Summer Time",
    "+01:30:20",
    "-0830",
    "cet",
    "Nowhere/Town",
    "UTC+1",
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
            Kind::Simple(name) | Kind::Class(name, _) => f.write_str(name)?,
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
        if draw.chance(3) {
            let (class, name) = *draw.one(CLASSES);
            return Kind::Class(class, name);
        }
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
                // What stands in a vector is frozen or not as it says, which its class shows.
                let element = match draw.below(6) {
                    0 => Kind::List(Box::new(Kind::of_set(draw)), draw.chance(50)),
                    1 => Kind::Set(Box::new(Kind::of_set(draw)), draw.chance(50)),
                    _ => Kind::Simple(draw.word(&["float", "int", "text"])),
                };
                Kind::Vector(Box::new(element), draw.between(1, 3))
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
            Kind::Simple(name) | Kind::Class(_, name) => {
                if draw.chance(3)
                    && let Some(edge) = edge(draw, name)
                {
                    return edge;
                }
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

/// A constant at a bound of a type or beyond it, or one that is drawn digit by digit.
fn edge(draw: &mut Draw, name: &str) -> Option<String> {
    let edges: Vec<&str> =
        EDGES.iter().filter(|(of, _)| *of == name).flat_map(|(_, edges)| edges.iter().copied()).collect();
    match name {
        "float" | "double" | "decimal" if draw.chance(60) => {
            let (whole, fraction) = (draw.between(1, 9), draw.below(1_000_000_000));
            // The last digit is none that other spellings could leave out.
            let exponent = draw.below(80) as i32 - 40;
            Some(format!("{whole}.{fraction:09}{}{}E{exponent}", draw.below(10_000_000), draw.between(1, 9)))
        }
        "timestamp" if draw.chance(60) => {
            let (year, month, day) = (draw.between(1850, 2100), draw.between(1, 12), draw.between(1, 31));
            let (hour, minute) = (draw.below(24), draw.below(60));
            Some(format!("'{year}-{month:02}-{day:02} {hour:02}:{minute:02} {}'", draw.one(ZONES)))
        }
        _ if edges.is_empty() => None,
        _ => Some((*draw.one(&edges)).to_owned()),
    }
}
