//! Selectables with resolved columns and functions, before the types of their context are known (`Selectable` after
//! `Selectable.Raw.prepare`).
//!
//! A function is chosen by the types of its arguments, and these may depend on the function. So selectables are
//! processed in two steps: here from the inside out, then in `typing` from the outside in.

use crate::analysis::{
    Receiver, Scope, assignable, combine, common_type, compatible_type, exact_type, existing_column,
    native_type, resolve_type, term_text, test_assignment,
};
use crate::error::{CqlError, Result};
use crate::functions::{Aggregate, Found, NEGATION, function_name, lookup};
use crate::scope::{Argument, CallSite};
use crate::syntax::ast::{
    self, ArithmeticOperator, DataType, DataTypeKind, FunctionName, Ident, Native, PathStep, Pos,
    QualifiedName, Selectable, TimeFunction,
};
use crate::syntax::print_type;
use helenus_model::schema::{Column, Table};
use helenus_model::types::{Assignment, CqlType, UserType};
use std::collections::HashMap;
use std::sync::Arc;

/// A resolved selectable.
#[derive(Debug)]
pub(super) enum Node<'a> {
    Column(&'a Column),
    Term(&'a ast::Term<'a>),
    /// `writetime(path)` of a column.
    Time(TimeFunction, &'a Column, Box<Node<'a>>),
    Cast(Box<Node<'a>>, Native),
    Call(Found, Vec<Node<'a>>),
    Field(Box<Node<'a>>, &'a str),
    Element(Box<Node<'a>>, &'a ast::Term<'a>),
    Slice(Box<Node<'a>>, Option<&'a ast::Term<'a>>, Option<&'a ast::Term<'a>>),
    /// `(a, b)`: a tuple, or a selectable in parentheses.
    Group(Vec<Node<'a>>),
    /// `[a, b]`
    Array(Vec<Node<'a>>),
    /// `{a, b}`
    Set(Vec<Node<'a>>),
    /// `{a: b}`
    MapOrUdt(Vec<Entry<'a>>),
    /// `(type)s`, with the type as written.
    Hint(CqlType, String, Box<Node<'a>>),
}

/// An entry of a literal that is a map or a user-defined type.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// The key as a field name, if it can be one.
    pub(super) field: Option<&'a Ident<'a>>,
    /// The key as a value; an error if it is only a field name and not a column.
    pub(super) key: std::result::Result<Node<'a>, String>,
    /// The value.
    pub(super) value: Node<'a>,
}

/// Resolves the columns and functions of selectables.
#[derive(Clone, Copy)]
pub(crate) struct Finder<'a, 's> {
    /// The table of the SELECT.
    pub(crate) table: &'a Table,
    /// What else is known by name.
    pub(crate) scope: &'a Scope<'s>,
}

impl<'a> Finder<'a, '_> {
    /// Resolves a selectable with all its parts.
    pub(super) fn node(&self, selectable: &'a Selectable<'a>) -> Result<Node<'a>> {
        self.scope.work.step()?;
        Ok(match selectable {
            Selectable::Column(name) => Node::Column(existing_column(self.table, name)?),
            Selectable::Term(term) => Node::Term(term),
            Selectable::CountRows(_) => Node::Call(Found::Aggregate(Aggregate::CountRows), Vec::new()),
            Selectable::Time(function, inner, _) => {
                let inner = self.node(inner)?;
                match inner.column() {
                    Some(column) => Node::Time(*function, column, Box::new(inner)),
                    None => {
                        return Err(CqlError::Invalid(format!("{} is of a column only", function.as_str())));
                    }
                }
            }
            Selectable::Cast(inner, to, _) => Node::Cast(Box::new(self.node(inner)?), *to),
            Selectable::Function(name, arguments, _) => self.function(name, self.nodes(arguments)?)?,
            Selectable::Path(inner, steps) => {
                let mut node = self.node(inner)?;
                for step in steps {
                    let inner = Box::new(node);
                    node = match step {
                        PathStep::Field(field) => Node::Field(inner, field.as_str()),
                        PathStep::Element(element) => Node::Element(inner, element),
                        PathStep::Slice(from, to) => Node::Slice(inner, from.as_ref(), to.as_ref()),
                    };
                }
                node
            }
            Selectable::Tuple(items, _) => Node::Group(self.nodes(items)?),
            Selectable::List(items, _) => Node::Array(self.nodes(items)?),
            Selectable::Set(items, _) => Node::Set(self.nodes(items)?),
            Selectable::MapOrUdt(pairs, _) => {
                let mut entries = Vec::with_capacity(pairs.len());
                for pair in pairs {
                    entries.push(self.entry(pair)?);
                }
                Node::MapOrUdt(entries)
            }
            Selectable::Hint(hint, _) => {
                let inner = self.node(&hint.1)?;
                let ty = resolve_type(&hint.0, &self.table.keyspace, self.scope)?.freeze();
                Node::Hint(ty, print_type(&qualified(&hint.0, &self.table.keyspace)), Box::new(inner))
            }
            Selectable::Negation(inner, pos) => {
                let name = native_function(NEGATION, *pos);
                self.function(&name, vec![self.node(inner)?])?
            }
            Selectable::Arithmetic(first, rest) => {
                let mut node = self.node(first)?;
                for (operator, operand) in rest {
                    node = self.operation(*operator, node, operand)?;
                }
                node
            }
        })
    }

    fn operation(
        &self,
        operator: ArithmeticOperator,
        left: Node<'a>,
        right: &'a Selectable<'a>,
    ) -> Result<Node<'a>> {
        let name = native_function(function_name(operator), right.pos());
        self.function(&name, vec![left, self.node(right)?])
    }

    fn nodes(&self, selectables: &'a [Selectable<'a>]) -> Result<Vec<Node<'a>>> {
        // A loop instead of iterator adapters, here and below, because their stack frames would add up with each level.
        let mut nodes = Vec::with_capacity(selectables.len());
        for selectable in selectables {
            nodes.push(self.node(selectable)?);
        }
        Ok(nodes)
    }

    fn entry(&self, (key, value): &'a (Selectable<'a>, Selectable<'a>)) -> Result<Entry<'a>> {
        let field = match key {
            Selectable::Column(name) => Some(name),
            _ => None,
        };
        let key = match (self.node(key), field) {
            (Err(error), None) => return Err(error),
            (found, _) => found.map_err(|error| error.to_string()),
        };
        Ok(Entry { field, key, value: self.node(value)? })
    }

    fn function(&self, name: &FunctionName<'_>, arguments: Vec<Node<'a>>) -> Result<Node<'a>> {
        let is_native = name.keyspace.as_ref().is_none_or(|keyspace| keyspace.as_str() == "system");
        let is_of_literal = matches!(arguments[..], [Node::Term(ast::Term::Literal(_))]);
        if is_native && name.name.as_str() == "count" && is_of_literal {
            return Ok(Node::Call(Found::Aggregate(Aggregate::CountRows), Vec::new()));
        }
        let given: Vec<&dyn Argument> = arguments.iter().map(|argument| argument as &dyn Argument).collect();
        match lookup(name, &given, &self.call_site(), self.scope)? {
            Some(found) => Ok(Node::Call(found, arguments)),
            None => {
                let keyspace =
                    name.keyspace.as_ref().map_or_else(String::new, |ks| format!("{}.", ks.as_str()));
                Err(CqlError::Invalid(format!("Unknown function '{keyspace}{}'", name.name.as_str())))
            }
        }
    }

    /// The place of calls in a selection: it has no receiver, but `token` needs the table.
    pub(super) fn call_site(&self) -> CallSite {
        CallSite { keyspace: self.table.keyspace.clone(), table: self.table.name.clone(), ty: None }
    }
}

/// A written type with the keyspace before the names of user-defined types, as Cassandra prints a hint.
fn qualified<'t>(written: &DataType<'t>, keyspace: &str) -> DataType<'t> {
    let part = |ty: &DataType<'t>| Box::new(qualified(ty, keyspace));
    let kind = match &written.kind {
        DataTypeKind::Frozen(inner) => DataTypeKind::Frozen(part(inner)),
        DataTypeKind::List(element) => DataTypeKind::List(part(element)),
        DataTypeKind::Set(element) => DataTypeKind::Set(part(element)),
        DataTypeKind::Vector(element, dimension) => DataTypeKind::Vector(part(element), *dimension),
        DataTypeKind::Map(parts) => {
            DataTypeKind::Map(Box::new((qualified(&parts.0, keyspace), qualified(&parts.1, keyspace))))
        }
        DataTypeKind::Tuple(parts) => {
            DataTypeKind::Tuple(parts.iter().map(|ty| qualified(ty, keyspace)).collect())
        }
        DataTypeKind::User(name) => {
            let pos = name.name.pos;
            let own = || Ident { name: keyspace.to_owned().into(), pos };
            let keyspace = Some(name.keyspace.clone().unwrap_or_else(own));
            DataTypeKind::User(QualifiedName { keyspace, name: name.name.clone() })
        }
        other => other.clone(),
    };
    DataType { kind, ..written.clone() }
}

/// The name of the native function behind other syntax.
pub(super) fn native_function(name: &str, pos: Pos) -> FunctionName<'static> {
    let ident = |name: &str| Ident { name: name.to_owned().into(), pos };
    FunctionName { keyspace: Some(ident("system")), name: ident(name) }
}

impl<'a> Node<'a> {
    /// The column that a path begins at.
    fn column(&self) -> Option<&'a Column> {
        match self {
            Node::Column(column) => Some(column),
            Node::Field(inner, _) | Node::Element(inner, _) | Node::Slice(inner, ..) => inner.column(),
            _ => None,
        }
    }

    /// The type that the node has in every context, if it has one.
    pub(super) fn exact_type(&self, keyspace: &str, scope: &Scope<'_>) -> Option<CqlType> {
        let of = |node: &Node<'a>| node.exact_type(keyspace, scope);
        match self {
            Node::Column(column) => Some(column.ty.clone()),
            Node::Term(term) => exact_type(term, keyspace, scope),
            Node::Time(function, column, _) => Some(time_type(*function, column.ty.is_multi_cell())),
            Node::Cast(_, to) => Some(native_type(*to)),
            Node::Call(found, _) => Some(found.returns()),
            Node::Field(inner, field) => field_of(&of(inner)?, field).map(|(_, ty)| ty.clone()),
            Node::Element(inner, _) => element_type(&of(inner)?).cloned(),
            Node::Slice(inner, ..) => of(inner).filter(is_collection),
            Node::Group(items) if items.len() == 1 => None,
            Node::Group(items) => {
                let mut types = Vec::with_capacity(items.len());
                for item in items {
                    types.push(of(item)?);
                }
                Some(CqlType::Tuple(types.into()))
            }
            Node::Array(items) => {
                let element = items.iter().find_map(of)?.into();
                Some(CqlType::List { element, frozen: true })
            }
            Node::Set(items) => {
                let element = items.iter().find_map(of)?.into();
                Some(CqlType::Set { element, frozen: true })
            }
            Node::MapOrUdt(_) => None,
            Node::Hint(ty, ..) => Some(ty.clone()),
        }
    }

    fn all(items: &[Node<'_>], receiver: &Receiver, ty: &CqlType, scope: &Scope<'_>) -> Assignment {
        if items.is_empty() {
            return Assignment::Weak;
        }
        let part = receiver.tested_part(ty);
        combine(items.iter().map(|item| item.test(&part, scope)))
    }
}

impl Argument for Node<'_> {
    fn test(&self, receiver: &Receiver, scope: &Scope<'_>) -> Assignment {
        let ty = &receiver.ty;
        match (self, ty) {
            (Node::Term(term), _) => test_assignment(term, receiver, scope),
            (Node::Group(items), CqlType::Tuple(types)) => {
                let part = |(item, ty): (&Node<'_>, &CqlType)| item.test(&receiver.tested_part(ty), scope);
                let parts = combine(items.iter().zip(types.iter()).map(part));
                if items.len() > types.len() || parts == Assignment::Refused {
                    return Assignment::Refused;
                }
                Assignment::Weak
            }
            (Node::Group(items), _) => match &items[..] {
                [only] => only.test(receiver, scope),
                _ => Assignment::Refused,
            },
            (Node::Array(items), CqlType::List { element, .. } | CqlType::Vector { element, .. })
            | (Node::Set(items), CqlType::Set { element, .. }) => Node::all(items, receiver, element, scope),
            (Node::Set(items), CqlType::Map { .. }) if items.is_empty() => Assignment::Weak,
            (Node::Array(_) | Node::Set(_), _) => Assignment::Refused,
            (Node::MapOrUdt(entries), CqlType::Udt(udt)) => test_fields(entries, udt, receiver, scope),
            (Node::MapOrUdt(entries), CqlType::Map { key, value, .. }) => {
                let (key_spec, value_spec) = (receiver.tested_part(key), receiver.tested_part(value));
                combine(entries.iter().flat_map(|entry| {
                    // A key that is not a column is refused by its name when the map is made.
                    let key = entry.key.as_ref().map_or(Assignment::Weak, |key| key.test(&key_spec, scope));
                    [key, entry.value.test(&value_spec, scope)]
                }))
            }
            (Node::MapOrUdt(_), _) => Assignment::Refused,
            _ => match self.exact_type(&receiver.keyspace, scope) {
                Some(given) => assignable(ty, &given),
                None => Assignment::Refused,
            },
        }
    }

    fn compatible_type(&self, keyspace: &str, scope: &Scope<'_>) -> Option<CqlType> {
        let of = |item: &Node<'_>| item.compatible_type(keyspace, scope);
        match self {
            Node::Term(term) => compatible_type(term, keyspace, scope),
            Node::Group(items) if items.len() > 1 => {
                let mut types = Vec::with_capacity(items.len());
                for item in items {
                    types.push(of(item)?);
                }
                Some(CqlType::Tuple(types.into()))
            }
            Node::Array(items) => {
                let element = common_type(items.iter().filter_map(of).collect())?.into();
                Some(CqlType::List { element, frozen: true })
            }
            Node::Set(items) => {
                let element = common_type(items.iter().filter_map(of).collect())?.into();
                Some(CqlType::Set { element, frozen: true })
            }
            other => other.exact_type(keyspace, scope),
        }
    }

    fn text(&self) -> String {
        match self {
            Node::Column(column) => column.name.to_string(),
            Node::Term(term) => term_text(term),
            Node::Time(function, _, inner) => format!("{}({})", function.as_str(), inner.text()),
            Node::Cast(inner, to) => format!("cast({} as {})", inner.text(), to.as_str()),
            Node::Call(found, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(Argument::text).collect();
                found.column_name(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
            }
            Node::Field(inner, field) => format!("{}.{field}", inner.text()),
            Node::Element(inner, element) => element_text(&inner.text(), element),
            Node::Slice(inner, from, to) => slice_text(&inner.text(), *from, *to),
            Node::Group(items) => joined("(", items, ")"),
            Node::Array(items) => joined("[", items, "]"),
            Node::Set(items) => joined("{", items, "}"),
            Node::MapOrUdt(entries) => {
                let entries: Vec<String> = entries.iter().map(Entry::text).collect();
                format!("{{{}}}", entries.join(", "))
            }
            Node::Hint(_, ty, inner) => format!("({ty}){}", inner.text()),
        }
    }

    fn array_length(&self) -> Option<usize> {
        match self {
            Node::Array(items) => Some(items.len()),
            _ => None,
        }
    }
}

impl Entry<'_> {
    fn text(&self) -> String {
        let key = match (self.field, &self.key) {
            (Some(field), _) => field.as_str().to_owned(),
            (None, Ok(key)) => key.text(),
            (None, Err(_)) => String::new(),
        };
        format!("{key}: {}", self.value.text())
    }
}

fn test_fields(entries: &[Entry<'_>], udt: &UserType, receiver: &Receiver, scope: &Scope<'_>) -> Assignment {
    let fields: HashMap<&str, &CqlType> = udt.fields.iter().map(|(name, ty)| (&**name, ty)).collect();
    let refused = entries.iter().any(|entry| {
        let found = entry.field.and_then(|name| fields.get(name.as_str()));
        found.is_some_and(|ty| entry.value.test(&receiver.tested_part(ty), scope) == Assignment::Refused)
    });
    if refused { Assignment::Refused } else { Assignment::Weak }
}

fn joined(open: &str, items: &[Node<'_>], close: &str) -> String {
    let items: Vec<String> = items.iter().map(Argument::text).collect();
    format!("{open}{}{close}", items.join(", "))
}

/// The output name of an element.
pub(super) fn element_text(of: &str, element: &ast::Term<'_>) -> String {
    format!("{of}[{}]", term_text(element))
}

/// The output name of a slice.
pub(super) fn slice_text(of: &str, from: Option<&ast::Term<'_>>, to: Option<&ast::Term<'_>>) -> String {
    let end = |end: Option<&ast::Term<'_>>| end.map(term_text).unwrap_or_default();
    format!("{of}[{}..{}]", end(from), end(to))
}

/// The type of a writetime or TTL, of one cell or of several.
pub(super) fn time_type(function: TimeFunction, of_several: bool) -> CqlType {
    let one = if function == TimeFunction::Ttl { CqlType::Int } else { CqlType::BigInt };
    if of_several && function != TimeFunction::MaxWriteTime {
        return CqlType::List { element: Arc::new(one), frozen: true };
    }
    one
}

/// Index and type of a field, by its name.
pub(super) fn field_of<'t>(ty: &'t CqlType, name: &str) -> Option<(usize, &'t CqlType)> {
    let CqlType::Udt(udt) = ty else { return None };
    let index = udt.fields.iter().position(|(field, _)| **field == *name)?;
    udt.fields.get(index).map(|(_, ty)| (index, ty))
}

/// The type of an element selected by key from a set or map.
pub(super) fn element_type(ty: &CqlType) -> Option<&CqlType> {
    match ty {
        CqlType::Map { value, .. } => Some(value),
        CqlType::Set { element, .. } | CqlType::List { element, .. } => Some(element),
        _ => None,
    }
}

pub(super) fn is_collection(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Map { .. } | CqlType::Set { .. } | CqlType::List { .. })
}
