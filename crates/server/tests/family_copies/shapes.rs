//! Makes random tables with rows, of every shape that either interface can make: column families by definitions,
//! compact tables by statements.

use helenus_wire::thrift::{
    CfDef, Column, ColumnDef, ColumnParent, ConsistencyLevel, CounterColumn, IndexType, Method, args,
};

use super::interfaces::{KEYSPACE, TestDatabase};

/// A source of random numbers (SplitMix64).
pub struct Draw(pub u64);

impl Draw {
    /// A random number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }

    /// True once in `of` times.
    pub fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    pub fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const CLASSES: [&str; 25] = [
    "UTF8Type",
    "DurationType",
    "AsciiType",
    "BytesType",
    "LongType",
    "Int32Type",
    "IntegerType",
    "UUIDType",
    "TimeUUIDType",
    "LexicalUUIDType",
    "DateType",
    "TimestampType",
    "BooleanType",
    "DoubleType",
    "FloatType",
    "DecimalType",
    "InetAddressType",
    "ShortType",
    "ByteType",
    "SimpleDateType",
    "TimeType",
    "TupleType(Int32Type,UTF8Type)",
    "FrozenType(ListType(Int32Type))",
    "UserType(other,70616972,61:Int32Type)",
    "DynamicCompositeType(a=>AsciiType,i=>Int32Type)",
];

const TYPES: [&str; 17] = [
    "text",
    "ascii",
    "blob",
    "bigint",
    "int",
    "varint",
    "uuid",
    "timeuuid",
    "timestamp",
    "boolean",
    "double",
    "date",
    "frozen<pair>",
    "frozen<list<int>>",
    "'org.apache.cassandra.db.marshal.DateType'",
    "'org.apache.cassandra.db.marshal.LexicalUUIDType'",
    "'org.apache.cassandra.db.marshal.EmptyType'",
];

const NAMES: [&str; 9] =
    ["value", "column1", "a", "value1", "Key", "key", "\u{e9}t\u{e9}", "it's", "a \"b\""];

fn class(draw: &mut Draw) -> String {
    match draw.below(12) {
        0 => format!("ReversedType({})", draw.one(&CLASSES)),
        1 => "LongType(reversed=true)".to_owned(),
        2..6 => "UTF8Type".to_owned(),
        _ => draw.one(&CLASSES).to_owned(),
    }
}

fn composite(draw: &mut Draw) -> String {
    let count = 1 + draw.below(3);
    let parts: Vec<String> = (0..count).map(|_| class(draw)).collect();
    format!("CompositeType({})", parts.join(","))
}

/// The parts inside the parentheses of a class.
fn parts(class: &str) -> Vec<&str> {
    let inner = class.split_once('(').map_or("", |(_, rest)| &rest[..rest.len() - 1]);
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&inner[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.push(&inner[begin..]);
    found
}

fn with_length(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

/// A random value of a class.
fn value(class: &str, draw: &mut Draw) -> Vec<u8> {
    let number = draw.below(5) as u8;
    let sized = |size: usize| [vec![0; size - 1], vec![number]].concat();
    match class.split('(').next().unwrap() {
        "UTF8Type" | "AsciiType" => vec![b'a' + number, b'x'],
        "LongType" | "TimeType" | "TimestampType" | "DateType" | "DoubleType" => sized(8),
        "Int32Type" | "FloatType" | "SimpleDateType" | "InetAddressType" => sized(4),
        "DecimalType" => [vec![0, 0, 0, 1], vec![number]].concat(),
        "ShortType" => sized(2),
        "BooleanType" => vec![number % 2],
        "UUIDType" | "TimeUUIDType" | "LexicalUUIDType" => {
            let mut uuid = sized(16);
            (uuid[6], uuid[8]) = (0x10, 0x80);
            uuid
        }
        "TupleType" => [with_length(&sized(4)), with_length(b"t")].concat(),
        "UserType" => with_length(&sized(4)),
        "FrozenType" => [vec![0, 0, 0, 1], with_length(&sized(4))].concat(),
        "EmptyType" => Vec::new(),
        "DurationType" => vec![2, 4, 2 * number],
        "ReversedType" => value(parts(class)[0], draw),
        "DynamicCompositeType" => [&[0x80, b'a', 0, 1, b'a' + number, 0][..]].concat(),
        "CompositeType" => {
            let component = |part: &&str| {
                let bytes = value(part, draw);
                [&(bytes.len() as u16).to_be_bytes()[..], &bytes, &[0]].concat()
            };
            parts(class).iter().map(component).collect::<Vec<_>>().concat()
        }
        _ => vec![number],
    }
}

fn column(name: Vec<u8>, class: &str, draw: &mut Draw) -> ColumnDef<'static> {
    let indexed = draw.chance(4);
    ColumnDef {
        name: name.into(),
        validation_class: class.to_owned().into(),
        index_type: indexed.then_some(if draw.chance(3) { IndexType::Composites } else { IndexType::Keys }),
        index_name: None,
        index_options: None,
    }
}

/// Declares columns with names that the comparator accepts.
fn declare(definition: &mut CfDef<'static>, names: &str, draw: &mut Draw) {
    let is_counter = definition.default_validation_class.as_deref() == Some("CounterColumnType");
    let mut columns: Vec<ColumnDef<'static>> = Vec::new();
    for _ in 0..1 + draw.below(4) {
        let name = match names {
            "UTF8Type" if draw.chance(2) => draw.one(&NAMES).as_bytes().to_vec(),
            names => value(names, draw),
        };
        if columns.iter().all(|known| known.name != name) {
            let class =
                if is_counter { "CounterColumnType".to_owned() } else { draw.one(&CLASSES).to_owned() };
            let mut column = column(name, &class, draw);
            if is_counter || definition.column_type.as_deref() == Some("Super") {
                column.index_type = None;
            }
            columns.push(column);
        }
    }
    definition.column_metadata = Some(columns);
}

/// Makes a column family and sometimes alters it. Returns its definition, or `None` if it was refused.
pub fn family(name: &str, draw: &mut Draw, doors: &mut TestDatabase) -> Option<CfDef<'static>> {
    let mut definition = CfDef::named(KEYSPACE, "");
    definition.name = name.to_owned().into();
    let is_super = draw.chance(4);
    let is_composite = !is_super && draw.chance(4);
    let comparator = if is_composite { composite(draw) } else { class(draw) };
    let subcomparator = draw.one(&CLASSES);
    definition.column_type = Some(if is_super { "Super" } else { "Standard" }.into());
    definition.comparator_type = Some(comparator.clone().into());
    definition.subcomparator_type = is_super.then(|| subcomparator.to_owned().into());
    definition.key_validation_class = Some(if draw.chance(5) { composite(draw) } else { class(draw) }.into());
    let value = match draw.below(6) {
        0 => "CounterColumnType".to_owned(),
        1 => "EmptyType".to_owned(),
        _ => draw.one(&CLASSES).to_owned(),
    };
    definition.default_validation_class = Some(value.into());
    definition.key_alias = draw.chance(3).then(|| draw.one(&NAMES).as_bytes().to_vec().into());
    definition.comment = Some(draw.one(&["", "it's */ a comment", "a; b -- c"]).into());
    let names = if is_super { subcomparator } else { &comparator };
    if draw.chance(2) {
        declare(&mut definition, names, draw);
    }
    doors.call(Method::SystemAddColumnFamily, &args::WithCfDef { cf_def: definition.clone() }).ok()?;
    fill(&definition, draw, doors);
    for _ in 0..draw.below(3) {
        // Columns are declared and dropped, and some are declared again.
        let before = definition.clone();
        match draw.chance(3) {
            true => definition.column_metadata = Some(Vec::new()),
            false => declare(&mut definition, names, draw),
        }
        let changed =
            doors.call(Method::SystemUpdateColumnFamily, &args::WithCfDef { cf_def: definition.clone() });
        if changed.is_err() {
            definition = before;
        }
        fill(&definition, draw, doors);
    }
    Some(definition)
}

/// Writes columns with declared and undeclared names.
fn fill(definition: &CfDef<'static>, draw: &mut Draw, doors: &mut TestDatabase) {
    let is_super = definition.column_type.as_deref() == Some("Super");
    let of = |class: &Option<std::borrow::Cow<'static, str>>| class.as_deref().unwrap_or_default().to_owned();
    let (comparator, values) = (of(&definition.comparator_type), of(&definition.default_validation_class));
    let names = if is_super { of(&definition.subcomparator_type) } else { comparator.clone() };
    for _ in 0..8 {
        let key = value(&of(&definition.key_validation_class), draw);
        let within = is_super.then(|| value(&comparator, draw));
        let declared = definition.column_metadata.as_deref().unwrap_or_default();
        let (name, class) = match draw.chance(2) && !declared.is_empty() {
            true => {
                let column = &declared[draw.below(declared.len())];
                (column.name.to_vec(), column.validation_class.to_string())
            }
            false => (value(&names, draw), values.clone()),
        };
        let column_parent = ColumnParent { column_family: &definition.name, super_column: within.as_deref() };
        let consistency_level = ConsistencyLevel::One;
        // Some writes are refused, because a declared name has another type.
        let _written = if values == "CounterColumnType" {
            let column = CounterColumn { name: &name, value: 3 };
            doors.call(Method::Add, &args::Add { key: &key, column_parent, column, consistency_level })
        } else {
            let value = value(&class, draw);
            let timestamp = Some(1_000 + draw.below(1_000) as i64);
            let column = Column { name: &name, value: Some(&value), timestamp, ttl: None };
            doors.call(Method::Insert, &args::Insert { key: &key, column_parent, column, consistency_level })
        };
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A random literal of a CQL type.
fn literal(ty: &str, draw: &mut Draw) -> String {
    let number = draw.below(5);
    match ty {
        "text" | "ascii" => format!("'t{number}'"),
        "blob" => format!("0x0{number}"),
        "boolean" => "true".to_owned(),
        "date" => format!("'2020-01-0{}'", number + 1),
        "uuid" | "timeuuid" => format!("00000000-0000-1000-8000-00000000000{number}"),
        "frozen<pair>" => format!("{{a: {number}}}"),
        "frozen<list<int>>" => format!("[{number}]"),
        ty if ty.contains("DateType") => format!("{number}"),
        ty if ty.contains("LexicalUUID") => format!("00000000-0000-1000-8000-00000000000{number}"),
        ty if ty.contains("Empty") => "0x".to_owned(),
        _ => number.to_string(),
    }
}

/// Makes a table by a statement, mostly a compact one, and sometimes alters it. Returns whether it was made.
pub fn table(name: &str, draw: &mut Draw, doors: &TestDatabase) -> bool {
    let mut names: Vec<&str> = NAMES.to_vec();
    let mut next = |draw: &mut Draw| quoted(names.remove(draw.below(names.len())));
    let mut typed = |draw: &mut Draw| {
        // The last type, which is empty, is of no use for a key.
        (next(draw), TYPES[draw.below(TYPES.len() - 1)])
    };
    let partition: Vec<_> = (0..1 + draw.below(2)).map(|_| typed(draw)).collect();
    let clustering: Vec<_> = (0..draw.below(4)).map(|_| typed(draw)).collect();
    let most = if clustering.is_empty() { 1 + draw.below(3) } else { draw.below(2) };
    let mut others: Vec<_> = (0..most).map(|_| typed(draw)).collect();
    for (_, ty) in &mut others {
        if draw.chance(8) {
            *ty = TYPES[TYPES.len() - 1];
        }
    }
    let counts = draw.chance(5);
    if counts {
        others.iter_mut().for_each(|(_, ty)| *ty = "counter");
    }
    let columns = [&partition[..], &clustering, &others].concat();
    let joined =
        |of: &[(String, &str)]| of.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(", ");
    let declared: Vec<String> = columns.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
    let mut key = vec![format!("({})", joined(&partition))];
    key.extend(clustering.iter().map(|(name, _)| name.clone()));
    let compact = if draw.chance(8) { "comment = 'plain'" } else { "COMPACT STORAGE" };
    let order: Vec<String> =
        clustering.iter().map(|(name, _)| format!("{name} {}", draw.one(&["ASC", "DESC"]))).collect();
    let order = match order.is_empty() || draw.chance(2) {
        true => String::new(),
        false => format!(" AND CLUSTERING ORDER BY ({})", order.join(", ")),
    };
    let made = doors.cql(&format!(
        "CREATE TABLE {KEYSPACE}.{name} ({}, PRIMARY KEY ({})) WITH {compact} AND comment = 'it''s */ ;'{order}",
        declared.join(", "),
        key.join(", ")
    ).replace("comment = 'plain' AND ", ""));
    if made.is_err() {
        return false;
    }
    if let Some((column, _)) = others.first().filter(|_| draw.chance(3)) {
        let _refused = doors.cql(&format!("CREATE INDEX ON {KEYSPACE}.{name} ({column})"));
    }
    write(name, &columns, draw, doors);
    match others.last().filter(|_| draw.chance(3)) {
        Some((column, _)) => _ = doors.cql(&format!("ALTER TABLE {KEYSPACE}.{name} DROP {column}")),
        None if draw.chance(3) => {
            _ = doors.cql(&format!("ALTER TABLE {KEYSPACE}.{name} RENAME {} TO renamed", columns[0].0));
        }
        None => {}
    }
    true
}

fn write(name: &str, columns: &[(String, &str)], draw: &mut Draw, doors: &TestDatabase) {
    let counted: Vec<_> = columns.iter().filter(|(_, ty)| *ty == "counter").collect();
    for _ in 0..8 {
        let values: Vec<(String, String)> = columns
            .iter()
            .filter(|(_, ty)| *ty != "counter")
            .map(|(name, ty)| (name.clone(), literal(ty, draw)))
            .collect();
        let _refused = match counted.first() {
            Some((count, _)) => {
                let at: Vec<String> =
                    values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                doors.cql(&format!(
                    "UPDATE {KEYSPACE}.{name} SET {count} = {count} + 2 WHERE {}",
                    at.join(" AND ")
                ))
            }
            None => {
                let (names, values): (Vec<_>, Vec<_>) = values.into_iter().unzip();
                let (names, values) = (names.join(", "), values.join(", "));
                doors.cql(&format!(
                    "INSERT INTO {KEYSPACE}.{name} ({names}) VALUES ({values}) USING TIMESTAMP 7"
                ))
            }
        };
    }
}
