//! Statements as values, and their CQL.

use crate::table::{Column, Place, Table, Type};
use crate::values::Pool;
use std::fmt::Write as _;

/// A value of a column as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    Null,
    Simple(u8),
    Set(Vec<u8>),
    List(Vec<u8>),
    Map(Vec<(u8, u8)>),
    Fields(Vec<Option<u8>>),
}

/// What an UPDATE does to a column, or a DELETE to a part of one.
#[derive(Clone, Debug)]
pub(crate) enum Assign {
    /// `v = term`
    Set(usize, Term),
    /// `c = c + term`: a list's end.
    Add(usize, Term),
    /// `l = term + l`
    Prepend(usize, Vec<u8>),
    /// `c = c - {..}`, by key; of a list by value.
    Remove(usize, Vec<u8>),
    /// `m[key] = value`
    Element(usize, u8, Option<u8>),
    /// `l[at] = value`
    At(usize, usize, Option<u8>),
    /// `u.f0 = value`
    Field(usize, usize, Option<u8>),
    /// `n = n + value`
    Count(usize, i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

impl Compare {
    pub(crate) const ALL: [Compare; 5] =
        [Compare::Less, Compare::LessOrEqual, Compare::Equal, Compare::GreaterOrEqual, Compare::Greater];

    fn cql(self) -> &'static str {
        match self {
            Compare::Less => "<",
            Compare::LessOrEqual => "<=",
            Compare::Equal => "=",
            Compare::GreaterOrEqual => ">=",
            Compare::Greater => ">",
        }
    }

    pub(crate) fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Compare::Less => order.is_lt(),
            Compare::LessOrEqual => order.is_le(),
            Compare::Equal => order.is_eq(),
            Compare::GreaterOrEqual => order.is_ge(),
            Compare::Greater => order.is_gt(),
        }
    }
}

/// A relation of clustering columns, by their number among them.
#[derive(Clone, Debug)]
pub(crate) enum Pred {
    One(usize, Compare, u8),
    In(usize, Vec<u8>),
    /// `(c0, c1) < (..)`: the first columns, in the order of their values.
    Tuple(Compare, Vec<u8>),
    /// `(c0, c1) IN (..)`
    TupleIn(Vec<Vec<u8>>),
}

/// A condition on what is not in the primary key.
#[derive(Clone, Debug)]
pub(crate) enum Filter {
    Value(usize, Compare, u8),
    Contains(usize, u8),
    ContainsKey(usize, u8),
    Entry(usize, u8, u8),
}

#[derive(Clone, Debug)]
pub(crate) enum Condition {
    None,
    NotExists,
    Exists,
    /// Columns that are not in parts; `None` is null.
    Columns(Vec<(usize, Option<u8>)>),
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Insert(Vec<(usize, Term)>),
    Update(Vec<Assign>),
    /// Columns and parts of them: `Set(column, Null)`, elements, fields.
    DeleteParts(Vec<Assign>),
    /// Rows; all of the partition without a relation.
    DeleteRows(Vec<Pred>),
}

/// One statement that writes to a partition.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) table: usize,
    pub(crate) key: Vec<u8>,
    /// `None`: only static columns, or rows by relations.
    pub(crate) clustering: Option<Vec<u8>>,
    pub(crate) action: Action,
    pub(crate) timestamp_us: Option<i64>,
    pub(crate) ttl_s: Option<u32>,
    pub(crate) condition: Condition,
}

#[derive(Clone, Debug)]
pub(crate) enum Keys {
    All,
    One(Vec<u8>),
    In(Vec<Vec<u8>>),
    /// Each end: the token of this key, and whether it is in.
    Tokens(Option<(Vec<u8>, bool)>, Option<(Vec<u8>, bool)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Column(usize),
    Writetime(usize),
    Ttl(usize),
}

/// A SELECT.
#[derive(Clone, Debug)]
pub(crate) struct Select {
    pub(crate) table: usize,
    pub(crate) shown: Vec<Shown>,
    pub(crate) distinct: bool,
    pub(crate) keys: Keys,
    pub(crate) preds: Vec<Pred>,
    pub(crate) filters: Vec<Filter>,
    pub(crate) reversed: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) per_partition: Option<usize>,
    pub(crate) page: Option<u32>,
}

impl Term {
    fn cql(&self, ty: &Type) -> String {
        let list =
            |of: &Pool, items: &[u8]| items.iter().map(|v| of.literal(*v)).collect::<Vec<_>>().join(", ");
        match (self, ty) {
            (Term::Null, _) => "null".into(),
            (Term::Simple(value), Type::Simple(pool)) => pool.literal(*value).into(),
            (Term::Set(items), Type::Set(pool)) => format!("{{{}}}", list(pool, items)),
            // What is taken out of a map are keys.
            (Term::Set(items), Type::Map(pool, _)) => format!("{{{}}}", list(pool, items)),
            (Term::List(items), Type::List(pool)) => format!("[{}]", list(pool, items)),
            (Term::Map(items), Type::Map(keys, values)) => {
                let item = |(k, v): &(u8, u8)| format!("{}: {}", keys.literal(*k), values.literal(*v));
                format!("{{{}}}", items.iter().map(item).collect::<Vec<_>>().join(", "))
            }
            (Term::Fields(items), Type::Fields(pools)) => {
                let field = |(at, v): (usize, &Option<u8>)| {
                    v.map_or(format!("f{at}: null"), |v| format!("f{at}: {}", pools[at].literal(v)))
                };
                format!("{{{}}}", items.iter().enumerate().map(field).collect::<Vec<_>>().join(", "))
            }
            (term, ty) => unreachable!("{term:?} is no value of {ty:?}"),
        }
    }
}

fn or_null(pool: &Pool, value: Option<u8>) -> &str {
    value.map_or("null", |value| pool.literal(value))
}

impl Assign {
    pub(crate) fn column(&self) -> usize {
        match self {
            Assign::Set(column, _)
            | Assign::Add(column, _)
            | Assign::Prepend(column, _)
            | Assign::Remove(column, _)
            | Assign::Element(column, ..)
            | Assign::At(column, ..)
            | Assign::Field(column, ..)
            | Assign::Count(column, _) => *column,
        }
    }

    fn cql(&self, table: &Table) -> String {
        let Column { name, ty, .. } = &table.columns[self.column()];
        match (self, ty) {
            (Assign::Set(_, term), _) => format!("{name} = {}", term.cql(ty)),
            (Assign::Add(_, term), _) => format!("{name} = {name} + {}", term.cql(ty)),
            (Assign::Prepend(_, items), _) => {
                format!("{name} = {} + {name}", Term::List(items.clone()).cql(ty))
            }
            (Assign::Remove(_, items), Type::List(_)) => {
                format!("{name} = {name} - {}", Term::List(items.clone()).cql(ty))
            }
            (Assign::Remove(_, items), _) => {
                format!("{name} = {name} - {}", Term::Set(items.clone()).cql(ty))
            }
            (Assign::Element(_, key, value), Type::Map(keys, values)) => {
                format!("{name}[{}] = {}", keys.literal(*key), or_null(values, *value))
            }
            (Assign::At(_, at, value), Type::List(pool)) => {
                format!("{name}[{at}] = {}", or_null(pool, *value))
            }
            (Assign::Field(_, at, value), Type::Fields(pools)) => {
                format!("{name}.f{at} = {}", or_null(&pools[*at], *value))
            }
            (Assign::Count(_, by), _) if *by < 0 => format!("{name} = {name} - {}", by.unsigned_abs()),
            (Assign::Count(_, by), _) => format!("{name} = {name} + {by}"),
            (other, ty) => unreachable!("{other:?} of {ty:?}"),
        }
    }

    /// As DELETE names it.
    fn deleted(&self, table: &Table) -> String {
        let Column { name, ty, .. } = &table.columns[self.column()];
        match (self, ty) {
            (Assign::Element(_, key, _), Type::Map(keys, _) | Type::Set(keys)) => {
                format!("{name}[{}]", keys.literal(*key))
            }
            (Assign::At(_, at, _), _) => format!("{name}[{at}]"),
            (Assign::Field(_, at, _), _) => format!("{name}.f{at}"),
            _ => name.clone(),
        }
    }
}

impl Pred {
    fn cql(&self, table: &Table) -> String {
        let columns: Vec<&Column> = table.clusterings().iter().map(|index| &table.columns[*index]).collect();
        let tuple = |values: &[u8]| {
            let parts = values.iter().zip(&columns).map(|(value, column)| column.pool().literal(*value));
            format!("({})", parts.collect::<Vec<_>>().join(", "))
        };
        let names = |count: usize| {
            let names = columns.iter().take(count).map(|column| column.name.as_str());
            format!("({})", names.collect::<Vec<_>>().join(", "))
        };
        match self {
            Pred::One(at, compare, value) => {
                format!("{} {} {}", columns[*at].name, compare.cql(), columns[*at].pool().literal(*value))
            }
            Pred::In(at, values) => {
                let values: Vec<&str> =
                    values.iter().map(|value| columns[*at].pool().literal(*value)).collect();
                format!("{} IN ({})", columns[*at].name, values.join(", "))
            }
            Pred::Tuple(compare, values) => {
                format!("{} {} {}", names(values.len()), compare.cql(), tuple(values))
            }
            Pred::TupleIn(values) => {
                let tuples: Vec<String> = values.iter().map(|values| tuple(values)).collect();
                format!("{} IN ({})", names(values[0].len()), tuples.join(", "))
            }
        }
    }

    /// Whether a row with these clustering values fits.
    pub(crate) fn holds(&self, clustering: &[u8]) -> bool {
        match self {
            Pred::One(at, compare, value) => compare.holds(clustering[*at].cmp(value)),
            Pred::In(at, values) => values.contains(&clustering[*at]),
            Pred::Tuple(compare, values) => compare.holds(clustering[..values.len()].cmp(&values[..])),
            Pred::TupleIn(values) => values.iter().any(|values| clustering[..values.len()] == values[..]),
        }
    }
}

fn key_cql(table: &Table, key: &[u8]) -> Vec<String> {
    let equal = |(value, index): (&u8, usize)| {
        let column = &table.columns[index];
        format!("{} = {}", column.name, column.pool().literal(*value))
    };
    key.iter().zip(table.keys()).map(equal).collect()
}

impl Write {
    /// Whether what it does depends on what is there.
    pub(crate) fn reads(&self) -> bool {
        let parts = match &self.action {
            Action::Update(assigns) | Action::DeleteParts(assigns) => &assigns[..],
            Action::Insert(_) | Action::DeleteRows(_) => &[],
        };
        let reads =
            |assign: &Assign| matches!(assign, Assign::At(..) | Assign::Remove(..) | Assign::Count(..));
        !matches!(self.condition, Condition::None) || parts.iter().any(reads)
    }

    /// Whether it changes nothing but static columns: then it names no row.
    pub(crate) fn is_static(&self, table: &Table) -> bool {
        match &self.action {
            Action::Update(assigns) | Action::DeleteParts(assigns) => {
                assigns.iter().all(|assign| table.columns[assign.column()].place == Place::Static)
            }
            Action::Insert(_) | Action::DeleteRows(_) => false,
        }
    }

    fn place(&self, table: &Table) -> String {
        let mut relations = key_cql(table, &self.key);
        if let Some(clustering) = self.clustering.as_ref().filter(|_| !self.is_static(table)) {
            let equal = |(at, value): (usize, &u8)| Pred::One(at, Compare::Equal, *value).cql(table);
            relations.extend(clustering.iter().enumerate().map(equal));
        }
        if let Action::DeleteRows(preds) = &self.action {
            relations.extend(preds.iter().map(|pred| pred.cql(table)));
        }
        relations.join(" AND ")
    }

    fn using(&self) -> String {
        let timestamp = self.timestamp_us.map(|at| format!("TIMESTAMP {at}"));
        let ttl = self.ttl_s.map(|ttl| format!("TTL {ttl}"));
        let parts: Vec<String> = timestamp.into_iter().chain(ttl).collect();
        if parts.is_empty() { String::new() } else { format!(" USING {}", parts.join(" AND ")) }
    }

    fn condition(&self, table: &Table) -> String {
        match &self.condition {
            Condition::None => String::new(),
            Condition::NotExists => " IF NOT EXISTS".into(),
            Condition::Exists => " IF EXISTS".into(),
            Condition::Columns(columns) => {
                let equal = |(index, value): &(usize, Option<u8>)| {
                    let column = &table.columns[*index];
                    format!("{} = {}", column.name, or_null(column.pool(), *value))
                };
                format!(" IF {}", columns.iter().map(equal).collect::<Vec<_>>().join(" AND "))
            }
        }
    }

    pub(crate) fn cql(&self, tables: &[Table]) -> String {
        let table = &tables[self.table];
        let (name, using, condition) = (&table.name, self.using(), self.condition(table));
        match &self.action {
            Action::Insert(cells) => {
                let clustering = self.clustering.iter().flatten().zip(table.clusterings());
                let key = self.key.iter().zip(table.keys()).chain(clustering);
                let of_key =
                    key.map(|(value, index)| (index, table.columns[index].pool().literal(*value).to_owned()));
                let others = cells.iter().map(|(index, term)| (*index, term.cql(&table.columns[*index].ty)));
                let (names, values): (Vec<&str>, Vec<String>) =
                    of_key.chain(others).map(|(index, text)| (&*table.columns[index].name, text)).unzip();
                format!(
                    "INSERT INTO {name} ({}) VALUES ({}){condition}{using}",
                    names.join(", "),
                    values.join(", ")
                )
            }
            Action::Update(assigns) => {
                let assigns: Vec<String> = assigns.iter().map(|assign| assign.cql(table)).collect();
                format!(
                    "UPDATE {name}{using} SET {} WHERE {}{condition}",
                    assigns.join(", "),
                    self.place(table)
                )
            }
            Action::DeleteParts(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| part.deleted(table)).collect();
                format!(
                    "DELETE {} FROM {name}{using} WHERE {}{condition}",
                    parts.join(", "),
                    self.place(table)
                )
            }
            Action::DeleteRows(_) => {
                format!("DELETE FROM {name}{using} WHERE {}{condition}", self.place(table))
            }
        }
    }
}

/// A batch of statements.
pub(crate) fn batch_cql(writes: &[Write], logged: bool, tables: &[Table]) -> String {
    let counter = writes.iter().any(|write| tables[write.table].is_counter());
    let kind = if counter {
        "COUNTER "
    } else if logged {
        ""
    } else {
        "UNLOGGED "
    };
    writes.iter().fold(format!("BEGIN {kind}BATCH "), |text, write| text + &write.cql(tables) + "; ")
        + "APPLY BATCH"
}

impl Select {
    pub(crate) fn text(&self, table: &Table) -> String {
        let shown = |shown: &Shown| match shown {
            Shown::Column(index) => table.columns[*index].name.clone(),
            Shown::Writetime(index) => format!("writetime({})", table.columns[*index].name),
            Shown::Ttl(index) => format!("ttl({})", table.columns[*index].name),
        };
        let shown: Vec<String> = self.shown.iter().map(shown).collect();
        let distinct = if self.distinct { "DISTINCT " } else { "" };
        let mut text = format!("SELECT {distinct}{} FROM {}", shown.join(", "), table.name);
        let relations = self.relations(table);
        if !relations.is_empty() {
            _ = write!(text, " WHERE {}", relations.join(" AND "));
        }
        if self.reversed {
            let first = table.clusterings()[0];
            let desc = table.columns[first].place == Place::Clustering { desc: true };
            _ = write!(text, " ORDER BY {} {}", table.columns[first].name, if desc { "ASC" } else { "DESC" });
        }
        if let Some(most) = self.per_partition {
            _ = write!(text, " PER PARTITION LIMIT {most}");
        }
        if let Some(most) = self.limit {
            _ = write!(text, " LIMIT {most}");
        }
        let by_range = !matches!(self.keys, Keys::One(_) | Keys::In(_));
        if !self.filters.is_empty() || (by_range && !self.preds.is_empty()) {
            text += " ALLOW FILTERING";
        }
        text
    }

    fn relations(&self, table: &Table) -> Vec<String> {
        let key_names: Vec<&str> = table.keys().iter().map(|index| &*table.columns[*index].name).collect();
        let literals = |key: &[u8]| {
            let of = key
                .iter()
                .zip(table.keys())
                .map(|(value, index)| table.columns[index].pool().literal(*value));
            of.collect::<Vec<_>>().join(", ")
        };
        let mut relations = match &self.keys {
            Keys::All => Vec::new(),
            Keys::One(key) => key_cql(table, key),
            Keys::In(keys) => {
                // Of a key of several columns only the last has several values.
                let mut relations = key_cql(table, &keys[0]);
                relations.pop();
                let last = &table.columns[key_names.len() - 1];
                let values: Vec<&str> = keys
                    .iter()
                    .filter_map(|key| key.last())
                    .map(|value| last.pool().literal(*value))
                    .collect();
                relations.push(format!("{} IN ({})", last.name, values.join(", ")));
                relations
            }
            Keys::Tokens(from, to) => {
                let end = |end: &Option<(Vec<u8>, bool)>, sign: &str| {
                    end.as_ref().map(|(key, inclusive)| {
                        let equal = if *inclusive { "=" } else { "" };
                        format!("token({}) {sign}{equal} token({})", key_names.join(", "), literals(key))
                    })
                };
                end(from, ">").into_iter().chain(end(to, "<")).collect()
            }
        };
        relations.extend(self.preds.iter().map(|pred| pred.cql(table)));
        relations.extend(self.filters.iter().map(|filter| filter.cql(table)));
        relations
    }
}

impl Filter {
    fn cql(&self, table: &Table) -> String {
        let named = |index: usize| &table.columns[index];
        match self {
            Filter::Value(index, compare, value) => {
                format!("{} {} {}", named(*index).name, compare.cql(), named(*index).pool().literal(*value))
            }
            Filter::Contains(index, value) => {
                let (Type::Set(pool) | Type::List(pool) | Type::Map(_, pool)) = &named(*index).ty else {
                    unreachable!("no collection")
                };
                format!("{} CONTAINS {}", named(*index).name, pool.literal(*value))
            }
            Filter::ContainsKey(index, key) => {
                let Type::Map(pool, _) = &named(*index).ty else { unreachable!("no map") };
                format!("{} CONTAINS KEY {}", named(*index).name, pool.literal(*key))
            }
            Filter::Entry(index, key, value) => {
                let Type::Map(keys, values) = &named(*index).ty else { unreachable!("no map") };
                format!("{}[{}] = {}", named(*index).name, keys.literal(*key), values.literal(*value))
            }
        }
    }
}
