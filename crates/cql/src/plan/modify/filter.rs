//! The WHERE clause of a write: which partitions, and which rows or ranges in each.
//!
//! Rules and texts are those of `StatementRestrictions` and of the restrictions in `cql3/restrictions`, for statements
//! that may not filter.

use super::filter_text::relation_text;
use super::prepare::ModifyKind;
use super::restriction::{Choices, Restriction, Test, Values, add, chosen};
use crate::analysis::check_slice_type;
use crate::analysis::{Markers, Receiver, Scope, Term, existing_column};
use crate::error::{CqlError, Result};
use crate::super_family::is_super;
use crate::syntax::ast::{self, Comparison, Ident, InValues, Relation, RelationKind};
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::CqlType;
use std::sync::Arc;

/// The restrictions of a statement's key columns.
#[derive(Debug)]
pub(super) struct Filter {
    /// One for each partition key column, in order; only `Equal` and `In`.
    pub(super) keys: Vec<Restriction>,
    /// In order of their columns, without gaps; only the last may be a slice.
    pub(super) clustering: Vec<Restriction>,
    /// Whether the clustering restrictions select ranges of rows instead of rows.
    pub(super) is_range: bool,
}

impl Filter {
    /// Analyses a WHERE clause. `statics_only`: the statement changes nothing but static columns.
    pub(super) fn prepare(
        relations: &[Relation<'_>],
        kind: ModifyKind,
        statics_only: bool,
        (table, scope): (&Table, &Scope<'_>),
        markers: &mut Markers,
    ) -> Result<Filter> {
        if relations.iter().any(|relation| matches!(relation.kind, RelationKind::Custom(..))) {
            return invalid(
                "Custom index expressions cannot be used in WHERE clauses for UPDATE or DELETE statements"
                    .into(),
            );
        }
        let mut parts = Parts::default();
        for relation in relations {
            Builder { table, scope, kind, relation }.add(&mut parts, markers)?;
        }
        parts.check_keys(kind, table)?;
        if statics_only && !parts.clustering.is_empty() && kind != ModifyKind::Insert {
            return invalid(format!(
                "Invalid restrictions on clustering columns since the {} statement modifies only static columns",
                kind.as_str()
            ));
        }
        parts.check_clustering(kind, statics_only, table)?;
        if !parts.others.is_empty() {
            parts.others.sort();
            let names: Vec<&str> = parts.others.iter().map(|name| &**name).collect();
            return invalid(format!("Non PRIMARY KEY columns found in where clause: {} ", names.join(", ")));
        }
        let restricted: usize = parts.clustering.iter().map(|restriction| restriction.names.len()).sum();
        let only_equal = parts.clustering.iter().all(|r| !matches!(r.test, Test::Slice(..)));
        let is_range = kind == ModifyKind::Delete
            && !parts.clustering.is_empty()
            && (restricted < table.clustering.len() || !only_equal);
        Ok(Filter { keys: parts.keys, clustering: parts.clustering, is_range })
    }
}

impl Filter {
    /// Whether every column of the primary key is restricted by equality (`hasAllPKColumnsRestrictedByEqualities`).
    pub(super) fn names_one_row(&self, table: &Table) -> bool {
        let restricted: usize = self.clustering.iter().map(|restriction| restriction.names.len()).sum();
        restricted == table.clustering.len()
            && self
                .keys
                .iter()
                .chain(&self.clustering)
                .all(|r| matches!(r.test, Test::Equal(_) | Test::In(_)))
    }
}

/// The parts of a WHERE clause that have been analysed so far.
#[derive(Default)]
struct Parts {
    keys: Vec<Restriction>,
    token: bool,
    clustering: Vec<Restriction>,
    others: Vec<Arc<str>>,
}

impl Parts {
    fn check_keys(&self, kind: ModifyKind, table: &Table) -> Result<()> {
        let kind = kind.as_str();
        if self.token {
            return invalid(format!(
                "The token function cannot be used in WHERE clauses for {kind} statements"
            ));
        }
        let missing = unrestricted(&table.partition_key, &self.keys);
        if !missing.is_empty() {
            return invalid(format!("Some partition key parts are missing: {}", missing.join(", ")));
        }
        if self.keys.iter().any(|key| matches!(key.test, Test::Slice(..))) {
            return invalid(format!(
                "Only EQ and IN relation are supported on the partition key (unless you use the token() function) \
                 for {kind} statements"
            ));
        }
        Ok(())
    }

    fn check_clustering(&self, kind: ModifyKind, statics_only: bool, table: &Table) -> Result<()> {
        let missing = unrestricted(&table.clustering, &self.clustering);
        if kind != ModifyKind::Delete {
            if self.clustering.iter().any(|restriction| matches!(restriction.test, Test::Slice(..))) {
                return invalid(format!(
                    "Slice restrictions are not supported on the clustering columns in {} statements",
                    kind.as_str()
                ));
            }
            // A row of a compact table may have fewer values than there are clustering columns.
            let may_be_partial = table.is_compact() && !self.clustering.is_empty() && !is_super(table);
            if !statics_only && !missing.is_empty() && !may_be_partial {
                return invalid(format!("Some clustering keys are missing: {}", missing.join(", ")));
            }
        }
        let mut next = 0;
        for restriction in &self.clustering {
            if restriction.first != next
                && let (Some(column), Some(found)) = (table.clustering.get(next), restriction.names.first())
            {
                return invalid(format!(
                    "PRIMARY KEY column \"{found}\" cannot be restricted as preceding column \"{}\" is not restricted",
                    column.name
                ));
            }
            next = restriction.first + restriction.names.len();
        }
        Ok(())
    }

    /// Adds a restriction of clustering columns at its position, merged with an existing one.
    fn add_clustering(&mut self, new: Restriction, table: &Table) -> Result<()> {
        let last = self.clustering.last().map(|last| (last.first, matches!(last.test, Test::Slice(..))));
        let (first, is_slice) = (new.first, matches!(new.test, Test::Slice(..)));
        add(&mut self.clustering, new)?;
        let Some((last_first, last_is_slice)) = last else { return Ok(()) };
        let name = |position: usize| table.clustering.get(position).map_or("", |column| &*column.name);
        if last_is_slice && first > last_first {
            return invalid(format!(
                "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                name(first),
                name(last_first)
            ));
        }
        if first < last_first && is_slice {
            let next = self.clustering.iter().map(|r| r.first).find(|position| *position > first);
            return invalid(format!(
                "PRIMARY KEY column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
                name(next.unwrap_or(last_first)),
                name(first)
            ));
        }
        Ok(())
    }
}

/// Turns one relation into a restriction.
struct Builder<'a> {
    table: &'a Table,
    scope: &'a Scope<'a>,
    kind: ModifyKind,
    relation: &'a Relation<'a>,
}

impl Builder<'_> {
    fn add(&self, parts: &mut Parts, markers: &mut Markers) -> Result<()> {
        // The columns are looked up by the restriction that an operator makes (`Relation.toRestriction`).
        if let RelationKind::Column { comparison: Comparison::NotEqual, .. }
        | RelationKind::Token(_, Comparison::NotEqual, _)
        | RelationKind::Tuple(_, Comparison::NotEqual, _) = &self.relation.kind
        {
            return invalid(format!("Unsupported \"!=\" relation: {}", relation_text(self.relation)));
        }
        match &self.relation.kind {
            RelationKind::Column { column, element, comparison, value } => {
                if matches!(comparison, Comparison::Contains | Comparison::ContainsKey) {
                    return invalid(format!(
                        "Cannot use {} with {}",
                        self.kind.as_str(),
                        comparison.as_str()
                    ));
                }
                let column = self.single(column, element.as_ref(), comparison.as_str())?;
                if !matches!(comparison, Comparison::Equal | Comparison::Like) {
                    check_slice_type(&column.ty)?;
                }
                let receiver = Receiver::of_column(self.table, column);
                let value = Values::One(Term::prepare(value, &receiver, self.scope, markers)?);
                if *comparison == Comparison::Like {
                    return invalid(format!(
                        "LIKE restriction is only supported on properly indexed columns. {} is not valid.",
                        relation_text(self.relation)
                    ));
                }
                self.place(parts, column, compared(*comparison, value))
            }
            RelationKind::In(name, values) => {
                let column = self.single(name, None, "IN")?;
                let receiver = Receiver::of_column(self.table, column);
                let test = match values {
                    InValues::Marker(marker) => {
                        let element = Arc::new(column.ty.clone());
                        let list = CqlType::List { element, frozen: true };
                        let receiver = receiver.part(format!("in({})", column.name), list);
                        let term = ast::Term::Marker(*marker);
                        Test::In(Choices::Marker(Term::prepare(&term, &receiver, self.scope, markers)?))
                    }
                    InValues::List(terms) => {
                        let prepare =
                            |term| Term::prepare(term, &receiver, self.scope, markers).map(Values::One);
                        chosen(terms.iter().map(prepare).collect::<Result<Vec<_>>>()?)
                    }
                };
                self.place(parts, column, test)
            }
            RelationKind::IsNotNull(_) => {
                invalid(format!("Unsupported restriction: {}", relation_text(self.relation)))
            }
            RelationKind::Token(columns, _, value) => {
                self.check_token(columns)?;
                let receiver = Receiver::named(self.table, "partition key token", CqlType::BigInt);
                Term::prepare(value, &receiver, self.scope, markers)?;
                parts.token = true;
                Ok(())
            }
            RelationKind::Tuple(names, comparison, value) => {
                let columns = self.several(names)?;
                let values = self.tuple(&columns, value, markers)?;
                self.place_several(parts, &columns, compared(*comparison, values))
            }
            RelationKind::TupleIn(names, values) => {
                let columns = self.several(names)?;
                let test = match values {
                    InValues::Marker(marker) => {
                        let types = columns.iter().map(|column| column.ty.clone()).collect();
                        let list = CqlType::List { element: Arc::new(CqlType::Tuple(types)), frozen: true };
                        let joined: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
                        let receiver =
                            Receiver::named(self.table, &format!("in({})", joined.join(",")), list);
                        let term = ast::Term::Marker(*marker);
                        Test::In(Choices::Marker(Term::prepare(&term, &receiver, self.scope, markers)?))
                    }
                    InValues::List(terms) => {
                        let tuples = terms.iter().map(|term| self.tuple(&columns, term, markers));
                        chosen(tuples.collect::<Result<Vec<_>>>()?)
                    }
                };
                self.place_several(parts, &columns, test)
            }
            RelationKind::Custom(..) => invalid("expr() is not supported yet".into()),
        }
    }

    /// The column of a single-column relation, if it may be restricted at all (`SingleColumnRelation.toReceivers`).
    fn single(&self, name: &Ident<'_>, element: Option<&ast::Term<'_>>, operator: &str) -> Result<&Column> {
        let column = existing_column(self.table, name)?;
        let (name, ty) = (&column.name, &column.ty);
        if element.is_some() {
            match ty {
                CqlType::List { .. } => {
                    return invalid(format!(
                        "Indexes on list entries ({name}[index] = value) are not currently supported."
                    ));
                }
                CqlType::Map { frozen: true, .. } => {
                    return invalid(format!(
                        "Map-entry equality predicates on frozen map column {name} are not supported"
                    ));
                }
                CqlType::Map { .. } if operator != "=" => {
                    return invalid("Only EQ relations are supported on map entries".into());
                }
                CqlType::Map { .. } => {
                    return invalid(format!("Non PRIMARY KEY columns found in where clause: {name} "));
                }
                _ => return invalid(format!("Column {name} cannot be used as a map")),
            }
        }
        if ty.is_multi_cell() {
            return invalid(if matches!(ty, CqlType::Udt(_)) {
                format!("Non-frozen UDT column '{name}' ({ty}) cannot be restricted by any relation")
            } else {
                format!("Collection column '{name}' ({ty}) cannot be restricted by a '{operator}' relation")
            });
        }
        Ok(column)
    }

    /// The columns of a multi-column relation (`MultiColumnRelation.receivers`).
    fn several(&self, names: &[Ident<'_>]) -> Result<Vec<&Column>> {
        let mut columns: Vec<&Column> = Vec::with_capacity(names.len());
        for name in names {
            let column = existing_column(self.table, name)?;
            if column.kind != ColumnKind::Clustering {
                return invalid(format!(
                    "Multi-column relations can only be applied to clustering columns but was applied to: {}",
                    column.name
                ));
            }
            if columns.iter().any(|found| found.name == column.name) {
                return invalid(format!(
                    "Column \"{}\" appeared twice in a relation: {}",
                    column.name,
                    relation_text(self.relation)
                ));
            }
            if columns.last().is_some_and(|last| column.position != last.position + 1) {
                return invalid(format!(
                    "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {}",
                    relation_text(self.relation)
                ));
            }
            columns.push(column);
        }
        Ok(columns)
    }

    fn tuple(&self, columns: &[&Column], value: &ast::Term<'_>, markers: &mut Markers) -> Result<Values> {
        match value {
            ast::Term::Tuple(items, _) => {
                if items.len() != columns.len() {
                    return invalid(format!(
                        "Expected {} elements in value tuple, but got {}: {}",
                        columns.len(),
                        items.len(),
                        crate::analysis::term_text(value)
                    ));
                }
                let each = items.iter().zip(columns).map(|(item, column)| {
                    Term::prepare(item, &Receiver::of_column(self.table, column), self.scope, markers)
                });
                Ok(Values::Each(each.collect::<Result<Vec<_>>>()?))
            }
            marker => {
                let types = columns.iter().map(|column| column.ty.clone()).collect();
                let joined: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
                let name = format!("({})", joined.join(","));
                let receiver = Receiver::named(self.table, &name, CqlType::Tuple(types));
                Ok(Values::Tuple(Term::prepare(marker, &receiver, self.scope, markers)?))
            }
        }
    }

    fn check_token(&self, names: &[Ident<'_>]) -> Result<()> {
        let keys = &self.table.partition_key;
        let mut columns = Vec::new();
        for name in names {
            columns.push(existing_column(self.table, name)?);
        }
        if columns.iter().map(|column| &column.name).eq(keys.iter().map(|column| &column.name)) {
            return Ok(());
        }
        if !keys.iter().all(|key| columns.iter().any(|column| column.name == key.name)) {
            return invalid(
                "The token() function must be applied to all partition key components or none of them".into(),
            );
        }
        let duplicate = columns
            .iter()
            .enumerate()
            .any(|(i, column)| columns.iter().take(i).any(|c| c.name == column.name));
        if duplicate {
            return invalid("The token() function contains duplicate partition key components".into());
        }
        let names: Vec<&str> = keys.iter().map(|column| &*column.name).collect();
        invalid(format!(
            "The token function arguments must be in the partition key order: {}",
            names.join(", ")
        ))
    }

    fn place(&self, parts: &mut Parts, column: &Column, test: Test) -> Result<()> {
        let restriction = Restriction { first: column.position, names: vec![column.name.clone()], test };
        match column.kind {
            ColumnKind::PartitionKey => add(&mut parts.keys, restriction),
            ColumnKind::Clustering => parts.add_clustering(restriction, self.table),
            ColumnKind::Static | ColumnKind::Regular => {
                if !parts.others.contains(&column.name) {
                    parts.others.push(column.name.clone());
                }
                Ok(())
            }
        }
    }

    fn place_several(&self, parts: &mut Parts, columns: &[&Column], test: Test) -> Result<()> {
        let first = columns.first().map_or(0, |column| column.position);
        let names = columns.iter().map(|column| column.name.clone()).collect();
        parts.add_clustering(Restriction { first, names, test }, self.table)
    }
}

fn compared(comparison: Comparison, value: Values) -> Test {
    match comparison {
        Comparison::Less => Test::Slice(None, Some((value, false))),
        Comparison::LessOrEqual => Test::Slice(None, Some((value, true))),
        Comparison::Greater => Test::Slice(Some((value, false)), None),
        Comparison::GreaterOrEqual => Test::Slice(Some((value, true)), None),
        Comparison::Equal
        | Comparison::NotEqual
        | Comparison::Contains
        | Comparison::ContainsKey
        | Comparison::Like => Test::Equal(value),
    }
}

fn unrestricted<'t>(columns: &'t [Column], restrictions: &[Restriction]) -> Vec<&'t str> {
    let is_restricted = |column: &Column| restrictions.iter().any(|r| r.names.contains(&column.name));
    columns.iter().filter(|column| !is_restricted(column)).map(|column| &*column.name).collect()
}

fn invalid<T>(message: String) -> Result<T> {
    Err(CqlError::Invalid(message))
}
