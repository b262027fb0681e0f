//! A random table, with the user types it uses.

use super::Draw;
use super::index::indexes;
use super::kind::Kind;

/// Characters of two, three and four bytes of UTF-8, the least and the greatest of their first bytes among them.
const OUTSIDE_ASCII: &[&str] = &["\u{80}", "é", "ÿ", "߿", "日", "\u{ffee}", "𝄞", "\u{10fffd}"];

/// A column.
#[derive(Clone, Debug)]
pub struct GeneratedColumn {
    /// As written in statements, in quotes where it needs them.
    pub name: String,
    /// Its type.
    pub kind: Kind,
}

/// A table and the statements that make and remove it.
#[derive(Clone, Debug)]
pub struct GeneratedTable {
    /// Its name.
    pub name: String,
    /// Columns of the partition key.
    pub partition: Vec<GeneratedColumn>,
    /// Clustering columns.
    pub clustering: Vec<GeneratedColumn>,
    /// Static columns.
    pub statics: Vec<GeneratedColumn>,
    /// All others.
    pub regulars: Vec<GeneratedColumn>,
    /// CREATE statements, in order.
    pub create: Vec<String>,
    /// DROP statements, in order.
    pub drop: Vec<String>,
    /// Whether every write says its timestamp.
    pub timestamps: bool,
    /// Whether its values are counters.
    pub counters: bool,
    /// Whether writes have conditions at times.
    pub conditions: bool,
    /// Whether writes expire at times.
    pub expires: bool,
    /// Columns that were dropped and may come back.
    pub dropped: Vec<GeneratedColumn>,
    /// Columns that were added.
    pub added: usize,
}

impl GeneratedTable {
    /// Every column.
    pub fn all(&self) -> Vec<&GeneratedColumn> {
        let parts = [&self.partition, &self.clustering, &self.statics, &self.regulars];
        parts.into_iter().flatten().collect()
    }

    /// Columns that hold values.
    pub fn values(&self) -> Vec<&GeneratedColumn> {
        self.statics.iter().chain(&self.regulars).collect()
    }
}

/// A table named `name`.
pub fn table(draw: &mut Draw, name: &str) -> GeneratedTable {
    let mut types = Vec::new();
    let mut create = Vec::new();
    let mut drop = vec![format!("DROP TABLE IF EXISTS {name}")];
    if draw.chance(40) {
        let fields: Vec<(String, Kind)> =
            (0..draw.between(1, 3)).map(|at| (format!("f{at}"), Kind::simple(draw))).collect();
        let type_name = format!("{name}_t");
        let listed: Vec<String> = fields.iter().map(|(field, kind)| format!("{field} {kind}")).collect();
        create.push(format!("CREATE TYPE {type_name} ({})", listed.join(", ")));
        drop.push(format!("DROP TYPE IF EXISTS {type_name}"));
        types.push(Kind::Udt(type_name, fields, true));
    }
    let columns = |draw: &mut Draw, letter: char, count: usize, kind: &dyn Fn(&mut Draw) -> Kind| {
        // Names outside ASCII have an order of their own among the columns of a row.
        let name = |draw: &mut Draw, at| match draw.below(100) {
            0..5 => format!("\"{} {at}\"", letter.to_ascii_uppercase()),
            5..12 => format!("\"{}{letter}{at}\"", draw.word(OUTSIDE_ASCII)),
            12..16 => format!("\"{letter}{}{at}\"", draw.word(OUTSIDE_ASCII)),
            _ => format!("{letter}{at}"),
        };
        let column = |at| GeneratedColumn { name: name(draw, at), kind: kind(draw) };
        (0..count).map(column).collect::<Vec<_>>()
    };
    let partitions = draw.between(1, 2);
    let partition = columns(draw, 'p', partitions, &|draw| Kind::of_key(draw));
    let clusterings = draw.below(4);
    let clustering = columns(draw, 'c', clusterings, &|draw| Kind::of_key(draw));
    let counters = draw.chance(6);
    let of_value = |draw: &mut Draw| {
        if counters { Kind::Simple("counter") } else { Kind::of_value(draw, &types) }
    };
    let static_count = if clustering.is_empty() { 0 } else { draw.below(3) };
    let statics = columns(draw, 's', static_count, &of_value);
    let regular_count = if counters { draw.between(1, 3) } else { draw.below(6) };
    let regulars = columns(draw, 'v', regular_count, &of_value);
    let timestamps = !counters && draw.chance(50);
    let mut generated = GeneratedTable {
        name: name.to_owned(),
        partition,
        clustering,
        statics,
        regulars,
        create: Vec::new(),
        drop,
        timestamps,
        counters,
        conditions: !timestamps && !counters && draw.chance(40),
        // When two writes at one timestamp expire depends on the clock.
        expires: !timestamps && !counters && draw.chance(40),
        dropped: Vec::new(),
        added: 0,
    };
    create.push(create_table(draw, &generated));
    if draw.chance(25) {
        create.extend(indexes(draw, &generated));
    }
    generated.create = create;
    generated
}

fn create_table(draw: &mut Draw, table: &GeneratedTable) -> String {
    let mut lines: Vec<String> = Vec::new();
    for column in table.all() {
        let is_static = table.statics.iter().any(|other| other.name == column.name);
        lines.push(format!("{} {}{}", column.name, column.kind, if is_static { " static" } else { "" }));
    }
    let names = |columns: &[GeneratedColumn]| {
        columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut key = format!("({})", names(&table.partition));
    if !table.clustering.is_empty() {
        key = format!("{key}, {}", names(&table.clustering));
    }
    lines.push(format!("PRIMARY KEY ({key})"));
    let mut text = format!("CREATE TABLE {} ({})", table.name, lines.join(", "));
    if !table.clustering.is_empty() && draw.chance(60) {
        let order = |draw: &mut Draw| if draw.chance(50) { "DESC" } else { "ASC" };
        let orders: Vec<String> =
            table.clustering.iter().map(|column| format!("{} {}", column.name, order(draw))).collect();
        text = format!("{text} WITH CLUSTERING ORDER BY ({})", orders.join(", "));
    }
    text
}
