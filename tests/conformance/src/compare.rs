//! What counts as a difference between two answers.
//!
//! Everything a client can see: kinds of answers, columns with their tables and types, the bytes of each cell, codes,
//! texts and fields of errors, warnings, ids of prepared statements. Of a syntax error only code and position: its
//! text is that of a parser generator.

use helenus_wire::native::{ColumnSpec, ErrorCode};

use crate::accepted;
use crate::answer::{Answer, CellBytes, Outcome, PreparedStatement, describe_columns, describe_row};

/// In words what differs, `None` if nothing does. `any_order`: rows may come in any.
pub fn difference(theirs: &Answer, ours: &Answer, any_order: bool) -> Option<String> {
    outcome(theirs, ours, any_order).or_else(|| {
        // Warnings before a refusal are what was warned of until then.
        if theirs.error().is_some() {
            return None;
        }
        let (there, here) = (accepted::warnings(theirs), accepted::warnings(ours));
        (there != here).then(|| format!("warnings: {there:?} there, {here:?} here"))
    })
}

fn outcome(theirs: &Answer, ours: &Answer, any_order: bool) -> Option<String> {
    match (&theirs.outcome, &ours.outcome) {
        (
            Outcome::Error { code, message, detail },
            Outcome::Error { code: our_code, message: our_message, detail: our_detail },
        ) => {
            if *code == ErrorCode::Syntax && *our_code == ErrorCode::Syntax {
                let (there, here) = (position(message), position(our_message));
                // Where its parser gives up later, Cassandra says only that it failed.
                let same = there == here
                    || there.is_empty()
                    || accepted::is_broken_token(message)
                    || accepted::is_path(our_message);
                return (!same).then(|| format!("position: {there} there, {here} here"));
            }
            let same = code == our_code && accepted::same_text(message, our_message) && detail == our_detail;
            (!same).then(|| "errors".to_owned())
        }
        (Outcome::Rows { columns, rows, .. }, Outcome::Rows { columns: our_columns, rows: our_rows, .. }) => {
            specs("columns", columns, our_columns).or_else(|| {
                let (mut rows, mut our_rows) =
                    (accepted::settled(columns, rows), accepted::settled(columns, our_rows));
                if any_order {
                    rows.sort();
                    our_rows.sort();
                }
                let at = (0..rows.len().max(our_rows.len())).find(|at| rows.get(*at) != our_rows.get(*at))?;
                let (there, here) = (rows.get(at), our_rows.get(at));
                if let Some((column, there, here)) = long_texts(columns, there, here) {
                    return Some(format!("row {at}, {column}: `{there}` there, `{here}` here"));
                }
                let show =
                    |row: Option<&Vec<_>>| row.map_or("none".to_owned(), |row| describe_row(columns, row));
                Some(format!("row {at}: {} there, {} here", show(there), show(here)))
            })
        }
        (Outcome::Prepared(prepared), Outcome::Prepared(our_prepared)) => statements(prepared, our_prepared),
        (there, here) => (there != here).then(|| "kinds of answers".to_owned()),
    }
}

/// The first line that differs where both rows differ in a text of several: those of DESCRIBE.
fn long_texts<'a>(
    columns: &'a [ColumnSpec],
    theirs: Option<&'a Vec<CellBytes>>,
    ours: Option<&'a Vec<CellBytes>>,
) -> Option<(&'a str, &'a str, &'a str)> {
    let at = theirs?.iter().zip(ours?).position(|(there, here)| there != here)?;
    let text = |row: &'a Vec<CellBytes>| std::str::from_utf8(row[at].as_deref()?).ok();
    let (theirs, ours) = (text(theirs?)?, text(ours?)?);
    let mut lines = theirs.lines().zip(ours.lines());
    let (there, here) = lines.find(|(there, here)| there != here).unwrap_or(("(longer)", "(shorter)"));
    theirs.contains('\n').then_some((&*columns.get(at)?.name, there, here))
}

fn statements(theirs: &PreparedStatement, ours: &PreparedStatement) -> Option<String> {
    specs("markers", &theirs.variables, &ours.variables)
        .or_else(|| specs("columns", &theirs.columns, &ours.columns))
        .or_else(|| {
            let same = theirs.partition_key == ours.partition_key;
            (!same).then(|| {
                format!("markers of the key: {:?} there, {:?} here", theirs.partition_key, ours.partition_key)
            })
        })
        .or_else(|| (theirs.id != ours.id).then(|| "ids of the statement".to_owned()))
        .or_else(|| {
            // The ids of calls depend on the types that Cassandra has for them inside: the entry `ids-of-calls`.
            // Generated statements call them `x0`, `x1` and so on.
            let is_alias = |name: &str| name.strip_prefix('x').is_some_and(|rest| rest.parse::<u8>().is_ok());
            let calls =
                theirs.columns.iter().any(|column| column.name.contains('(') || is_alias(&column.name));
            let same = calls || theirs.metadata_id == ours.metadata_id;
            (!same).then(|| "ids of the columns".to_owned())
        })
}

fn specs(what: &str, theirs: &[ColumnSpec], ours: &[ColumnSpec]) -> Option<String> {
    let same = theirs.len() == ours.len()
        && theirs.iter().zip(ours).all(|(there, here)| {
            there == here
                || accepted::column_name(&there.name) == accepted::column_name(&here.name)
                    && (&there.keyspace, &there.table, &there.ty) == (&here.keyspace, &here.table, &here.ty)
        });
    (!same).then(|| format!("{what}: {} there, {} here", describe_columns(theirs), describe_columns(ours)))
}

/// `line 1:7`, with which the message of a syntax error begins; some have none.
fn position(message: &str) -> &str {
    let Some(rest) = message.strip_prefix("line ") else { return "" };
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(rest.len());
    &message[..message.len() - rest.len() + digits]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_a_syntax_error_is_what_stands_before_its_words() {
        assert_eq!(position("line 1:7 no viable alternative at input 'x'"), "line 1:7");
        assert_eq!(position("Failed parsing statement"), "");
    }
}
