//! Converts between written values and serialised bytes, by the types of a column family.

use super::ast::Written;
use anyhow::{Result, bail};
use helenus_model::types::{CqlType, parse_text};
use helenus_rpc::Comparator;
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// The function names and the class of each function's type (`CliClient.Function`).
const FUNCTIONS: [(&str, &str); 12] = [
    ("bytes", "BytesType"),
    ("integer", "IntegerType"),
    ("long", "LongType"),
    ("int", "Int32Type"),
    ("lexicaluuid", "LexicalUUIDType"),
    ("timeuuid", "TimeUUIDType"),
    ("utf8", "UTF8Type"),
    ("ascii", "AsciiType"),
    ("double", "DoubleType"),
    ("countercolumn", "CounterColumnType"),
    ("uuid", "UUIDType"),
    ("date", "DateType"),
];

/// The class for the name of a function or type.
pub(super) fn class_of(name: &str) -> String {
    let known = FUNCTIONS.iter().find(|(function, _)| function.eq_ignore_ascii_case(name));
    known.map_or_else(|| name.to_owned(), |(_, class)| (*class).to_owned())
}

/// Microseconds since the epoch, used as the timestamp of writes.
pub(super) fn now_us() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(passed.as_micros()).unwrap_or(i64::MAX)
}

/// Serialises a written value: by its function if it has one, otherwise by the comparator.
pub(super) fn bytes(written: &Written, comparator: &Comparator) -> Result<Vec<u8>> {
    match written {
        Written::Plain(text) => Ok(comparator.bytes_of(text).map_err(anyhow::Error::msg)?),
        Written::Call(function, argument) => call(function, argument.as_deref()),
    }
}

fn call(function: &str, argument: Option<&str>) -> Result<Vec<u8>> {
    if !FUNCTIONS.iter().any(|(known, _)| *known == function) {
        let known: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
        bail!("Function '{function}' not found. Available functions: {}", known.join(", "));
    }
    match (function, argument) {
        ("timeuuid", None) => Ok(time_uuid().into_bytes().to_vec()),
        ("lexicaluuid" | "uuid", None) => Ok(Uuid::new_v4().into_bytes().to_vec()),
        (_, None) => bail!("Argument for '{function}' could not be empty."),
        (_, Some(text)) => {
            let ty = CqlType::from_class_name(&class_of(function))?;
            Ok(parse_text(&ty, text)?)
        }
    }
}

fn time_uuid() -> Uuid {
    let now = u64::try_from(now_us()).unwrap_or_default();
    let at = uuid::Timestamp::from_unix(uuid::NoContext, now / 1_000_000, (now % 1_000_000) as u32 * 1000);
    Uuid::new_v1(at, &[1, 0, 0, 0, 0, 1])
}

/// The comparator of a class name.
pub(super) fn comparator(class: &str) -> Result<Comparator> {
    Comparator::of_class(class).map_err(anyhow::Error::msg)
}
