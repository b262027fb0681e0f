//! Types selectables: converts `node` to expressions on rows (`Selectable.newSelectorFactory`).

use super::node::{
    Entry, Finder, Node, element_text, element_type, field_of, is_collection, native_function, slice_text,
    time_type,
};
use super::result::{check_description, is_reversed, json_columns, result_columns};
use super::selected::{AggregateCall, RowValue, Selected, Selection, TermUse, TimePath};
use super::source::Source;
use crate::analysis::{Markers, Receiver, Scope, Term, native_type, term_text};
use crate::answer::ResultColumn;
use crate::error::{CqlError, Result};
use crate::functions::{Found, lookup};
use crate::scope::Argument;
use crate::syntax::ast::{self, Native, Pos, Select, Selectors, TimeFunction};
use helenus_model::schema::{Column, ColumnKind, Table};
use helenus_model::types::{Assignment, CqlType};
use std::collections::HashSet;
use std::sync::Arc;

/// A typed selectable with the name of its output column.
pub(super) struct Typed {
    pub(super) selected: Selected,
    pub(super) ty: CqlType,
    pub(super) name: String,
    /// Whether it contains an aggregate.
    pub(super) aggregates: bool,
}

/// The state for typing a selection, and its results.
pub(super) struct Typing<'a, 's> {
    pub(super) finder: Finder<'a, 's>,
    pub(super) markers: &'a mut Markers,
    pub(super) terms: Vec<(Term, TermUse)>,
    pub(super) aggregates: Vec<AggregateCall>,
    pub(super) used: Vec<Source>,
    /// Names of the used columns.
    pub(super) used_names: Vec<Arc<str>>,
    /// The same names as a set.
    pub(super) seen: HashSet<Arc<str>>,
}

impl Selection {
    /// Types the selectors of a SELECT.
    ///
    /// # Errors
    /// Unknown columns and functions, arguments of wrong types, terms without a type.
    pub(crate) fn prepare<'a>(
        select: &'a Select<'a>,
        table: &'a Table,
        scope: &'a Scope<'_>,
        markers: &'a mut Markers,
    ) -> Result<Selection> {
        let finder = Finder { table, scope };
        let mut typing = Typing {
            finder,
            markers,
            terms: Vec::new(),
            aggregates: Vec::new(),
            used: Vec::new(),
            used_names: Vec::new(),
            seen: HashSet::new(),
        };
        let mut columns = Vec::new();
        let mut described = Vec::new();
        let mut describe = |name: &str, ty: CqlType| {
            let (keyspace, table) = (table.keyspace.clone(), table.name.clone());
            described.push(ResultColumn { keyspace, table, name: name.into(), ty });
        };
        match &select.selectors {
            Selectors::All => {
                for column in table.columns_in_select_order() {
                    columns.push(typing.column(column));
                    describe(&column.name, column.ty.clone());
                }
            }
            Selectors::List(list) => {
                for selector in list {
                    let typed = typing.typed(&finder.node(&selector.selectable)?, None)?;
                    let alias = selector.alias.as_ref().map(|alias| alias.as_str());
                    describe(alias.unwrap_or(&typed.name), typed.ty);
                    columns.push(typed.selected);
                }
            }
        }
        let json = select.json.then(|| json_columns(&described));
        let described = match &json {
            Some(_) => described.into_iter().take(1).map(as_json).collect(),
            None => described,
        };
        check_description(&described)?;
        let result =
            result_columns(described, |number| json.is_none() && is_reversed(&columns[number], table));
        let Typing { terms, aggregates, used, .. } = typing;
        Ok(Selection { columns, json, terms, aggregates, first: Vec::new(), group_by: None, used, result })
    }

    /// Takes values outside aggregates from the first of several rows.
    pub(super) fn take_first(&mut self) {
        for selected in &mut self.columns {
            take_first(selected, &mut self.first);
        }
    }
}

fn as_json(column: ResultColumn) -> ResultColumn {
    ResultColumn { name: "[json]".into(), ty: CqlType::Text, ..column }
}

/// Replaces a value that is read from a row by its index among the first row's values. Functions of such values are
/// computed from those, even if there is no row.
fn take_first(selected: &mut Selected, first: &mut Vec<Selected>) {
    if matches!(selected, Selected::Leaf(_) | Selected::TimeOf(..)) {
        let index = first.len();
        first.push(std::mem::replace(selected, Selected::First(index)));
    } else {
        selected.parts().iter_mut().for_each(|part| take_first(part, first));
    }
}

impl<'a> Typing<'a, '_> {
    fn table(&self) -> &'a Table {
        self.finder.table
    }

    fn column(&mut self, column: &Column) -> Selected {
        Selected::Leaf(RowValue::Column(self.source(column)))
    }

    fn source(&mut self, column: &Column) -> Source {
        let source = Source::of(column);
        if self.seen.insert(column.name.clone()) {
            self.used.push(source.clone());
            self.used_names.push(column.name.clone());
        }
        source
    }

    /// `expected` is the type that the context requires, if any.
    pub(super) fn typed(&mut self, node: &Node<'_>, expected: Option<&CqlType>) -> Result<Typed> {
        match node {
            Node::Column(column) => {
                let (ty, name) = (column.ty.clone(), column.name.to_string());
                Ok(Typed { selected: self.column(column), ty, name, aggregates: false })
            }
            Node::Term(term) => self.term(term, expected),
            Node::Time(function, column, inner) => self.time(*function, column, inner),
            Node::Cast(inner, to) => self.cast(inner, *to),
            Node::Call(found, arguments) => self.call(found, arguments),
            Node::Field(inner, field) => {
                let outer = match &**inner {
                    Node::Group(items) => items.first().and_then(|item| self.exact_type(item)),
                    _ => None,
                };
                let typed = self.typed(inner, outer.as_ref())?;
                field_selected(typed, &inner.text(), field)
            }
            Node::Element(inner, element) => self.element(inner, element),
            Node::Slice(inner, from, to) => self.slice(inner, (*from, *to), expected),
            Node::Hint(ty, written, inner) => self.hint(node, (ty, written), inner),
            Node::Group(..) | Node::Array(..) | Node::Set(..) | Node::MapOrUdt(..) => {
                self.literal(node, expected)
            }
        }
    }

    fn exact_type(&self, node: &Node<'_>) -> Option<CqlType> {
        node.exact_type(&self.table().keyspace, self.finder.scope)
    }

    fn bind(&mut self, term: &ast::Term<'_>, receiver: &Receiver, used: TermUse) -> Result<usize> {
        let term = Term::prepare(term, receiver, self.finder.scope, self.markers)?;
        self.terms.push((term, used));
        Ok(self.terms.len() - 1)
    }

    fn term(&mut self, term: &ast::Term<'_>, expected: Option<&CqlType>) -> Result<Typed> {
        let name = term_text(term);
        let exact = crate::analysis::exact_type(term, &self.table().keyspace, self.finder.scope);
        let Some(ty) = exact.or_else(|| expected.cloned()) else { return Err(cannot_infer(&name)) };
        let receiver = Receiver::named(self.table(), "[selection]", ty.clone());
        let selected = Selected::Term(self.bind(term, &receiver, TermUse::Value)?);
        Ok(Typed { selected, ty, name, aggregates: false })
    }

    fn time(&mut self, function: TimeFunction, column: &Column, inner: &Node<'_>) -> Result<Typed> {
        if matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
            return Err(CqlError::Invalid(format!(
                "Cannot use selection function {} on PRIMARY KEY part {}",
                function.as_str(),
                column.name
            )));
        }
        let typed = self.typed(inner, None)?;
        let ty = time_type(function, typed.ty.is_multi_cell());
        let name = format!("{}({})", function.as_str(), typed.name);
        let selected = match time_path(&typed.selected) {
            Some(TimePath::Column(source)) => Selected::Leaf(RowValue::Time(function, source)),
            Some(path) => Selected::TimeOf(function, Box::new(path)),
            None => Selected::Null,
        };
        Ok(Typed { selected, ty, name, aggregates: false })
    }

    fn cast(&mut self, inner: &Node<'_>, to: Native) -> Result<Typed> {
        let mut typed = self.typed(inner, None)?;
        let ty = native_type(to);
        if ty == typed.ty {
            // In Cassandra a descending column has a different type, so it is cast like a varint.
            if matches!(inner, Node::Column(column) if column.reversed)
                && matches!(ty, CqlType::Int | CqlType::BigInt)
            {
                typed.name = format!("cast({} as {})", typed.name, to.as_str());
            }
            return Ok(typed);
        }
        let name = native_function(&format!("cast_as_{}", to.as_str()), Pos(0));
        match lookup(&name, &[inner], &self.finder.call_site(), self.finder.scope)? {
            Some(found) => self.called(&found, vec![typed]),
            None => {
                let name = self.used_names.first().map_or(&*typed.name, |name| name);
                Err(CqlError::Invalid(format!("{name} cannot be cast to {}", to.as_str())))
            }
        }
    }

    fn call(&mut self, found: &Found, arguments: &[Node<'_>]) -> Result<Typed> {
        let mut parts = Vec::with_capacity(arguments.len());
        for (argument, ty) in arguments.iter().zip(found.arguments()) {
            parts.push(self.typed(argument, Some(ty))?);
        }
        self.called(found, parts)
    }

    fn called(&mut self, found: &Found, parts: Vec<Typed>) -> Result<Typed> {
        let names: Vec<&str> = parts.iter().map(|part| &*part.name).collect();
        let (ty, name) = (found.returns(), found.column_name(&names));
        let nested = parts.iter().any(|part| part.aggregates);
        match found {
            Found::Scalar(function) => {
                let is_constant = parts.iter().all(|part| matches!(part.selected, Selected::Term(_)));
                let selected = if is_constant && function.is_pure() && !parts.is_empty() {
                    // Evaluated once, before the first row. The terms of the arguments are the last ones.
                    let own = self.terms.split_off(self.terms.len().saturating_sub(parts.len()));
                    let own = own.into_iter().map(|(term, _)| term).collect();
                    self.terms.push((Term::Call(function.clone(), own), TermUse::Value));
                    Selected::Term(self.terms.len() - 1)
                } else {
                    let arguments = parts.into_iter().map(|part| part.selected).collect();
                    Selected::Call(function.clone(), arguments)
                };
                Ok(Typed { selected, ty, name, aggregates: nested })
            }
            Found::Aggregate(_) if nested => Err(CqlError::Invalid(
                "aggregate functions cannot be used as arguments of aggregate functions".to_owned(),
            )),
            Found::Aggregate(function) => {
                let argument = parts.into_iter().next().map(|part| part.selected);
                self.aggregates.push(AggregateCall { function: function.clone(), argument });
                let selected = Selected::Aggregate(self.aggregates.len() - 1);
                Ok(Typed { selected, ty, name, aggregates: true })
            }
        }
    }

    fn element(&mut self, inner: &Node<'_>, element: &ast::Term<'_>) -> Result<Typed> {
        let typed = self.typed(inner, None)?;
        let receiver = self.key_receiver(&typed, &inner.text(), "Element", "is of")?;
        let key = self.bind(element, &receiver, TermUse::Element(typed.name.clone()))?;
        let name = element_text(&inner.text(), element);
        let ty = element_type(&typed.ty).cloned().unwrap_or(CqlType::Blob);
        let selected = Selected::Element(Box::new(typed.selected), typed.ty, key);
        Ok(Typed { selected, ty, name, aggregates: typed.aggregates })
    }

    fn slice(
        &mut self,
        inner: &Node<'_>,
        (from, to): (Option<&ast::Term<'_>>, Option<&ast::Term<'_>>),
        expected: Option<&CqlType>,
    ) -> Result<Typed> {
        let typed = self.typed(inner, expected)?;
        let receiver = self.key_receiver(&typed, &inner.text(), "Slice", "of")?;
        let mut bind = |end: Option<&ast::Term<'_>>| {
            end.map(|end| self.bind(end, &receiver, TermUse::SliceEnd(typed.name.clone()))).transpose()
        };
        let ends = (bind(from)?, bind(to)?);
        let name = slice_text(&inner.text(), from, to);
        let ty = typed.ty.clone();
        let selected = Selected::Slice(Box::new(typed.selected), typed.ty, ends);
        Ok(Typed { selected, ty, name, aggregates: typed.aggregates })
    }

    /// The receiver of a key of a selected collection.
    fn key_receiver(&self, typed: &Typed, text: &str, what: &str, is_of: &str) -> Result<Receiver> {
        let (part, ty) = match &typed.ty {
            CqlType::Map { key, .. } => ("key", key),
            CqlType::Set { element, .. } => ("value", element),
            ty if is_collection(ty) => {
                return Err(CqlError::Invalid(format!(
                    "{what} selection is only allowed on sets and maps, but {text} is a list"
                )));
            }
            ty => {
                return Err(CqlError::Invalid(format!(
                    "Invalid {} selection: {text} {is_of} type {ty} is not a collection",
                    what.to_lowercase()
                )));
            }
        };
        let name = format!("{part}({})", typed.name);
        Ok(Receiver::named(self.table(), &name, (**ty).clone()))
    }

    fn hint(&mut self, node: &Node<'_>, (ty, written): (&CqlType, &str), inner: &Node<'_>) -> Result<Typed> {
        let text = node.text();
        let receiver = Receiver::named(self.table(), &text, ty.clone());
        if inner.test(&receiver, self.finder.scope) == Assignment::Refused {
            return Err(CqlError::Invalid(format!("Cannot assign value {text} to {text} of type {ty}")));
        }
        let typed = self.typed(inner, Some(ty))?;
        Ok(Typed { ty: ty.clone(), name: format!("({written}){}", typed.name), ..typed })
    }

    /// Types literals of selectables: tuples, lists, vectors, sets, maps and user-defined types.
    fn literal(&mut self, node: &Node<'_>, expected: Option<&CqlType>) -> Result<Typed> {
        // An array is a vector only if the context requires one.
        let is_vector = matches!((node, expected), (Node::Array(_), Some(CqlType::Vector { .. })));
        let exact = if is_vector { None } else { self.exact_type(node) };
        let Some(ty) = exact.or_else(|| expected.cloned()) else { return Err(cannot_infer(&node.text())) };
        match (node, &ty) {
            (Node::Group(items), CqlType::Tuple(types)) => {
                let types: Vec<&CqlType> = types.iter().collect();
                self.made(("(", ")"), items, &types, ty.clone())
            }
            (Node::Group(items), _) => match &items[..] {
                [only] => {
                    let typed = self.typed(only, expected)?;
                    Ok(Typed { name: format!("({})", typed.name), ..typed })
                }
                _ => Err(cannot_infer(&node.text())),
            },
            (Node::Array(items), CqlType::List { element, .. }) => {
                self.made(("[", "]"), items, &vec![&**element; items.len()], ty.clone())
            }
            (Node::Array(items), CqlType::Vector { element, dimension }) => {
                if items.len() != *dimension as usize {
                    return Err(CqlError::Invalid(format!(
                        "Unable to create a vector selector of type {ty} from {} elements",
                        items.len()
                    )));
                }
                self.made(("[", "]"), items, &vec![&**element; items.len()], ty.clone())
            }
            (Node::Set(items), CqlType::Set { element, .. }) => {
                if **element == CqlType::Duration {
                    return Err(CqlError::Invalid(format!("Durations are not allowed inside sets: {ty}")));
                }
                self.made(("{", "}"), items, &vec![&**element; items.len()], ty.clone())
            }
            (Node::Set(_), CqlType::Map { .. }) => self.made(("{", "}"), &[], &[], ty.clone()),
            (Node::MapOrUdt(entries), CqlType::Map { key, value, .. }) => {
                if **key == CqlType::Duration {
                    return Err(CqlError::Invalid(format!("Durations are not allowed as map keys: {ty}")));
                }
                self.map(entries, (key, value), ty.clone())
            }
            (Node::MapOrUdt(entries), CqlType::Udt(_)) => self.user_type(entries, ty.clone()),
            _ => Err(CqlError::Invalid(format!("Unsupported target type: {ty}"))),
        }
    }

    fn made(
        &mut self,
        (open, close): (&str, &str),
        items: &[Node<'_>],
        types: &[&CqlType],
        ty: CqlType,
    ) -> Result<Typed> {
        let mut parts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            parts.push(self.typed(item, types.get(index).copied())?);
        }
        let names: Vec<&str> = parts.iter().map(|part| &*part.name).collect();
        let name = format!("{open}{}{close}", names.join(", "));
        Ok(whole(parts, name, ty))
    }

    fn map(
        &mut self,
        entries: &[Entry<'_>],
        (key, value): (&CqlType, &CqlType),
        ty: CqlType,
    ) -> Result<Typed> {
        let mut parts = Vec::with_capacity(entries.len() * 2);
        for entry in entries {
            let found = entry.key.as_ref().map_err(|text| CqlError::Invalid(text.clone()))?;
            parts.push(self.typed(found, Some(key))?);
            parts.push(self.typed(&entry.value, Some(value))?);
        }
        let names: Vec<String> = parts
            .chunks(2)
            .map(|pair| pair.iter().map(|part| &*part.name).collect::<Vec<_>>().join(": "))
            .collect();
        let name = format!("{{{}}}", names.join(", "));
        Ok(whole(parts, name, ty))
    }

    fn user_type(&mut self, entries: &[Entry<'_>], ty: CqlType) -> Result<Typed> {
        let CqlType::Udt(udt) = &ty else { return Err(cannot_infer("")) };
        let mut fields: Vec<Option<Typed>> = udt.fields.iter().map(|_| None).collect();
        let mut names = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(name) = entry.field else {
                let key = entry.key.as_ref().map(Argument::text).unwrap_or_default();
                let text = format!("{key} is not a valid field identifier of type {} ", udt.name);
                return Err(CqlError::Invalid(text));
            };
            let Some((index, field)) = field_of(&ty, name.as_str()) else {
                return Err(CqlError::Invalid(format!(
                    "Unknown field '{}' in value of user defined type {}",
                    name.as_str(),
                    udt.name
                )));
            };
            let typed = self.typed(&entry.value, Some(field))?;
            names.push(format!("{}: {}", name.as_str(), typed.name));
            if let Some(place) = fields.get_mut(index) {
                *place = Some(typed);
            }
        }
        let null =
            || Typed { selected: Selected::Null, ty: CqlType::Empty, name: String::new(), aggregates: false };
        let parts = fields.into_iter().map(|field| field.unwrap_or_else(null)).collect();
        let name = format!("{{{}}}", names.join(", "));
        Ok(whole(parts, name, ty.clone()))
    }
}

/// An expression made of parts.
fn whole(parts: Vec<Typed>, name: String, ty: CqlType) -> Typed {
    let aggregates = parts.iter().any(|part| part.aggregates);
    let parts = parts.into_iter().map(|part| part.selected).collect();
    Typed { selected: Selected::Composite(ty.clone(), parts), ty, name, aggregates }
}

fn field_selected(typed: Typed, text: &str, field: &str) -> Result<Typed> {
    if !matches!(typed.ty, CqlType::Udt(_)) {
        return Err(CqlError::Invalid(format!(
            "Invalid field selection: {text} of type {} is not a user type",
            typed.ty
        )));
    }
    let Some((index, ty)) = field_of(&typed.ty, field) else {
        return Err(CqlError::Invalid(format!("{text} of type {} has no field {field}", typed.ty)));
    };
    let (ty, name) = (ty.clone(), format!("{}.{field}", typed.name));
    let selected = Selected::Field(Box::new(typed.selected), index);
    Ok(Typed { selected, ty, name, aggregates: typed.aggregates })
}

/// The path from a column to the selected part.
fn time_path(selected: &Selected) -> Option<TimePath> {
    Some(match selected {
        Selected::Leaf(RowValue::Column(source)) => TimePath::Column(source.clone()),
        Selected::Field(inner, index) => {
            TimePath::Field(Box::new(time_path(inner)?), selected.clone(), *index)
        }
        Selected::Element(inner, ty, key) => {
            TimePath::Element(Box::new(time_path(inner)?), (**inner).clone(), ty.clone(), *key)
        }
        Selected::Slice(inner, ty, ends) => {
            TimePath::Slice(Box::new(time_path(inner)?), (**inner).clone(), ty.clone(), *ends)
        }
        _ => return None,
    })
}

fn cannot_infer(text: &str) -> CqlError {
    CqlError::Invalid(format!(
        "Cannot infer type for term {text} in selection clause (try using a cast to force a type)"
    ))
}
