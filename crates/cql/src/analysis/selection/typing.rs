//! Selectables typed against a table (`Selectable.Raw.prepare`, `Selectable.newSelectorFactory`).

use super::result::{is_reversed, result_columns};
use super::selected::{AggregateCall, Leaf, Selected, Selection};
use super::source::Source;
use crate::analysis::names::existing_column;
use crate::analysis::{Markers, Receiver, Scope, Term, exact_type, native_type, term_text};
use crate::backend::ResultColumn;
use crate::error::{CqlError, Result};
use crate::functions::{Aggregate, Argument, Found, lookup};
use crate::syntax::ast::{self, FunctionName, Native, PathStep, Selectable, Selectors, TimeFunction};
use crate::syntax::print_selectable;
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::CqlType;
use std::borrow::Cow;
use std::sync::Arc;

/// A selectable with its type and what its output column is called.
struct Typed {
    selected: Selected,
    ty: CqlType,
    name: String,
    /// An aggregate is somewhere within.
    aggregates: bool,
}

/// What typing a selection needs, and what it gathers.
pub(super) struct Typing<'a, 's> {
    table: &'a Table,
    scope: &'a Scope<'s>,
    markers: &'a mut Markers,
    terms: Vec<Term>,
    aggregates: Vec<AggregateCall>,
    used: Vec<Source>,
}

impl Selection {
    /// Types what stands behind SELECT.
    ///
    /// # Errors
    /// Unknown columns and functions, arguments of wrong types, terms without a type.
    pub(crate) fn prepare(
        selectors: &Selectors<'_>,
        table: &Table,
        scope: &Scope<'_>,
        markers: &mut Markers,
    ) -> Result<Selection> {
        let mut typing =
            Typing { table, scope, markers, terms: Vec::new(), aggregates: Vec::new(), used: Vec::new() };
        let mut columns = Vec::new();
        let mut described = Vec::new();
        let mut describe = |name: &str, ty: CqlType| {
            let (keyspace, table) = (table.keyspace.clone(), table.name.clone());
            described.push(ResultColumn { keyspace, table, name: name.into(), ty });
        };
        match selectors {
            Selectors::All => {
                for column in columns_of_wildcard(table) {
                    columns.push(typing.column(column));
                    describe(&column.name, column.ty.clone());
                }
            }
            Selectors::List(list) => {
                for selector in list {
                    let typed = typing.selectable(&selector.selectable, None)?;
                    let alias = selector.alias.as_ref().map(|alias| alias.as_str());
                    describe(alias.unwrap_or(&typed.name), typed.ty);
                    columns.push(typed.selected);
                }
            }
        }
        let Typing { terms, aggregates, used, .. } = typing;
        let result = result_columns(described, |number| is_reversed(&columns[number], table));
        let mut first = Vec::new();
        if !aggregates.is_empty() {
            columns.iter_mut().for_each(|selected| take_first(selected, &mut first));
        }
        Ok(Selection { columns, terms, aggregates, first, used, result })
    }
}

/// The columns of `*`: static and regular ones by name, of whatever shape (`allColumnsInSelectOrder`).
pub(crate) fn columns_of_wildcard(table: &Table) -> impl Iterator<Item = &Column> {
    let by_name = |columns: &'_ [Column]| -> Vec<usize> {
        let mut order: Vec<usize> = (0..columns.len()).collect();
        order.sort_by(|a, b| columns[*a].name.as_bytes().cmp(columns[*b].name.as_bytes()));
        order
    };
    let (statics, regulars) = (by_name(&table.statics), by_name(&table.regulars));
    let statics = statics.into_iter().map(|index| &table.statics[index]);
    let regulars = regulars.into_iter().map(|index| &table.regulars[index]);
    let all = table.partition_key.iter().chain(&table.clustering).chain(statics).chain(regulars);
    all.filter(|column| !table.is_hidden(column))
}

/// Replaces what is taken from the row by its number among what the first row gives.
fn take_first(selected: &mut Selected, first: &mut Vec<Leaf>) {
    match selected {
        Selected::Leaf(leaf) => {
            let known = first.iter().position(|known| known == leaf);
            let index = known.unwrap_or_else(|| {
                first.push(leaf.clone());
                first.len() - 1
            });
            *selected = Selected::First(index);
        }
        Selected::Field(inner, _) => take_first(inner, first),
        Selected::Call(_, arguments) => arguments.iter_mut().for_each(|argument| take_first(argument, first)),
        Selected::Term(_) | Selected::Aggregate(_) | Selected::First(_) => {}
    }
}

impl Typing<'_, '_> {
    fn column(&mut self, column: &Column) -> Selected {
        Selected::Leaf(Leaf::Column(self.source(column)))
    }

    fn source(&mut self, column: &Column) -> Source {
        let source = Source::of(column);
        if !self.used.contains(&source) {
            self.used.push(source.clone());
        }
        source
    }

    /// `expected` is the type that the place asks for, if it asks for one.
    fn selectable(&mut self, selectable: &Selectable<'_>, expected: Option<&CqlType>) -> Result<Typed> {
        match selectable {
            Selectable::Column(name) => {
                let column = existing_column(self.table, name)?;
                let (ty, name) = (column.ty.clone(), column.name.to_string());
                Ok(Typed { selected: self.column(column), ty, name, aggregates: false })
            }
            Selectable::Term(term) => self.term(Cow::Borrowed(term), expected),
            Selectable::CountRows(_) => Ok(self.count_rows()),
            Selectable::Time(function, column, _) => self.time(*function, column),
            Selectable::Cast(inner, to, pos) => self.cast(inner, *to, *pos),
            Selectable::Function(name, arguments, _) => self.function(name, arguments),
            Selectable::Tuple(items, _) if items.len() == 1 => {
                // Without a type from outside it might be a tuple of one as well.
                if expected.is_none() {
                    return Err(cannot_infer(&print_selectable(selectable)));
                }
                let inner = self.selectable(&items[0], expected)?;
                Ok(Typed { name: format!("({})", inner.name), ..inner })
            }
            Selectable::Hint(hint, pos) => match &hint.1 {
                Selectable::Term(term) => {
                    let hint = ast::Term::Hint(Box::new((hint.0.clone(), term.clone())), *pos);
                    self.term(Cow::Owned(hint), None)
                }
                _ => unsupported("type hints of anything but constants and bind markers"),
            },
            Selectable::Path(inner, steps) => self.path(inner, steps),
            Selectable::Tuple(..) | Selectable::List(..) | Selectable::Set(..) | Selectable::MapOrUdt(..) => {
                unsupported("tuples and collections of selected values")
            }
            Selectable::Negation(..) | Selectable::Arithmetic(..) => unsupported("arithmetic"),
        }
    }

    fn term(&mut self, term: Cow<'_, ast::Term<'_>>, expected: Option<&CqlType>) -> Result<Typed> {
        let text = term_text(&term);
        let exact = exact_type(&term, &self.table.keyspace, self.scope);
        let Some(ty) = exact.or_else(|| expected.cloned()) else {
            return Err(cannot_infer(&text));
        };
        let receiver = Receiver::named(self.table, "[selection]", ty.clone());
        self.terms.push(Term::prepare(&term, &receiver, self.scope, self.markers)?);
        Ok(Typed { selected: Selected::Term(self.terms.len() - 1), ty, name: text, aggregates: false })
    }

    fn count_rows(&mut self) -> Typed {
        let name = "count".to_owned();
        self.aggregate(
            AggregateCall { function: Aggregate::CountRows, argument: None },
            CqlType::BigInt,
            name,
        )
    }

    fn aggregate(&mut self, call: AggregateCall, ty: CqlType, name: String) -> Typed {
        self.aggregates.push(call);
        Typed { selected: Selected::Aggregate(self.aggregates.len() - 1), ty, name, aggregates: true }
    }

    fn time(&mut self, function: TimeFunction, column: &Selectable<'_>) -> Result<Typed> {
        let Selectable::Column(name) = column else { return unsupported("times of fields and elements") };
        let column = existing_column(self.table, name)?;
        if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
            return Err(CqlError::Invalid(format!(
                "Cannot use selection function {} on PRIMARY KEY part {}",
                function.as_str(),
                column.name
            )));
        }
        let one = if function == TimeFunction::Ttl { CqlType::Int } else { CqlType::BigInt };
        let is_list = column.ty.is_multi_cell() && function != TimeFunction::MaxWriteTime;
        let ty = if is_list { CqlType::List { element: Arc::new(one), frozen: false } } else { one };
        let name = format!("{}({})", function.as_str(), column.name);
        let selected = Selected::Leaf(Leaf::Time(function, self.source(column)));
        Ok(Typed { selected, ty, name, aggregates: false })
    }

    /// Fields of user-defined types; elements wait.
    fn path(&mut self, inner: &Selectable<'_>, steps: &[PathStep<'_>]) -> Result<Typed> {
        let mut typed = self.selectable(inner, None)?;
        for step in steps {
            let PathStep::Field(field) = step else { return unsupported("elements of collections") };
            let CqlType::Udt(udt) = &typed.ty else {
                return Err(CqlError::Invalid(format!(
                    "Invalid field selection: {} of type {} is not a user type",
                    typed.name, typed.ty
                )));
            };
            let index = udt.fields.iter().position(|(name, _)| **name == *field.as_str());
            let Some((index, (name, ty))) = index.and_then(|index| Some((index, udt.fields.get(index)?)))
            else {
                return Err(CqlError::Invalid(format!(
                    "{} of type {} has no field {}",
                    typed.name,
                    typed.ty,
                    field.as_str()
                )));
            };
            let (ty, name) = (ty.clone(), format!("{}.{name}", typed.name));
            let selected = Selected::Field(Box::new(typed.selected), index);
            typed = Typed { selected, ty, name, aggregates: typed.aggregates };
        }
        Ok(typed)
    }

    fn cast(&mut self, inner: &Selectable<'_>, to: Native, pos: ast::Pos) -> Result<Typed> {
        let inner = self.selectable(inner, None)?;
        let ty = native_type(to);
        if ty == inner.ty {
            return Ok(inner);
        }
        let name = super::super::assignment::operation(&format!("cast_as_{}", to.as_str()), pos);
        let receiver = self.no_receiver();
        let Some(Found::Scalar(function)) =
            lookup(&name, &[Argument::Typed(&inner.ty, &inner.name)], &receiver, self.scope)?
        else {
            return Err(CqlError::Invalid(format!("{} cannot be cast to {ty}", inner.name)));
        };
        let name = format!("cast({} as {})", inner.name, to.as_str());
        let aggregates = inner.aggregates;
        Ok(Typed { selected: Selected::Call(function, vec![inner.selected]), ty, name, aggregates })
    }

    fn function(&mut self, name: &FunctionName<'_>, arguments: &[Selectable<'_>]) -> Result<Typed> {
        let is_native = name.keyspace.as_ref().is_none_or(|keyspace| keyspace.as_str() == "system");
        let function = name.name.as_str();
        if is_native && function == "count" && matches!(arguments, [Selectable::Term(ast::Term::Literal(_))])
        {
            return Ok(self.count_rows());
        }
        // Whatever has a type is typed first: the function is chosen by it. Terms get theirs from the function.
        let mut typed: Vec<Option<Typed>> = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let is_term = matches!(argument, Selectable::Term(_));
            typed.push(if is_term { None } else { Some(self.selectable(argument, None)?) });
        }
        let mut given = Vec::with_capacity(arguments.len());
        for (argument, typed) in arguments.iter().zip(&typed) {
            match (argument, typed) {
                (_, Some(typed)) => given.push(Argument::Typed(&typed.ty, &typed.name)),
                (Selectable::Term(term), None) => given.push(Argument::Term(term)),
                (_, None) => {}
            }
        }
        let receiver = self.no_receiver();
        let found = lookup(name, &given, &receiver, self.scope)?;
        let Some(found) = found else {
            let keyspace = name.keyspace.as_ref().map_or_else(String::new, |ks| format!("{}.", ks.as_str()));
            return Err(CqlError::Invalid(format!("Unknown function '{keyspace}{function}'")));
        };
        let types = match &found {
            Found::Scalar(function) => function.argument_types().to_vec(),
            Found::Aggregate(aggregate) => aggregate.argument().cloned().into_iter().collect(),
        };
        let mut parts = Vec::with_capacity(arguments.len());
        for ((argument, typed), ty) in arguments.iter().zip(typed).zip(&types) {
            parts.push(match typed {
                Some(typed) => typed,
                None => self.selectable(argument, Some(ty))?,
            });
        }
        self.called(found, parts)
    }

    fn called(&mut self, found: Found, parts: Vec<Typed>) -> Result<Typed> {
        let names: Vec<&str> = parts.iter().map(|part| &*part.name).collect();
        let names = names.join(", ");
        let nested = parts.iter().any(|part| part.aggregates);
        match found {
            Found::Scalar(function) => {
                let (ty, name) = (function.return_type().clone(), format!("{}({names})", function.name()));
                let arguments = parts.into_iter().map(|part| part.selected).collect();
                Ok(Typed { selected: Selected::Call(function, arguments), ty, name, aggregates: nested })
            }
            Found::Aggregate(_) if nested => Err(CqlError::Invalid(
                "aggregate functions cannot be used as arguments of aggregate functions".to_owned(),
            )),
            Found::Aggregate(function) => {
                let (ty, name) = (function.return_type(), function.column_name(&names));
                let argument = parts.into_iter().next().map(|part| part.selected);
                Ok(self.aggregate(AggregateCall { function, argument }, ty, name))
            }
        }
    }

    /// A selection has no receiver, but `token` asks for the table.
    fn no_receiver(&self) -> crate::functions::CallPlace {
        crate::functions::CallPlace {
            keyspace: self.table.keyspace.clone(),
            table: self.table.name.clone(),
            ty: None,
        }
    }
}

fn cannot_infer(text: &str) -> CqlError {
    CqlError::Invalid(format!(
        "Cannot infer type for term {text} in selection clause (try using a cast to force a type)"
    ))
}

fn unsupported<T>(what: &str) -> Result<T> {
    Err(CqlError::Invalid(format!("{what} are not supported in SELECT yet")))
}
