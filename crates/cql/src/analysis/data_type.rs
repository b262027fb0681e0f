//! Resolves written data types to types (`CQL3Type.Raw.prepare`).

use crate::error::{CqlError, Result};
use crate::scope::Scope;
use crate::syntax::ast::{DataType, DataTypeKind, Native, Pos, QualifiedName};
use crate::syntax::{SyntaxError, print_type};
use helenus_model::schema::Keyspace;
use helenus_model::types::{
    CqlType, ParsedClass, TYPE_DEPTH_MAX, TYPE_PARTS_MAX, TypeError, UserType, parse_class_name,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Resolves a written type. User-defined types are looked up in `keyspace`, the statement's keyspace.
///
/// # Errors
/// A user-defined type that does not exist or belongs to another keyspace; collections, counters and durations where
/// they are not allowed.
pub fn resolve_type(written: &DataType<'_>, keyspace: &str, scope: &Scope<'_>) -> Result<CqlType> {
    let found = scope.schema.keyspaces.get(keyspace);
    let keyspace = found.ok_or_else(|| CqlError::Config(format!("Keyspace {keyspace} doesn't exist")))?;
    resolve_type_in(written, keyspace)
}

/// As `resolve_type`, for a known keyspace.
pub(crate) fn resolve_type_in(written: &DataType<'_>, keyspace: &Keyspace) -> Result<CqlType> {
    Resolver::new(keyspace).resolved(written)
}

/// Resolves types of one keyspace, for a statement with many of them.
pub(crate) struct Resolver<'a> {
    keyspace: &'a Keyspace,
    /// User-defined types resolved so far, by name and whether frozen; types that use them share them.
    made: RefCell<HashMap<(String, bool), CqlType>>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(keyspace: &'a Keyspace) -> Resolver<'a> {
        Resolver { keyspace, made: RefCell::default() }
    }

    /// Resolves a written type.
    ///
    /// # Errors
    /// As `resolve_type`.
    pub(crate) fn resolved(&self, written: &DataType<'_>) -> Result<CqlType> {
        let found = self.resolve(written, false)?;
        if !found.has_parts() || found.is_bounded() {
            return Ok(found);
        }
        Err(CqlError::Invalid(format!(
            "The type nests too deep or has too many parts, with those of its user-defined types: at most {TYPE_DEPTH_MAX} \
             levels and {TYPE_PARTS_MAX} types are possible; write it flatter"
        )))
    }

    /// `frozen`: the type is within `frozen<>`, or within a type that freezes its parts.
    fn resolve(&self, written: &DataType<'_>, frozen: bool) -> Result<CqlType> {
        Ok(match &written.kind {
            DataTypeKind::Native(native) => native_type(*native),
            DataTypeKind::Frozen(inner) => self.resolve(inner, true)?,
            DataTypeKind::List(element) => {
                self.check_part(written, element, frozen)?;
                CqlType::List { element: self.resolve(element, frozen)?.into(), frozen }
            }
            DataTypeKind::Set(element) => {
                self.check_part(written, element, frozen)?;
                if is(element, Native::Duration) {
                    return Err(refused("Durations are not allowed inside sets: ", written, frozen));
                }
                CqlType::Set { element: self.resolve(element, frozen)?.into(), frozen }
            }
            DataTypeKind::Map(parts) => {
                let (key, value) = &**parts;
                self.check_part(written, value, frozen)?;
                if is(key, Native::Duration) {
                    return Err(refused("Durations are not allowed as map keys: ", written, frozen));
                }
                self.check_part(written, key, frozen)?;
                let key = self.resolve(key, frozen)?.into();
                CqlType::Map { key, value: self.resolve(value, frozen)?.into(), frozen }
            }
            DataTypeKind::Tuple(parts) => {
                if parts.iter().any(|part| is(part, Native::Counter)) {
                    return Err(CqlError::Invalid("Counters are not allowed inside tuples".into()));
                }
                let mut types = Vec::with_capacity(parts.len());
                for part in parts {
                    types.push(self.resolve(part, true)?);
                }
                CqlType::Tuple(types.into())
            }
            DataTypeKind::Vector(element, dimension) => {
                let Some(dimension) = u32::try_from(*dimension).ok().filter(|dimension| *dimension > 0)
                else {
                    let text = format!("vectors may only have positive dimensions; given {dimension}");
                    return Err(CqlError::Invalid(text));
                };
                CqlType::Vector { element: self.resolve(element, false)?.into(), dimension }
            }
            DataTypeKind::User(name) => self.user_type(name, frozen)?,
            DataTypeKind::Custom(class) => {
                CqlType::from_class_name(class).map_err(|error| broken_class(class, written.pos, &error))?
            }
        })
    }

    /// Whether a type that is written as a class has descending order: `'ReversedType(Int32Type)'`.
    pub(crate) fn is_reversed(written: &DataType<'_>) -> bool {
        let DataTypeKind::Custom(class) = &written.kind else { return false };
        matches!(parse_class_name(class), Ok(ParsedClass::Plain { reversed: true, .. }))
    }

    /// Refuses types that are not allowed inside a collection.
    fn check_part(&self, whole: &DataType<'_>, part: &DataType<'_>, frozen: bool) -> Result<()> {
        if is(part, Native::Counter) {
            return Err(refused("Counters are not allowed inside collections: ", whole, frozen));
        }
        match &part.kind {
            _ if frozen => Ok(()),
            DataTypeKind::List(_) | DataTypeKind::Set(_) | DataTypeKind::Map(_) => {
                Err(refused("Non-frozen collections are not allowed inside collections: ", whole, frozen))
            }
            DataTypeKind::User(_) => {
                Err(refused("Non-frozen UDTs are not allowed inside collections: ", whole, frozen))
            }
            _ => Ok(()),
        }
    }

    fn user_type(&self, name: &QualifiedName<'_>, frozen: bool) -> Result<CqlType> {
        if let Some(keyspace) = name.keyspace.as_ref().filter(|given| *given.name != *self.keyspace.name) {
            return Err(CqlError::Invalid(format!(
                "Statement on keyspace {} cannot refer to a user type in keyspace {}; user types can only be used in the keyspace they are defined in",
                self.keyspace.name,
                keyspace.as_str()
            )));
        }
        let key = (name.name.as_str().to_owned(), frozen);
        if let Some(made) = self.made.borrow().get(&key) {
            return Ok(made.clone());
        }
        let found = self.keyspace.types.get(name.name.as_str()).ok_or_else(|| {
            CqlError::Invalid(format!("Unknown type {}.{}", self.keyspace.name, name.name.as_str()))
        })?;
        let ty = CqlType::Udt(Arc::new(UserType { frozen: false, ..(**found).clone() }));
        let ty = if frozen { ty.freeze() } else { ty };
        self.made.borrow_mut().insert(key, ty.clone());
        Ok(ty)
    }
}

/// Refuses classes that Cassandra does not have. Applied to clients' statements but not to schema texts, so that a
/// table of a node with such a class can be backed up and imported.
///
/// # Errors
/// A syntax error.
pub(crate) fn check_class(written: &DataType<'_>) -> Result<()> {
    let each = |parts: &[&DataType<'_>]| parts.iter().try_for_each(|part| check_class(part));
    match &written.kind {
        DataTypeKind::List(part)
        | DataTypeKind::Set(part)
        | DataTypeKind::Vector(part, _)
        | DataTypeKind::Frozen(part) => check_class(part),
        DataTypeKind::Map(parts) => each(&[&parts.0, &parts.1]),
        DataTypeKind::Tuple(parts) => parts.iter().try_for_each(check_class),
        DataTypeKind::Native(_) | DataTypeKind::User(_) => Ok(()),
        DataTypeKind::Custom(class) => {
            let found = CqlType::from_class_name(class).and_then(|ty| ty.check_classes());
            found.map_err(|error| broken_class(class, written.pos, &error))
        }
    }
}

/// The error for an invalid class name: a syntax error, because Cassandra's parser resolves classes.
fn broken_class(class: &str, at: Pos, error: &TypeError) -> CqlError {
    let what = match error {
        TypeError::ClassSyntax { .. } => "Cannot parse type",
        _ => "Error setting type",
    };
    let message = format!("{what} {class}: {error}");
    CqlError::Syntax(SyntaxError { line: 0, column: -1, offset: at.0, message })
}

fn is(written: &DataType<'_>, native: Native) -> bool {
    matches!(written.kind, DataTypeKind::Native(found) if found == native)
}

fn refused(why: &str, written: &DataType<'_>, frozen: bool) -> CqlError {
    let text = print_type(written);
    CqlError::Invalid(if frozen { format!("{why}frozen<{text}>") } else { format!("{why}{text}") })
}

/// The type of a native type's keyword.
pub(crate) fn native_type(native: Native) -> CqlType {
    match native {
        Native::Ascii => CqlType::Ascii,
        Native::Bigint => CqlType::BigInt,
        Native::Blob => CqlType::Blob,
        Native::Boolean => CqlType::Boolean,
        Native::Counter => CqlType::Counter,
        Native::Date => CqlType::Date,
        Native::Decimal => CqlType::Decimal,
        Native::Double => CqlType::Double,
        Native::Duration => CqlType::Duration,
        Native::Float => CqlType::Float,
        Native::Inet => CqlType::Inet,
        Native::Int => CqlType::Int,
        Native::Smallint => CqlType::SmallInt,
        Native::Text | Native::Varchar => CqlType::Text,
        Native::Time => CqlType::Time,
        Native::Timestamp => CqlType::Timestamp,
        Native::Timeuuid => CqlType::TimeUuid,
        Native::Tinyint => CqlType::TinyInt,
        Native::Uuid => CqlType::Uuid,
        Native::Varint => CqlType::Varint,
    }
}
