//! Validates the arguments of calls before they have an effect: families, keys, names, ranges, values
//! (`ThriftValidation`).

use crate::context::Rpc;
use crate::error::{Result, invalid};
use crate::family::{Family, Shape, is_shown};
use crate::name::NAME_BYTES_MAX;
use crate::predicate::Wanted;
use crate::session::Session;
use helenus_model::filter::Slice;
use helenus_model::schema::Table;
use helenus_wire::thrift::{Column, ConsistencyLevel, SlicePredicate, SliceRange};
use std::sync::Arc;

/// Maximum bytes of a row key (`FBUtilities.MAX_UNSIGNED_SHORT`).
const KEY_BYTES_MAX: usize = 65_535;

/// Maximum TTL: 20 years of 365 days (`Attributes.MAX_TTL`).
const TTL_SECONDS_MAX: i32 = 20 * 365 * 24 * 60 * 60;

/// The latest expiry time that files can hold, in seconds (`Cell.MAX_DELETION_TIME`).
const EXPIRY_SECONDS_MAX: i64 = u32::MAX as i64 - 2;

impl Rpc {
    /// Looks up a column family of the session's keyspace, and checks that the client may do to it what its call asks.
    pub(crate) fn family(&self, session: &mut Session, name: &str) -> Result<Arc<Family>> {
        let family = self.found_family(session, name)?;
        self.check_access(session, &family.table)?;
        Ok(family)
    }

    fn found_family(&self, session: &mut Session, name: &str) -> Result<Arc<Family>> {
        if let Some(family) = session.known(self.storage.schema_epoch(), name) {
            return Ok(family);
        }
        let schema = self.storage.schema();
        let keyspace = session_keyspace(session)?;
        if !schema.keyspaces.contains_key(&*keyspace) {
            return invalid(format!("Keyspace {keyspace} does not exist"));
        }
        if name.is_empty() {
            return invalid("non-empty table is required");
        }
        let Some(table) = schema.table(&keyspace, name) else {
            return invalid(format!("unconfigured table {name}"));
        };
        if !is_shown(table) {
            return invalid(self.storage.no_family(table));
        }
        let family = Arc::new(Family::new(table)?);
        session.keep(&schema, &family);
        Ok(family)
    }

    /// Looks up a column family that must have counters (`counts`) or must have none.
    pub(crate) fn family_that(&self, session: &mut Session, name: &str, counts: bool) -> Result<Arc<Family>> {
        let family = self.family(session, name)?;
        check_counts(&family, counts)?;
        Ok(family)
    }
}

/// The keyspace in use.
pub(crate) fn session_keyspace(session: &Session) -> Result<Arc<str>> {
    match &session.keyspace {
        Some(keyspace) => Ok(keyspace.clone()),
        None => invalid(
            "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
        ),
    }
}

/// Refuses counters in a plain family, and plain columns in a counter family.
pub(crate) fn check_counts(family: &Family, counts: bool) -> Result<()> {
    match (family.counts, counts) {
        (true, false) => invalid(format!("invalid operation for commutative table {}", family.table.name)),
        (false, true) => {
            invalid(format!("invalid operation for non commutative table {}", family.table.name))
        }
        _ => Ok(()),
    }
}

/// Checks a row key.
pub(crate) fn check_key(table: &Table, key: &[u8]) -> Result<()> {
    if key.is_empty() {
        return invalid("Key may not be empty");
    }
    if key.len() > KEY_BYTES_MAX {
        return invalid(format!("Key length of {} is longer than maximum of {KEY_BYTES_MAX}", key.len()));
    }
    match &table.partition_key[..] {
        [only] => Ok(only.ty.validate(key)?),
        several => {
            let types = several.iter().map(|column| (column.ty.clone(), false)).collect();
            crate::name::Comparator::Composite(types).validate(key)
        }
    }
}

/// Checks that a call names a super column only in a super family.
pub(crate) fn check_parent(family: &Family, super_column: Option<&[u8]>) -> Result<()> {
    let Some(name) = super_column else { return Ok(()) };
    if !family.is_super() {
        return invalid(format!("table alone is required for standard CF {}", family.table.name));
    }
    check_name(family, None, name)
}

/// Checks the name of a column, or, in a super family without `super_column`, of a super column.
pub(crate) fn check_name(family: &Family, super_column: Option<&[u8]>, name: &[u8]) -> Result<()> {
    if let Some(of) = super_column {
        if of.len() > NAME_BYTES_MAX {
            return invalid(format!("supercolumn name length must not be greater than {NAME_BYTES_MAX}"));
        }
        if of.is_empty() {
            return invalid("supercolumn name must not be empty");
        }
        if !family.is_super() {
            return invalid(format!(
                "supercolumn specified to table {} containing normal columns",
                family.table.name
            ));
        }
    }
    if name.len() > NAME_BYTES_MAX {
        return invalid(format!("column name length must not be greater than {NAME_BYTES_MAX}"));
    }
    if name.is_empty() {
        return invalid("column name must not be empty");
    }
    family.comparator_within(super_column).validate(name)
}

/// Checks the path of a column. In a super family the column may be missing, which means the whole super column.
pub(crate) fn check_path(family: &Family, super_column: Option<&[u8]>, column: Option<&[u8]>) -> Result<()> {
    let name = &family.table.name;
    if family.is_super() {
        if super_column.is_none() {
            return invalid(format!("supercolumn parameter is not optional for super CF {name}"));
        }
    } else if super_column.is_some() {
        return invalid(format!("supercolumn parameter is invalid for standard CF {name}"));
    } else if column.is_none() {
        return invalid(format!("column parameter is not optional for standard CF {name}"));
    }
    if let Some(column) = column {
        check_name(family, super_column, column)?;
    }
    super_column.map_or(Ok(()), |super_column| check_name(family, None, super_column))
}

/// Checks the path of a removal, of which only the family is required.
pub(crate) fn check_removed(
    family: &Family,
    super_column: Option<&[u8]>,
    column: Option<&[u8]>,
) -> Result<()> {
    let name = &family.table.name;
    if family.is_super() {
        if super_column.is_none() && column.is_some() {
            return invalid(format!(
                "A column cannot be specified without specifying a super column for removal on super CF {name}"
            ));
        }
    } else if super_column.is_some() {
        return invalid(format!("supercolumn may not be specified for standard CF {name}"));
    }
    if let Some(column) = column {
        check_name(family, super_column, column)?;
    }
    super_column.map_or(Ok(()), |super_column| check_name(family, None, super_column))
}

/// Validates the predicate of a read.
pub(crate) fn check_predicate(
    family: &Family,
    super_column: Option<&[u8]>,
    predicate: &SlicePredicate<'_>,
) -> Result<Wanted> {
    match (&predicate.column_names, &predicate.slice_range) {
        (None, None) => invalid("predicate column_names and slice_range may not both be null"),
        (Some(_), Some(_)) => invalid("predicate column_names and slice_range may not both be present"),
        (None, Some(range)) => {
            let slice = check_range(family, super_column, range)?;
            Wanted::range(family, super_column, range, slice)
        }
        (Some(names), None) => {
            names.iter().try_for_each(|name| check_name(family, super_column, name))?;
            Wanted::names(family, super_column, names)
        }
    }
}

/// Validates a range of columns, and returns it as byte-comparable positions.
pub(crate) fn check_range(
    family: &Family,
    super_column: Option<&[u8]>,
    range: &SliceRange<'_>,
) -> Result<Slice> {
    if range.count < 0 {
        return invalid("get_slice requires non-negative count");
    }
    for (which, name) in [("start", range.start), ("finish", range.finish)] {
        if name.len() > NAME_BYTES_MAX {
            return invalid(format!("range {which} length cannot be larger than {NAME_BYTES_MAX}"));
        }
    }
    let comparator = family.comparator_within(super_column);
    for name in [range.start, range.finish] {
        if !name.is_empty() {
            comparator.validate(name)?;
        }
    }
    let (low, high) = if range.reversed { (range.finish, range.start) } else { (range.start, range.finish) };
    let mut slice = Slice { start: Vec::new(), end: Vec::new() };
    comparator.put_bound(low, true, &mut slice.start)?;
    comparator.put_bound(high, false, &mut slice.end)?;
    if slice.start > slice.end && !range.start.is_empty() && !range.finish.is_empty() {
        return invalid("range finish must come after start in the order of traversal");
    }
    Ok(slice)
}

/// Validates the TTL, value and timestamp of a written column. Its name must be validated already.
pub(crate) fn check_column<'c>(
    family: &Family,
    super_column: Option<&[u8]>,
    column: &Column<'c>,
    now_s: i64,
) -> Result<(&'c [u8], i64, i32)> {
    let ttl_s = checked_ttl(&family.table, column.ttl, now_s)?;
    let Some(value) = column.value else { return invalid("Column value is required") };
    let Some(timestamp_us) = column.timestamp else { return invalid("Column timestamp is required") };
    if timestamp_us == i64::MIN {
        return invalid(format!("Out of bound timestamp, must be in [{}, {}]", i64::MIN + 1, i64::MAX));
    }
    if let Err(error) = family.type_of(column.name).validate(value) {
        return invalid(format!(
            "({error}) [{}][{}][{}] failed validation",
            family.table.keyspace,
            family.table.name,
            family
                .comparator_within(super_column.or((family.shape == Shape::Super).then_some(&[][..])))
                .text(column.name)
        ));
    }
    Ok((value, timestamp_us, ttl_s))
}

/// The TTL of a written column, in seconds; 0 for none.
fn checked_ttl(table: &Table, given: Option<i32>, now_s: i64) -> Result<i32> {
    let default_s = table.options.default_time_to_live_s;
    let (ttl_s, which) = match given {
        Some(ttl_s) if ttl_s < 0 => return invalid("ttl must be greater or equal to 0"),
        Some(ttl_s) if ttl_s > TTL_SECONDS_MAX => {
            return invalid(format!("ttl is too large. requested ({ttl_s}) maximum ({TTL_SECONDS_MAX})"));
        }
        Some(ttl_s) => (ttl_s, ""),
        None => (default_s, "default "),
    };
    if ttl_s != 0 && now_s.saturating_add(i64::from(ttl_s)) > EXPIRY_SECONDS_MAX {
        return invalid(format!(
            "Request on table {}.{} with {which}ttl of {ttl_s} seconds exceeds maximum supported expiration date",
            table.keyspace, table.name
        ));
    }
    Ok(ttl_s)
}

/// Validates the consistency level of a read.
pub(crate) fn check_read_level(level: ConsistencyLevel) -> Result<()> {
    match level {
        ConsistencyLevel::Any => invalid("ANY ConsistencyLevel is only supported for writes"),
        _ => Ok(()),
    }
}

/// Validates the consistency level of a write; counters allow fewer levels.
pub(crate) fn check_write_level(level: ConsistencyLevel, counts: Option<&Table>) -> Result<()> {
    match (level, counts) {
        (ConsistencyLevel::Any, Some(table)) => {
            invalid(format!("Consistency level ANY is not yet supported for counter table {}", table.name))
        }
        (ConsistencyLevel::Serial | ConsistencyLevel::LocalSerial, Some(_)) => {
            invalid("Counter operations are inherently non-serializable")
        }
        (ConsistencyLevel::Serial | ConsistencyLevel::LocalSerial, None) => {
            invalid("You must use conditional updates for serializable writes")
        }
        _ => Ok(()),
    }
}
