//! SELECT of CQL 2: columns of rows by key, of a range of rows, or of rows found by an index.

use super::ast::{Columns, Comparison, Relation, Select, Term};
use super::term::{Variables, check_names_key, key_name, names_key};
use crate::context::{CallContext, ReplyState, Rpc};
use crate::error::{Result, invalid};
use crate::family::Family;
use crate::name::Comparator;
use crate::predicate::Wanted;
use crate::read::{RowRange, key_position};
use crate::validate::{check_name, check_range, check_read_level};
use helenus_model::types::CqlType;
use helenus_wire::thrift::{
    Column, ColumnOrSuperColumn, ConsistencyLevel, CqlMetadata, CqlResult, CqlResultType, CqlRow, Field,
    IndexExpression, IndexOperator, KeySlice, Map, Reader, SliceRange, Text,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The default limits: rows of an answer, and columns of a row.
const ROWS: i32 = 10_000;
const COLUMNS: i32 = 10_000;

/// The conditions of WHERE.
#[derive(Default)]
struct Where<'s> {
    keys: Vec<Vec<u8>>,
    /// The first and the last key of a range, each with whether it is included.
    from: Option<(Vec<u8>, bool)>,
    to: Option<(Vec<u8>, bool)>,
    columns: Vec<&'s Relation>,
}

impl Rpc {
    pub(super) fn cql2_select(
        &self,
        select: &Select,
        variables: &Variables<'_>,
        work: &mut CallContext<'_>,
    ) -> Result<ReplyState> {
        let family = self.named(&select.family, work)?;
        let level = select.level.unwrap_or(ConsistencyLevel::One);
        check_read_level(level)?;
        work.manner.at(level);
        let found = wheres(select, &family, variables)?;
        let wanted = wanted(select, &family, variables)?;
        let limit = select.limit.unwrap_or(ROWS);
        let mut bytes = Vec::new();
        if !found.keys.is_empty() {
            self.rows_by_key(&family, &found.keys, &wanted, (work.manner, &mut bytes))?;
        } else {
            let range = range(&found);
            let names: Vec<(Vec<u8>, IndexOperator, Vec<u8>)> = expressions(&family, &found, variables)?;
            let expressions: Vec<IndexExpression<'_>> = names
                .iter()
                .map(|(name, op, value)| IndexExpression { column_name: name, op: *op, value })
                .collect();
            let limit = if limit <= 0 { 0 } else { limit };
            if limit > 0 {
                let asked = RowRange { range, expressions: &expressions, count: limit };
                self.rows_of_range(&family, asked, &wanted, (work.manner, &mut bytes))?;
            }
        }
        let mut reader = Reader::new(&bytes);
        let mut rows = Vec::new();
        while !reader.rest().is_empty() {
            rows.push(KeySlice::read(&mut reader)?);
        }
        let numbers: Vec<[u8; 8]> =
            rows.iter().flat_map(|row| row.columns.iter()).filter_map(number).collect();
        let mut number = numbers.iter();
        let rows: Vec<FoundRow<'_>> = rows
            .iter()
            .map(|row| {
                let columns = row.columns.iter().filter_map(|column| plain(column, &mut number));
                FoundRow { key: row.key, columns: columns.collect() }
            })
            .collect();
        if select.counts {
            if !matches!(select.columns, Columns::All) {
                return invalid("Only COUNT(*) and COUNT(1) operations are currently supported.");
            }
            work.reply.success(&count_result(&(rows.len() as i64).to_be_bytes()), work.out);
            return Ok(ReplyState::Result);
        }
        let shown = Shown::new(select, &family, variables)?;
        work.reply.success(&shown.result(&rows)?, work.out);
        Ok(ReplyState::Result)
    }
}

fn count_result<'a>(count: &'a [u8; 8]) -> CqlResult<'a> {
    let column = Column { name: b"count", value: Some(&count[..]), timestamp: None, ttl: None };
    CqlResult {
        kind: CqlResultType::Rows,
        rows: Some(vec![CqlRow { key: b"count", columns: vec![column] }]),
        num: None,
        schema: Some(CqlMetadata {
            name_types: Map(Vec::new()),
            value_types: Map(Vec::new()),
            default_name_type: "AsciiType".into(),
            default_value_type: "LongType".into(),
        }),
    }
}

fn wheres<'s>(select: &'s Select, family: &Family, variables: &Variables<'_>) -> Result<Where<'s>> {
    let table = &family.table;
    let mut found = Where::default();
    if let Some((name, keys)) = &select.keys {
        check_names_key(name, table)?;
        for key in keys {
            found.keys.push(key.key(table, variables)?);
        }
        return Ok(found);
    }
    for relation in &select.relations {
        if !names_key(&relation.name, table) {
            found.columns.push(relation);
            continue;
        }
        let key = match (relation.comparison, relation.value.text()) {
            // In a range, an empty text stands for an end of the ring.
            (Comparison::Equal, _) => relation.value.key(table, variables)?,
            (_, "") if matches!(relation.value, Term::Text(_)) => Vec::new(),
            _ => relation.value.key(table, variables)?,
        };
        match relation.comparison {
            Comparison::Equal => found.keys.push(key),
            Comparison::Greater => found.from = Some((key, false)),
            Comparison::GreaterOrEqual => found.from = Some((key, true)),
            Comparison::Less => found.to = Some((key, false)),
            Comparison::LessOrEqual => found.to = Some((key, true)),
        }
    }
    let is_range = found.from.is_some();
    if !is_range && found.to.is_some() {
        return invalid("Key range clauses must include a start key (i.e. KEY > term)");
    }
    if is_range && !found.keys.is_empty() {
        return invalid("You cannot combine key range and by-key clauses in a SELECT");
    }
    if is_range && found.to.is_some() && !found.columns.is_empty() {
        return invalid("You cannot combine key range and by-column clauses in a SELECT");
    }
    if found.keys.len() > 1 {
        return invalid("You cannot use more than one KEY = in a SELECT");
    }
    Ok(found)
}

/// The position range of WHERE.
fn range(found: &Where<'_>) -> helenus_engine::read::KeyRange {
    let mut range = helenus_engine::read::KeyRange::all();
    if let Some((key, included)) = found.from.as_ref().filter(|(key, _)| !key.is_empty()) {
        range.start = key_position(key, *included);
    }
    if let Some((key, included)) = found.to.as_ref().filter(|(key, _)| !key.is_empty()) {
        range.end = key_position(key, !*included);
    }
    range
}

type Expressions = Vec<(Vec<u8>, IndexOperator, Vec<u8>)>;

fn expressions(family: &Family, found: &Where<'_>, variables: &Variables<'_>) -> Result<Expressions> {
    let mut expressions = Expressions::new();
    for relation in &found.columns {
        let name = relation.name.column(&family.comparator, variables)?;
        let value = relation.value.value(family.type_of(&name), variables)?;
        let operator = match relation.comparison {
            Comparison::Equal => IndexOperator::Eq,
            Comparison::Less => IndexOperator::Lt,
            Comparison::LessOrEqual => IndexOperator::Lte,
            Comparison::Greater => IndexOperator::Gt,
            Comparison::GreaterOrEqual => IndexOperator::Gte,
        };
        expressions.push((name, operator, value));
    }
    let is_indexed = |name: &[u8]| {
        family.declared(name).is_some_and(|declared| {
            let table = &family.table;
            let mut columns = table.indexes.values().filter_map(|index| index.column(table));
            columns.any(|column| column.id == declared.column)
        })
    };
    let usable = |(name, operator, _): &(Vec<u8>, IndexOperator, Vec<u8>)| {
        *operator == IndexOperator::Eq && is_indexed(name)
    };
    if !expressions.is_empty() && !expressions.iter().any(usable) {
        return invalid("No indexed columns present in by-columns clause with \"equals\" operator");
    }
    Ok(expressions)
}

fn wanted(select: &Select, family: &Arc<Family>, variables: &Variables<'_>) -> Result<Wanted> {
    let (start, finish) = match &select.columns {
        Columns::Names(names) => {
            let mut columns = Vec::new();
            for term in names.iter().filter(|term| !names_key(term, &family.table)) {
                let name = term.column(&family.comparator, variables)?;
                check_name(family, None, &name)?;
                columns.push(name);
            }
            let columns: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
            return Wanted::names(family, None, &columns);
        }
        Columns::All => (Vec::new(), Vec::new()),
        Columns::Range(start, finish) => {
            (start.column(&family.comparator, variables)?, finish.column(&family.comparator, variables)?)
        }
    };
    let count = select.first.unwrap_or(COLUMNS);
    let range = SliceRange { start: &start, finish: &finish, reversed: select.reversed, count };
    let slice = check_range(family, None, &range)?;
    Wanted::range(family, None, &range, slice)
}

/// A class name without package and parameters (`TypeParser.getShortName`).
fn short(class: &str) -> String {
    let name = class.split('(').next().unwrap_or_default();
    name.rsplit('.').next().unwrap_or_default().to_owned()
}

/// A column requested by name, with its serialised name; `None` for the row key.
type Named<'a> = (&'a Term, Option<Vec<u8>>);

/// How the rows are presented.
struct Shown<'a> {
    select: &'a Select,
    family: &'a Family,
    /// The columns requested by name.
    names: Option<Vec<Named<'a>>>,
    key_name: String,
}

impl<'a> Shown<'a> {
    fn new(select: &'a Select, family: &'a Family, variables: &Variables<'_>) -> Result<Shown<'a>> {
        let names = match &select.columns {
            Columns::Names(terms) => {
                let mut names = Vec::new();
                for term in terms {
                    let bytes = match names_key(term, &family.table) {
                        true => None,
                        false => Some(term.column(&family.comparator, variables)?),
                    };
                    names.push((term, bytes));
                }
                Some(names)
            }
            _ => None,
        };
        Ok(Shown { select, family, names, key_name: key_name(&family.table) })
    }

    fn result<'r>(&'r self, rows: &'r [FoundRow<'r>]) -> Result<CqlResult<'r>> {
        let family = self.family;
        let comparator = match &family.comparator {
            Comparator::Plain(_, true) => "ReversedType".to_owned(),
            other => short(&other.class_name()),
        };
        let mut name_types: BTreeMap<&[u8], Text<'_>> = BTreeMap::new();
        let mut value_types: BTreeMap<&[u8], Text<'_>> = BTreeMap::new();
        let key_type =
            family.table.partition_key.first().map_or_else(String::new, |key| short(&key.ty.class_name()));
        let mut shown = Vec::with_capacity(rows.len());
        for row in rows {
            let mut columns = match &self.names {
                Some(names) => self.by_name(names, row),
                None => self.by_order(row),
            };
            for column in &columns {
                if column.timestamp == Some(KEY_TIMESTAMP) {
                    name_types.insert(column.name, "AsciiType".into());
                    value_types.insert(column.name, key_type.clone().into());
                } else if let Some(declared) = family.declared(column.name) {
                    value_types.insert(column.name, short(&declared.ty.class_name()).into());
                }
            }
            if self.select.reversed && self.names.is_some() {
                columns.reverse();
            }
            shown.push(CqlRow { key: row.key, columns });
        }
        let pairs = |map: BTreeMap<&'r [u8], Text<'r>>| {
            Map(map.into_iter().map(|(name, ty)| (Cow::from(name), ty)).collect())
        };
        Ok(CqlResult {
            kind: CqlResultType::Rows,
            rows: Some(shown),
            num: None,
            schema: Some(CqlMetadata {
                name_types: pairs(name_types),
                value_types: pairs(value_types),
                default_name_type: comparator.into(),
                default_value_type: default_value(family).into(),
            }),
        })
    }

    fn key_column<'r>(&'r self, name: &'r [u8], row: &FoundRow<'r>) -> Column<'r> {
        Column { name, value: Some(row.key), timestamp: Some(KEY_TIMESTAMP), ttl: None }
    }

    fn by_order<'r>(&'r self, row: &'r FoundRow<'r>) -> Vec<Column<'r>> {
        let mut columns = row.columns.clone();
        if matches!(self.select.columns, Columns::All) {
            let key = self.key_column(self.key_name.as_bytes(), row);
            let place = if self.select.reversed { columns.len() } else { 0 };
            columns.insert(place, key);
        }
        columns
    }

    fn by_name<'r>(&'r self, names: &'r [Named<'a>], row: &'r FoundRow<'r>) -> Vec<Column<'r>> {
        let columns: HashMap<&[u8], &Column<'r>> =
            row.columns.iter().map(|column| (column.name, column)).collect();
        let column = |(term, name): &'r Named<'a>| match name {
            None => self.key_column(term.text().as_bytes(), row),
            Some(name) => {
                let found = columns.get(name.as_slice()).copied().cloned();
                found.unwrap_or(Column { name, value: None, timestamp: None, ttl: None })
            }
        };
        names.iter().map(column).collect()
    }
}

/// The timestamp of the row key in the answer.
const KEY_TIMESTAMP: i64 = -1;

fn default_value(family: &Family) -> String {
    let ty = if family.counts { &CqlType::Counter } else { &family.value_type };
    short(&ty.class_name())
}

/// A row of the result.
struct FoundRow<'r> {
    key: &'r [u8],
    columns: Vec<Column<'r>>,
}

/// The value of a counter as serialised in the answer.
fn number(found: &ColumnOrSuperColumn<'_>) -> Option<[u8; 8]> {
    found.counter_column.as_ref().map(|counter| counter.value.to_be_bytes())
}

fn plain<'r>(
    found: &ColumnOrSuperColumn<'r>,
    numbers: &mut std::slice::Iter<'r, [u8; 8]>,
) -> Option<Column<'r>> {
    match (&found.column, &found.counter_column) {
        (Some(column), _) => Some(Column { ttl: None, ..column.clone() }),
        (None, Some(counter)) => {
            let value = numbers.next()?;
            Some(Column { name: counter.name, value: Some(&value[..]), timestamp: Some(0), ttl: None })
        }
        _ => None,
    }
}
