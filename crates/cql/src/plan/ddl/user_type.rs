//! CREATE, ALTER and DROP TYPE.

use super::create_table::{invalid, repeated};
use super::mask;
use crate::analysis::{Resolver, resolve_type_in};
use crate::error::Result;
use crate::syntax::ast::{AlterType, CreateType, DataType, DataTypeKind, Ident, Native, TypeChange};
use crate::syntax::print_type;
use helenus_model::schema::{Column, Keyspace, Schema, Table};
use helenus_model::types::{CqlType, TYPE_DEPTH_MAX, TYPE_PARTS_MAX, UserType};
use std::collections::HashMap;
use std::sync::Arc;

/// CREATE TYPE.
pub(super) fn create(statement: &CreateType<'_>, keyspace: &str, schema: &mut Schema) -> Result<()> {
    let Some(present) = schema.keyspaces.get(keyspace) else {
        return invalid(format!("Keyspace '{keyspace}' doesn't exist"));
    };
    let name = statement.name.name.as_str();
    if present.types.contains_key(name) {
        if statement.if_not_exists {
            return Ok(());
        }
        return invalid(format!("A user type with name '{name}' already exists"));
    }
    if let Some(field) = repeated(statement.fields.iter().map(|(field, _)| field.as_str())) {
        return invalid(format!("Duplicate field name '{field}' in type '{name}'"));
    }
    for (_, written) in &statement.fields {
        check_field(written)?;
    }
    let mut fields = Vec::with_capacity(statement.fields.len());
    let types = Resolver::new(present);
    for (field, written) in &statement.fields {
        fields.push((Arc::from(field.as_str()), types.resolved(written)?));
    }
    let ty = UserType { keyspace: present.name.clone(), name: name.into(), fields, frozen: false };
    check_bounds(&ty, present, &ty)?;
    if let Some(present) = schema.keyspaces.get_mut(keyspace) {
        Arc::make_mut(present).types.insert(ty.name.clone(), Arc::new(ty));
    }
    Ok(())
}

fn check_field(written: &DataType<'_>) -> Result<()> {
    match written.kind {
        DataTypeKind::Native(Native::Counter) => invalid("A user type cannot contain counters"),
        DataTypeKind::User(_) => invalid("A user type cannot contain non-frozen UDTs"),
        _ => Ok(()),
    }
}

/// ALTER TYPE.
pub(super) fn alter(statement: &AlterType<'_>, keyspace: &str, schema: &mut Schema) -> Result<()> {
    let name = statement.name.name.as_str();
    let before = Arc::new(schema.clone());
    let found = schema.keyspaces.get_mut(keyspace).and_then(|keyspace| {
        let ty = keyspace.types.get(name).cloned();
        ty.map(|ty| (keyspace, ty))
    });
    let Some((present, ty)) = found else {
        if statement.if_exists {
            return Ok(());
        }
        return invalid(format!("Type {keyspace}.{name} doesn't exist"));
    };
    let mut changed = UserType::clone(&ty);
    match &statement.change {
        TypeChange::Retype(..) => return invalid("Altering field types is no longer supported"),
        TypeChange::Add { if_not_exists, field, data_type } => {
            add_field(field, data_type, *if_not_exists, present, &mut changed)?;
        }
        TypeChange::Rename { if_exists, names } => rename_fields(names, *if_exists, &mut changed)?,
    }
    if changed != *ty {
        let next = with_type(present, Arc::new(changed), &before)?;
        let name = &ty.name;
        for used in next.types.values() {
            check_bounds(used, &next, &ty)?;
        }
        let grown = |column: &&Column| column.ty.has_parts() && !column.ty.is_bounded();
        if let Some(column) = next.tables.values().flat_map(|table| table.columns()).find(grown) {
            return invalid(format!("Cannot change type {name}: column {} would nest too deep", column.name));
        }
        *present = Arc::new(next);
    }
    Ok(())
}

/// Rejects a type that would be too large for a column. It is checked inside a collection, the usual use of such types.
fn check_bounds(ty: &UserType, keyspace: &Keyspace, changed: &UserType) -> Result<()> {
    let element = CqlType::Udt(Arc::new(ty.clone()));
    if (CqlType::List { element: Arc::new(element), frozen: true }).is_bounded() {
        return Ok(());
    }
    invalid(format!(
        "Type {}.{} would nest too deep or have too many parts by {}: at most {TYPE_DEPTH_MAX} levels and {TYPE_PARTS_MAX} types are possible",
        keyspace.name, ty.name, changed.name
    ))
}

fn add_field(
    field: &Ident<'_>,
    written: &DataType<'_>,
    if_not_exists: bool,
    keyspace: &Keyspace,
    ty: &mut UserType,
) -> Result<()> {
    check_field(written)?;
    let name = field.as_str();
    let type_name = format!("{}.{}", ty.keyspace, ty.name);
    if ty.fields.iter().any(|(other, _)| &**other == name) {
        if if_not_exists {
            return Ok(());
        }
        return invalid(format!(
            "Cannot add field {name} to type {type_name}: a field with name {name} already exists"
        ));
    }
    let resolved = resolve_type_in(written, keyspace)?;
    if references(&resolved, &ty.name) {
        return invalid(format!(
            "Cannot add new field {name} of type {} to user type {type_name} as it would create a circular reference",
            full_text(written, &keyspace.name)
        ));
    }
    let in_key = |table: &Table| table.partition_key.iter().any(|column| references(&column.ty, &ty.name));
    let tables: Vec<String> = keyspace
        .tables
        .values()
        .filter(|table| in_key(table))
        .map(|table| format!("{}.{}", table.keyspace, table.name))
        .collect();
    if !tables.is_empty() {
        return invalid(format!(
            "Cannot add new field {name} of type {} to user type {type_name} as the type is being used in partition \
             key by the following tables: {}",
            print_type(written),
            tables.join(", ")
        ));
    }
    ty.fields.push((name.into(), resolved));
    Ok(())
}

/// A type's text with the keyspace in front of each user-defined type.
fn full_text(written: &DataType<'_>, keyspace: &str) -> String {
    match &written.kind {
        DataTypeKind::User(name) => format!("{keyspace}.{}", name.name.as_str()),
        DataTypeKind::Frozen(inner) => format!("frozen<{}>", full_text(inner, keyspace)),
        DataTypeKind::List(element) => format!("list<{}>", full_text(element, keyspace)),
        DataTypeKind::Set(element) => format!("set<{}>", full_text(element, keyspace)),
        DataTypeKind::Map(parts) => {
            format!("map<{}, {}>", full_text(&parts.0, keyspace), full_text(&parts.1, keyspace))
        }
        _ => print_type(written),
    }
}

fn rename_fields(names: &[(Ident<'_>, Ident<'_>)], if_exists: bool, ty: &mut UserType) -> Result<()> {
    let before: HashMap<Arc<str>, usize> =
        ty.fields.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
    for (from, to) in names {
        match before.get(from.as_str()).copied() {
            Some(index) => {
                if let Some(field) = ty.fields.get_mut(index) {
                    field.0 = to.as_str().into();
                }
            }
            None if if_exists => {}
            None => {
                return invalid(format!(
                    "Unkown field {} in user type {}.{}",
                    from.as_str(),
                    ty.keyspace,
                    ty.name
                ));
            }
        }
    }
    if let Some(name) = repeated(ty.fields.iter().map(|(name, _)| &**name)) {
        return invalid(format!("Duplicate field name {name} in type {}", ty.keyspace));
    }
    Ok(())
}

/// DROP TYPE.
pub(super) fn drop(name: &str, if_exists: bool, keyspace: &str, schema: &mut Schema) -> Result<()> {
    let found = schema.keyspaces.get_mut(keyspace).filter(|keyspace| keyspace.types.contains_key(name));
    let Some(present) = found else {
        if if_exists {
            return Ok(());
        }
        return invalid(format!("Type '{keyspace}.{name}' doesn't exist"));
    };
    let uses =
        |ty: &UserType| &*ty.name != name && ty.fields.iter().any(|(_, field)| references(field, name));
    let types: Vec<&str> = present.types.values().filter(|ty| uses(ty)).map(|ty| &*ty.name).collect();
    let still = |by: &str, names: Vec<&str>| {
        invalid(format!(
            "Cannot drop user type '{keyspace}.{name}' as it is still used by {by} {}",
            names.join(", ")
        ))
    };
    if !types.is_empty() {
        return still("user types", types);
    }
    let uses = |table: &Table| table.columns().any(|column| references(&column.ty, name));
    let tables: Vec<&str> = present.tables.values().filter(|t| uses(t)).map(|t| &*t.name).collect();
    if !tables.is_empty() {
        return still("tables", tables);
    }
    let mut changed = Keyspace::clone(present);
    changed.types.remove(name);
    *present = Arc::new(changed);
    Ok(())
}

/// Whether a type is or contains a user-defined type of this name.
fn references(ty: &CqlType, name: &str) -> bool {
    match ty {
        CqlType::Udt(udt) => {
            &*udt.name == name || udt.fields.iter().any(|(_, field)| references(field, name))
        }
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            references(element, name)
        }
        CqlType::Map { key, value, .. } => references(key, name) || references(value, name),
        CqlType::Tuple(types) => types.iter().any(|ty| references(ty, name)),
        _ => false,
    }
}

/// The keyspace with a user-defined type replaced wherever it is used. `before` is the schema with the old type.
pub(crate) fn with_type(keyspace: &Keyspace, new: Arc<UserType>, before: &Arc<Schema>) -> Result<Keyspace> {
    let mut changed = keyspace.clone();
    for ty in changed.types.values_mut() {
        if ty.name == new.name {
            *ty = new.clone();
        } else if ty.fields.iter().any(|(_, field)| references(field, &new.name)) {
            let fields =
                ty.fields.iter().map(|(name, field)| (name.clone(), replaced(field, &new))).collect();
            *ty = Arc::new(UserType { fields, ..(**ty).clone() });
        }
    }
    for table in changed.tables.values_mut() {
        if !table.columns().any(|column| references(&column.ty, &new.name)) {
            continue;
        }
        let mut next = Table::clone(table);
        let key = next.partition_key.iter_mut().chain(&mut next.clustering);
        for column in key.chain(&mut next.statics).chain(&mut next.regulars) {
            column.ty = replaced(&column.ty, &new);
        }
        next.masks = mask::with_type(table, before, |ty| replaced(ty, &new))?;
        *table = Arc::new(next);
    }
    Ok(changed)
}

fn replaced(ty: &CqlType, new: &Arc<UserType>) -> CqlType {
    let inner = |ty: &Arc<CqlType>| Arc::new(replaced(ty, new));
    match ty {
        CqlType::Udt(udt) => {
            let fields = if udt.name == new.name { &new.fields } else { &udt.fields };
            let fields = fields.iter().map(|(name, field)| (name.clone(), replaced(field, new))).collect();
            let whole = CqlType::Udt(Arc::new(UserType { fields, frozen: false, ..(**udt).clone() }));
            if udt.frozen { whole.freeze() } else { whole }
        }
        CqlType::List { element, frozen } => CqlType::List { element: inner(element), frozen: *frozen },
        CqlType::Set { element, frozen } => CqlType::Set { element: inner(element), frozen: *frozen },
        CqlType::Map { key, value, frozen } => {
            CqlType::Map { key: inner(key), value: inner(value), frozen: *frozen }
        }
        CqlType::Tuple(types) => CqlType::Tuple(types.iter().map(|ty| replaced(ty, new)).collect()),
        CqlType::Vector { element, dimension } => {
            CqlType::Vector { element: inner(element), dimension: *dimension }
        }
        other => other.clone(),
    }
}
