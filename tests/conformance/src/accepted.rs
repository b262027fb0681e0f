//! The accepted differences: each has an entry in `docs/conformance.md`, with its reason.

use anyhow::{Context, Result, ensure};

use helenus_model::types::CqlType;
use helenus_model::vint;
use helenus_wire::native::{ColumnSpec, ErrorCode};

use crate::answer::{Answer, CellBytes, Outcome};

/// The text of `docs/conformance.md`.
///
/// # Errors
/// It cannot be read.
pub fn page() -> Result<String> {
    let path = crate::root().join("docs/conformance.md");
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Checks that the page has an entry of this name: a heading `### NAME`.
///
/// # Errors
/// It has none.
pub fn check_listed(page: &str, name: &str) -> Result<()> {
    let listed = page.lines().any(|line| line.strip_prefix("### ").is_some_and(|entry| entry.trim() == name));
    ensure!(listed, "docs/conformance.md lists no accepted difference `{name}`");
    Ok(())
}

/// Whether Helenus says that it has not built what the statement asks for: not a wrong answer, and counted apart.
pub fn is_unbuilt(ours: &Answer) -> bool {
    ours.error().is_some_and(|(_, message)| message.contains(" supported") && message.contains(" yet"))
}

/// Whether the judge itself has failed: the entry `server-error`.
pub(crate) fn is_server_error(theirs: &Answer) -> bool {
    const FAILURES: [ErrorCode; 5] = [
        ErrorCode::Server,
        ErrorCode::WriteTimeout,
        ErrorCode::ReadTimeout,
        ErrorCode::WriteFailure,
        ErrorCode::ReadFailure,
    ];
    theirs
        .error()
        .is_some_and(|(code, text)| FAILURES.contains(&code) || text == "Invalid value for the paging state")
}

/// Whether two texts of an error say the same, by the entries `column-of-a-value`, `names-of-hosts` and `order-of-a-set`.
pub(crate) fn same_text(theirs: &str, ours: &str) -> bool {
    let ours = &without_column(ours).replace(": names of hosts are not looked up, write the address", "");
    theirs == ours || SETS.iter().any(|start| theirs.contains(start)) && words(theirs) == words(ours)
}

/// Whether Cassandra refuses a cast that changes nothing, by the entry `cast-of-a-descending-column`; Helenus goes on, and may
/// find something else wrong.
pub(crate) fn is_cast_of_descending(theirs: &Answer, ours: &Answer) -> bool {
    // The function that is refused.
    let refused = |answer: &Answer| {
        let (_, text) = answer.error()?;
        let is_it = text.starts_with("Invalid call to function system.cast_as_")
            || text.contains(" argument, but found argument ");
        is_it.then(|| text.split([',', ' ']).find(|word| word.starts_with("system.")).map(str::to_owned))
    };
    let (there, here) = (refused(theirs), refused(ours));
    there.is_some() && there != here
}

/// Whether Cassandra tells of a missing right, and Helenus of what else is wrong, by the entry `order-of-rights`; or whether
/// Cassandra prepares a write to a system table, which it refuses only when it runs. Neither runs the statement.
pub(crate) fn is_order_of_rights(theirs: &Answer, ours: &Answer) -> bool {
    let lacks =
        |(code, text): (ErrorCode, &str)| code == ErrorCode::Unauthorized && text.contains(" permission on ");
    let is_system = |(_, text): (ErrorCode, &str)| {
        text.ends_with(" keyspace is not user-modifiable.")
            || text.starts_with("Modification is not supported by table ")
    };
    let is_prepared = matches!(theirs.outcome, Outcome::Prepared(_));
    theirs.error().is_some_and(lacks) && ours.error().is_some_and(|error| !lacks(error))
        || is_prepared && ours.error().is_some_and(is_system)
}

/// Whether Helenus refuses what no file can hold, by the entry `deletion-of-a-partition-before-1970`.
pub(crate) fn is_early_deletion(theirs: &Answer, ours: &Answer) -> bool {
    let refused = "the deletion of a partition cannot have a timestamp below 0";
    theirs.error().is_none() && ours.error().is_some_and(|(_, text)| text.contains(refused))
}

/// Whether of several wrong values of a document another is told, by the entry `order-of-json-values`.
pub(crate) fn is_order_of_json(theirs: &Answer, ours: &Answer) -> bool {
    let is_json = |answer: &Answer| {
        answer.error().is_some_and(|(_, text)| text.starts_with("Error decoding JSON value for "))
    };
    // Wrong durations are told without the column's name.
    let is_duration =
        |answer: &Answer| answer.error().is_some_and(|(_, text)| text.starts_with("Invalid duration"));
    let is_value = |answer: &Answer| is_json(answer) || is_duration(answer);
    is_value(theirs) && is_value(ours) && (is_json(theirs) || is_json(ours))
}

/// Whether Helenus refuses a constant of a wrong length that Cassandra reads the beginning of, by the entry
/// `long-constants`.
pub(crate) fn is_long_constant(theirs: &Answer, ours: &Answer) -> bool {
    let refused = |(_, text): (ErrorCode, &str)| text.starts_with("Expected 1 byte for a tinyint (");
    ours.error().is_some_and(refused) && !theirs.error().is_some_and(refused)
}

/// Whether of several conditions one is refused and another does not hold, by the entry `order-of-conditions`.
pub(crate) fn is_order_of_conditions(text: &str, theirs: &Answer, ours: &Answer) -> bool {
    let is_refused = |answer: &Answer| {
        answer.error().is_some_and(|(_, text)| {
            text.starts_with("Invalid comparison with ") || text == "Invalid 'unset' value in condition"
        })
    };
    let is_false = |answer: &Answer| match &answer.outcome {
        Outcome::Rows { rows, .. } => rows.first().and_then(|row| row.first()) == Some(&Some(vec![0])),
        _ => false,
    };
    text.matches(" IF ").count() + text.matches(" AND ").count() > 1
        && (is_refused(theirs) && (is_false(ours) || is_refused(ours))
            || is_false(theirs) && is_refused(ours))
}

/// Whether rows are missing there by the entry `contains-on-a-static-column`: all that Cassandra gives are there here, in the
/// same order.
pub(crate) fn is_short_of_statics(text: &str, theirs: &Answer, ours: &Answer) -> bool {
    let (Outcome::Rows { rows, .. }, Outcome::Rows { rows: our_rows, .. }) = (&theirs.outcome, &ours.outcome)
    else {
        return false;
    };
    let mut rest = our_rows.iter();
    asks_for_statics(text)
        && rows.len() < our_rows.len()
        && rows.iter().all(|row| rest.any(|other| other == row))
}

/// Whether a page behind a paging state differs as the entries `server-error` and `paging-states` say.
pub(crate) fn is_other_state((text, state): (&str, &[u8]), theirs: &Answer, ours: &Answer) -> bool {
    let is_failure = theirs.error().is_some_and(|(code, _)| code == ErrorCode::ReadFailure);
    let refused = "Invalid value for the paging state: its row can be none of table";
    is_server_error(theirs)
        || is_failure
        || ours.error().is_some_and(|(_, text)| text.contains(refused))
        || asks_for_statics(text)
        || text.contains(" token(") && is_of_nothing(text, ours)
        || theirs.error().is_none() && leaves_more(text, state)
}

/// Whether an answer has no row, or is that of `count(*)` over none.
fn is_of_nothing(text: &str, ours: &Answer) -> bool {
    let Outcome::Rows { rows, .. } = &ours.outcome else { return false };
    let is_zero = |row: &Vec<CellBytes>| row.contains(&Some(vec![0; 8]));
    rows.is_empty() || text.contains("count(*)") && !text.contains(" GROUP BY ") && rows.iter().all(is_zero)
}

/// Whether a state leaves more rows of its partition than the statement gives of one.
fn leaves_more(text: &str, state: &[u8]) -> bool {
    let limit = match text.split_once(" PER PARTITION LIMIT ") {
        Some((_, rest)) => rest.split(' ').next().and_then(|limit| limit.parse().ok()),
        None => text.starts_with("SELECT DISTINCT ").then_some(1),
    };
    limit.zip(rows_left(state)).is_some_and(|(limit, left)| left > limit)
}

/// The rows that a state of protocol 4 or 5 has left of its partition.
fn rows_left(state: &[u8]) -> Option<u64> {
    let number = |bytes: &[u8]| {
        let (value, length) = vint::read_unsigned(bytes)?;
        Some((value, bytes.get(length..)?.to_vec()))
    };
    let behind = |bytes: &[u8]| {
        let (length, rest) = number(bytes)?;
        rest.get(usize::try_from(length).ok()?..).map(<[u8]>::to_vec)
    };
    let (_, rest) = number(&behind(&behind(state)?)?)?;
    number(&rest).map(|(rows, _)| rows)
}

/// Whether a statement asks by CONTAINS for a static column.
fn asks_for_statics(text: &str) -> bool {
    let statics = ["s0", "s1", "\"S 0\"", "\"S 1\""];
    statics.iter().any(|name| text.contains(&format!(" {name} CONTAINS ")))
}

/// Rows with one value for all that are no number, by the entry `bits-of-nan`, and without the zeroes at the end of clustering
/// decimals (which generated tables name `c0`, `c1` and so on), by the entry `bytes-of-equal-decimals`.
pub(crate) fn settled(columns: &[ColumnSpec], rows: &[Vec<CellBytes>]) -> Vec<Vec<CellBytes>> {
    let is_nan = |column: &ColumnSpec, bytes: &[u8]| match column.ty {
        CqlType::Double => <[u8; 8]>::try_from(bytes).is_ok_and(|bytes| f64::from_be_bytes(bytes).is_nan()),
        CqlType::Float => <[u8; 4]>::try_from(bytes).is_ok_and(|bytes| f32::from_be_bytes(bytes).is_nan()),
        _ => false,
    };
    let mut rows = rows.to_vec();
    for row in &mut rows {
        for (column, cell) in columns.iter().zip(row) {
            if let Some(bytes) = cell.as_mut().filter(|bytes| is_nan(column, bytes)) {
                bytes.fill(0xFF);
            }
            let is_clustering = column.name.strip_prefix('c').is_some_and(|rest| rest.parse::<u8>().is_ok());
            if let Some(bytes) = cell.as_mut().filter(|_| is_clustering && column.ty == CqlType::Decimal) {
                strip_zeroes(bytes);
            }
        }
    }
    rows
}

/// Brings the bytes of a decimal to those without zeroes at the end. Great numbers stay as they are.
fn strip_zeroes(bytes: &mut Vec<u8>) {
    let Some((scale, digits)) = bytes.split_first_chunk::<4>() else { return };
    if digits.is_empty() || digits.len() > 8 {
        return;
    }
    let sign = if digits[0] & 0x80 == 0 { 0 } else { 0xFF };
    let mut wide = [sign; 8];
    wide[8 - digits.len()..].copy_from_slice(digits);
    let (mut unscaled, mut scale) = (i64::from_be_bytes(wide), i64::from(i32::from_be_bytes(*scale)));
    while unscaled % 10 == 0 && unscaled != 0 {
        unscaled /= 10;
        scale -= 1;
    }
    if unscaled == 0 {
        scale = 0;
    }
    *bytes = [scale.to_be_bytes(), unscaled.to_be_bytes()].concat();
}

/// Whether a syntax error is of something that is no token, by the entry `broken-token-ahead`.
pub(crate) fn is_broken_token(message: &str) -> bool {
    message.contains("mismatched character ") || message.contains("no viable alternative at character ")
}

/// Whether a syntax error is of a path in a selection, by the entry `syntax-of-a-path`.
pub(crate) fn is_path(message: &str) -> bool {
    message.contains("mismatched input '.' expecting K_FROM")
}

/// Whether Cassandra gives all groups in a page that was asked for less, by the entry `pages-of-distinct-groups`: DISTINCT, or a
/// table without clustering. `lengths` are the rows of its pages.
pub(crate) fn is_unpaged_group(text: &str, lengths: &[usize], size: i32) -> bool {
    let is_longer = |length: &usize| usize::try_from(size).is_ok_and(|size| *length > size);
    text.to_ascii_uppercase().contains(" GROUP BY ") && lengths.first().is_some_and(is_longer)
}

/// Whether a statement is sorted by Cassandra as the entry `order-of-json` says.
pub(crate) fn is_sorted_json(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    text.starts_with("SELECT JSON * ") && text.contains(" ORDER BY ") && text.contains(" IN ")
}

/// The name of a column without what differs by the entry `name-of-to-json`.
pub(crate) fn column_name(name: &str) -> String {
    name.replace("system.tojson(", "system.to_json(")
}

/// Texts of Cassandra in which a hash set is printed.
const SETS: &[&str] = &[
    "known type signatures",
    "Ambiguous call to function",
    "More than one restriction was found",
    "cannot be restricted by more than one relation",
    "Unsupported \"!=\" relation",
    "cannot be restricted by both an equality and an inequality relation",
    "because it has dependent secondary indexes",
];

fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> =
        text.split([' ', ',', '(', ')', '{', '}', '"']).filter(|word| !word.is_empty()).collect();
    words.sort_unstable();
    words
}

fn without_column(message: &str) -> &str {
    match message.rsplit_once(" (column ") {
        Some((before, column)) if column.ends_with(')') => before,
        _ => message,
    }
}

/// The warnings that count: without the one of the entry `use-warning`.
pub(crate) fn warnings(answer: &Answer) -> Vec<&str> {
    let all = answer.warnings.iter().map(String::as_str);
    all.filter(|warning| !warning.starts_with("`USE <keyspace>` with prepared statements")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_decimals_have_the_same_bytes_and_others_do_not() {
        let stripped = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            strip_zeroes(&mut bytes);
            bytes
        };
        // 1E+3 and 1000.0, -20 and -2E+1, 0 and 0.00.
        assert_eq!(stripped(&[0xFF, 0xFF, 0xFF, 0xFD, 1]), stripped(&[0, 0, 0, 1, 0x27, 0x10]));
        assert_eq!(stripped(&[0, 0, 0, 0, 0xEC]), stripped(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFE]));
        assert_eq!(stripped(&[0, 0, 0, 0, 0]), stripped(&[0, 0, 0, 2, 0]));
        assert_ne!(stripped(&[0, 0, 0, 0, 1]), stripped(&[0, 0, 0, 1, 1]));
    }

    #[test]
    fn a_printed_set_may_have_any_order_and_nothing_else_may() {
        let sets = "none match (known type signatures: f : (int) -> int, f : (text) -> text)";
        let other = "none match (known type signatures: f : (text) -> text, f : (int) -> int)";
        assert!(same_text(sets, other));
        assert!(!same_text(sets, "none match (known type signatures: f : (int) -> int)"));
        assert!(!same_text("a b", "b a"));
        assert!(same_text(
            "Cannot drop column v because it has dependent secondary indexes (t_i2, t_i1)",
            "Cannot drop column v because it has dependent secondary indexes (t_i1, t_i2)"
        ));
        assert!(same_text("Expected 4 or 0 byte int (2)", "Expected 4 or 0 byte int (2) (column k)"));
    }
}
