//! Types relations against a table (`Relation.toRestriction` and its three kinds).

use super::restriction::{Candidates, End, Operand, Restriction, Test, invalid};
use crate::analysis::check_slice_type;
use crate::analysis::{Markers, Receiver, Scope, Term, term_text};
use crate::error::Result;
use crate::scope::existing_column;
use crate::syntax::ast::{self, Comparison, Ident, InValues, Relation, RelationKind};
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::{CqlType, quote_identifier};
use std::sync::Arc;

/// A typed relation.
pub(super) enum Typed {
    /// On columns.
    Columns(Restriction),
    /// On the token of the partition key.
    Token(Test),
}

/// The state for typing relations.
pub(super) struct Typing<'a, 's> {
    pub(super) table: &'a Table,
    pub(super) scope: &'a Scope<'s>,
    pub(super) markers: &'a mut Markers,
}

impl Typing<'_, '_> {
    /// Types a relation. IS NOT NULL and LIKE are refused earlier.
    pub(super) fn relation(&mut self, relation: &Relation<'_>) -> Result<Typed> {
        match &relation.kind {
            RelationKind::Column { column, element, comparison, value } => {
                self.single(relation, (column, element.as_ref()), *comparison, value).map(Typed::Columns)
            }
            RelationKind::In(column, values) => self.single_in(column, values).map(Typed::Columns),
            RelationKind::Token(columns, comparison, value) => {
                self.token(relation, columns, *comparison, value).map(Typed::Token)
            }
            RelationKind::Tuple(columns, comparison, value) => {
                // The columns are looked up by the restriction that an operator makes (`Relation.toRestriction`).
                if *comparison == Comparison::NotEqual {
                    return invalid(format!("Unsupported \"!=\" relation: {}", text(relation)));
                }
                let columns = self.tuple_columns(relation, columns)?;
                let operand = self.tuple(&columns, value)?;
                Ok(Typed::Columns(Restriction { columns, multi: true, test: compare(*comparison, operand) }))
            }
            RelationKind::TupleIn(columns, values) => {
                self.tuple_in(relation, columns, values).map(Typed::Columns)
            }
            RelationKind::IsNotNull(_) => invalid(format!("Unsupported restriction: {}", text(relation))),
            RelationKind::Custom(index, _) => invalid(format!(
                "Invalid index expression, index {} not found for {}.{}",
                index.as_str(),
                self.table.keyspace,
                self.table.name
            )),
        }
    }

    fn single(
        &mut self,
        relation: &Relation<'_>,
        (name, element): (&Ident<'_>, Option<&ast::Term<'_>>),
        comparison: Comparison,
        value: &ast::Term<'_>,
    ) -> Result<Restriction> {
        if comparison == Comparison::NotEqual {
            return invalid(format!("Unsupported \"!=\" relation: {}", text(relation)));
        }
        let column = existing_column(self.table, name)?;
        if comparison.is_slice() {
            check_slice_type(&column.ty)?;
        }
        check_column(column, element.is_some(), comparison)?;
        let receiver = Receiver::of_column(self.table, column);
        let key = |ty: &CqlType| receiver.part(format!("key({})", column.name), ty.clone());
        let value_of = |ty: &CqlType| receiver.part(format!("value({})", column.name), ty.clone());
        let test = match (&column.ty, comparison, element) {
            (CqlType::Map { key: kt, value: vt, .. }, Comparison::Equal, Some(element)) => {
                let key = Term::prepare(element, &key(kt), self.scope, self.markers)?;
                let value = Term::prepare(value, &value_of(vt), self.scope, self.markers)?;
                contains(Vec::new(), Vec::new(), vec![(key, value)])
            }
            (CqlType::Map { key: kt, .. }, Comparison::ContainsKey, _) => contains(
                Vec::new(),
                vec![Term::prepare(value, &key(kt), self.scope, self.markers)?],
                Vec::new(),
            ),
            (
                CqlType::Map { value: ty, .. }
                | CqlType::List { element: ty, .. }
                | CqlType::Set { element: ty, .. },
                Comparison::Contains,
                _,
            ) => {
                let term = Term::prepare(value, &value_of(ty), self.scope, self.markers)?;
                contains(vec![term], Vec::new(), Vec::new())
            }
            _ => {
                let term = Term::prepare(value, &receiver, self.scope, self.markers)?;
                compare(comparison, Operand::One(term))
            }
        };
        Ok(Restriction { columns: vec![column.clone()], multi: false, test })
    }

    fn single_in(&mut self, name: &Ident<'_>, values: &InValues<'_>) -> Result<Restriction> {
        let column = existing_column(self.table, name)?;
        check_multi_cell(column, "IN")?;
        let receiver = Receiver::of_column(self.table, column);
        let test = match values {
            InValues::Marker(marker) => {
                let ty = CqlType::List { element: Arc::new(column.ty.clone()), frozen: false };
                let receiver = receiver.part(format!("in({})", column.name), ty);
                let marker = ast::Term::Marker(*marker);
                Test::In(Candidates::Marker(Term::prepare(&marker, &receiver, self.scope, self.markers)?))
            }
            InValues::List(values) => {
                let terms =
                    values.iter().map(|value| Term::prepare(value, &receiver, self.scope, self.markers));
                let terms: Result<Vec<Term>> = terms.collect();
                in_or_equal(terms?.into_iter().map(Operand::One).collect())
            }
        };
        Ok(Restriction { columns: vec![column.clone()], multi: false, test })
    }

    fn tuple_in(
        &mut self,
        relation: &Relation<'_>,
        columns: &[Ident<'_>],
        values: &InValues<'_>,
    ) -> Result<Restriction> {
        let columns = self.tuple_columns(relation, columns)?;
        let test = match values {
            InValues::Marker(marker) => {
                let name = format!("in({})", joined(&columns, ","));
                let element = Arc::new(tuple_type(&columns));
                let ty = CqlType::List { element, frozen: false };
                let receiver = Receiver::named(self.table, &name, ty);
                let marker = ast::Term::Marker(*marker);
                let term = Term::prepare(&marker, &receiver, self.scope, self.markers)?;
                Test::In(Candidates::TupleMarker(term, name.into()))
            }
            InValues::List(values) => {
                let operands: Result<Vec<Operand>> =
                    values.iter().map(|value| self.tuple(&columns, value)).collect();
                in_or_equal(operands?)
            }
        };
        Ok(Restriction { columns, multi: true, test })
    }

    /// The columns of a tuple: clustering columns in their order, without gaps.
    fn tuple_columns(&self, relation: &Relation<'_>, names: &[Ident<'_>]) -> Result<Vec<Column>> {
        let mut columns: Vec<Column> = Vec::with_capacity(names.len());
        for name in names {
            let column = existing_column(self.table, name)?;
            if column.kind != ColumnKind::Clustering {
                return invalid(format!(
                    "Multi-column relations can only be applied to clustering columns but was applied to: {}",
                    column.name
                ));
            }
            if columns.iter().any(|c| c.name == column.name) {
                return invalid(format!(
                    "Column \"{}\" appeared twice in a relation: {}",
                    column.name,
                    text(relation)
                ));
            }
            if columns.last().is_some_and(|last| column.position != last.position + 1) {
                return invalid(format!(
                    "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {}",
                    text(relation)
                ));
            }
            columns.push(column.clone());
        }
        Ok(columns)
    }

    fn tuple(&mut self, columns: &[Column], value: &ast::Term<'_>) -> Result<Operand> {
        match value {
            ast::Term::Tuple(elements, _) => {
                if elements.len() != columns.len() {
                    return invalid(format!(
                        "Expected {} elements in value tuple, but got {}: {}",
                        columns.len(),
                        elements.len(),
                        term_text(value)
                    ));
                }
                let mut terms = Vec::with_capacity(elements.len());
                for (element, column) in elements.iter().zip(columns) {
                    let receiver = Receiver::of_column(self.table, column);
                    terms.push(Term::prepare(element, &receiver, self.scope, self.markers)?);
                }
                Ok(Operand::Tuple(terms))
            }
            _ => {
                let name = format!("({})", joined(columns, ","));
                let receiver = Receiver::named(self.table, &name, tuple_type(columns));
                Ok(Operand::Marker(Term::prepare(value, &receiver, self.scope, self.markers)?, name.into()))
            }
        }
    }

    fn token(
        &mut self,
        relation: &Relation<'_>,
        names: &[Ident<'_>],
        comparison: Comparison,
        value: &ast::Term<'_>,
    ) -> Result<Test> {
        if comparison == Comparison::NotEqual {
            return invalid(format!("Unsupported \"!=\" relation: {}", text(relation)));
        }
        let columns: Result<Vec<&Column>> =
            names.iter().map(|name| existing_column(self.table, name)).collect();
        let (columns, key) = (columns?, &self.table.partition_key);
        let same = |a: &Column, b: &Column| a.name == b.name;
        if columns.len() != key.len() || !columns.iter().zip(key).all(|(a, b)| same(a, b)) {
            if !key.iter().all(|part| columns.iter().any(|column| same(column, part))) {
                let text =
                    "The token() function must be applied to all partition key components or none of them";
                return invalid(text.to_owned());
            }
            if (1..columns.len()).any(|i| columns[..i].iter().any(|column| same(column, columns[i]))) {
                let text = "The token() function contains duplicate partition key components";
                return invalid(text.to_owned());
            }
            if columns.iter().any(|column| column.kind != ColumnKind::PartitionKey) {
                let text = "The token() function must contains only partition key components";
                return invalid(text.to_owned());
            }
            return invalid(format!(
                "The token function arguments must be in the partition key order: {}",
                joined(key, ", ")
            ));
        }
        let receiver = Receiver::named(self.table, "partition key token", CqlType::BigInt);
        let term = Term::prepare(value, &receiver, self.scope, self.markers)?;
        Ok(compare(comparison, Operand::One(term)))
    }
}

fn contains(values: Vec<Term>, keys: Vec<Term>, entries: Vec<(Term, Term)>) -> Test {
    Test::Contains { values, keys, entries }
}

/// IN with one value is `=`.
fn in_or_equal(mut operands: Vec<Operand>) -> Test {
    match operands.pop() {
        Some(only) if operands.is_empty() => Test::Equal(only),
        Some(last) => {
            operands.push(last);
            Test::In(Candidates::Each(operands))
        }
        None => Test::In(Candidates::Each(operands)),
    }
}

fn compare(comparison: Comparison, operand: Operand) -> Test {
    let end = |operand, inclusive| Some(End { operand, inclusive });
    match comparison {
        Comparison::Greater => Test::Slice(end(operand, false), None),
        Comparison::GreaterOrEqual => Test::Slice(end(operand, true), None),
        Comparison::Less => Test::Slice(None, end(operand, false)),
        Comparison::LessOrEqual => Test::Slice(None, end(operand, true)),
        _ => Test::Equal(operand),
    }
}

fn tuple_type(columns: &[Column]) -> CqlType {
    CqlType::Tuple(columns.iter().map(|column| column.ty.clone()).collect())
}

pub(super) fn joined(columns: &[Column], separator: &str) -> String {
    columns.iter().map(|column| &*column.name).collect::<Vec<_>>().join(separator)
}

/// Refuses the relations that `SingleColumnRelation.toReceivers` refuses.
fn check_column(column: &Column, has_element: bool, comparison: Comparison) -> Result<()> {
    let (name, ty) = (&column.name, &column.ty);
    // In Cassandra a column in descending order has another type, `ReversedType`, which is not a collection.
    let is_map = matches!(ty, CqlType::Map { .. }) && !column.reversed;
    let is_collection =
        is_map || matches!(ty, CqlType::List { .. } | CqlType::Set { .. }) && !column.reversed;
    if comparison == Comparison::ContainsKey && !is_map {
        return invalid(format!("Cannot use CONTAINS KEY on non-map column {name}"));
    }
    if comparison == Comparison::Contains && !is_collection {
        return invalid(format!("Cannot use CONTAINS on non-collection column {name}"));
    }
    if has_element {
        if matches!(ty, CqlType::List { .. }) {
            return invalid(format!(
                "Indexes on list entries ({name}[index] = value) are not currently supported."
            ));
        }
        if !is_map {
            return invalid(format!("Column {name} cannot be used as a map"));
        }
        if !ty.is_multi_cell() {
            return invalid(format!(
                "Map-entry equality predicates on frozen map column {name} are not supported"
            ));
        }
        if comparison != Comparison::Equal {
            return invalid("Only EQ relations are supported on map entries".to_owned());
        }
        return Ok(());
    }
    match comparison {
        Comparison::Contains | Comparison::ContainsKey => Ok(()),
        _ => check_multi_cell(column, comparison.as_str()),
    }
}

fn check_multi_cell(column: &Column, operator: &str) -> Result<()> {
    let (name, ty) = (&column.name, &column.ty);
    match ty {
        _ if !ty.is_multi_cell() => Ok(()),
        CqlType::Udt(_) => {
            invalid(format!("Non-frozen UDT column '{name}' ({ty}) cannot be restricted by any relation"))
        }
        _ => invalid(format!(
            "Collection column '{name}' ({ty}) cannot be restricted by a '{operator}' relation"
        )),
    }
}

/// A relation as errors quote it (`Relation.toCQLString`).
pub(super) fn text(relation: &Relation<'_>) -> String {
    let name = |ident: &Ident<'_>| quote_identifier(ident.as_str()).into_owned();
    let names =
        |idents: &[Ident<'_>]| format!("({})", idents.iter().map(name).collect::<Vec<_>>().join(", "));
    let candidates = |values: &InValues<'_>| match values {
        InValues::Marker(_) => "?".to_owned(),
        InValues::List(terms) => format!("({})", terms.iter().map(term_text).collect::<Vec<_>>().join(", ")),
    };
    match &relation.kind {
        RelationKind::Column { column, element, comparison, value } => {
            let element =
                element.as_ref().map_or_else(String::new, |element| format!("[{}]", term_text(element)));
            format!("{}{element} {} {}", name(column), comparison.as_str(), term_text(value))
        }
        RelationKind::In(column, values) => format!("{} IN {}", name(column), candidates(values)),
        RelationKind::IsNotNull(column) => format!("{} IS NOT NULL", name(column)),
        RelationKind::Token(columns, comparison, value) => {
            format!("token{} {} {}", names(columns), comparison.as_str(), term_text(value))
        }
        RelationKind::Tuple(columns, comparison, value) => {
            format!("{} {} {}", names(columns), comparison.as_str(), term_text(value))
        }
        RelationKind::TupleIn(columns, values) => format!("{} IN {}", names(columns), candidates(values)),
        RelationKind::Custom(index, value) => format!("expr({},{})", name(index), term_text(value)),
    }
}
