//! A WHERE clause as text with its bound values, for EXPLAIN.
//!
//! The text of a restriction depends on its effect: it selects partitions, bounds rows, or is tested row by row. The
//! decisions are those of `partition`, `clustering` and `row_filter`.

use super::restriction::{Candidates, End, Operand, Restriction, Test, Value};
use super::statement::{Restrictions, is_filtered};
use crate::analysis::{Bindings, Bound, Term};
use crate::error::Result;
use crate::shown_value::shown_literal;
use helenus_model::schema::Column;
use helenus_model::types::{CqlType, quote_identifier};

/// Maximum number of values of an IN, and of conditions of each kind on a collection, that are printed.
const VALUES_SHOWN_MAX: usize = 8;
/// The bytes of a text after which no restriction is appended: a step of EXPLAIN shows fewer characters.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// The parts of a WHERE clause as CQL text; each is empty if there is nothing to print. A part with long values or many
/// restrictions is cut.
pub(crate) struct WhereText {
    /// The restrictions that select partitions.
    pub(crate) partitions: String,
    /// The restrictions that bound rows.
    pub(crate) rows: String,
    /// The restrictions that are tested on rows after reading.
    pub(crate) filters: String,
}

impl Restrictions {
    /// The clause's text with these bound values.
    ///
    /// # Errors
    /// Null or unset values, as in an execution.
    pub(crate) fn where_text(&self, bindings: &Bindings<'_>) -> Result<WhereText> {
        let mut found = WhereText { partitions: String::new(), rows: String::new(), filters: String::new() };
        if let Some(test) = &self.token {
            append(&mut found.partitions, bindings, || self.token_text(test, bindings))?;
        }
        for restriction in self.partition.iter() {
            let of = if self.filters_partition_key() { &mut found.filters } else { &mut found.partitions };
            append(of, bindings, || text(restriction, bindings))?;
        }
        let mut position = 0;
        for restriction in self.clustering.iter() {
            let of =
                if is_filtered(restriction, &mut position) { &mut found.filters } else { &mut found.rows };
            append(of, bindings, || text(restriction, bindings))?;
        }
        for restriction in self.other.iter() {
            append(&mut found.filters, bindings, || text(restriction, bindings))?;
        }
        Ok(found)
    }

    fn token_text(&self, test: &Test, bindings: &Bindings<'_>) -> Result<String> {
        let names: Vec<_> =
            self.table.partition_key.iter().map(|column| quote_identifier(&column.name)).collect();
        let name = format!("token({})", names.join(", "));
        let value = |operand: &Operand| -> Result<String> {
            let values = operand.bind(bindings, ("Invalid", &self.table.partition_key[0]))?;
            Ok(shown_literal(&CqlType::BigInt, values.first().and_then(|value| value.as_deref())))
        };
        Ok(match test {
            Test::Equal(operand) => format!("{name} = {}", value(operand)?),
            Test::Slice(start, end) => {
                let mut parts = Vec::new();
                for (end, sign) in [(start, '>'), (end, '<')] {
                    if let Some(end) = end {
                        parts.push(format!("{name} {} {}", comparison(sign, end), value(&end.operand)?));
                    }
                }
                parts.join(" AND ")
            }
            Test::In(_) | Test::Contains { .. } => name,
        })
    }
}

/// Appends a restriction, unless the text is long already: it is then neither bound nor written.
fn append(text: &mut String, bindings: &Bindings<'_>, one: impl FnOnce() -> Result<String>) -> Result<()> {
    bindings.calls.work.step()?;
    if text.len() < TEXT_BYTES_MAX {
        let one = one()?;
        if !text.is_empty() {
            text.push_str(" AND ");
        }
        text.push_str(&one);
    }
    Ok(())
}

fn text(restriction: &Restriction, bindings: &Bindings<'_>) -> Result<String> {
    let columns = &restriction.columns;
    let (column, multi) = (restriction.first(), restriction.multi);
    let bind = |operand: &Operand| -> Result<(String, String)> {
        let values = operand.bind(bindings, ("Invalid", column))?;
        Ok((names(columns, values.len(), multi), literals(columns, &values, multi)))
    };
    Ok(match &restriction.test {
        Test::Equal(operand) => {
            let (names, values) = bind(operand)?;
            format!("{names} = {values}")
        }
        Test::In(candidates) => {
            let values = in_values(candidates, restriction, bindings)?;
            format!("{} IN ({values})", names(columns, columns.len(), multi))
        }
        Test::Slice(start, end) => {
            let mut parts = Vec::new();
            for (end, sign) in [(start, '>'), (end, '<')] {
                if let Some(end) = end {
                    let (names, values) = bind(&end.operand)?;
                    parts.push(format!("{names} {} {values}", comparison(sign, end)));
                }
            }
            parts.join(" AND ")
        }
        Test::Contains { values, keys, entries } => contains(column, (values, keys, entries), bindings)?,
    })
}

fn in_values(candidates: &Candidates, restriction: &Restriction, bindings: &Bindings<'_>) -> Result<String> {
    let values = candidates.bind(bindings, ("Invalid", restriction.first()))?;
    let shown = values.iter().take(VALUES_SHOWN_MAX);
    let mut parts: Vec<String> =
        shown.map(|values| literals(&restriction.columns, values, restriction.multi)).collect();
    if values.len() > VALUES_SHOWN_MAX {
        parts.push(format!("and {} more", values.len() - VALUES_SHOWN_MAX));
    }
    Ok(parts.join(", "))
}

fn contains(
    column: &Column,
    (values, keys, entries): (&[Term], &[Term], &[(Term, Term)]),
    bindings: &Bindings<'_>,
) -> Result<String> {
    let name = quote_identifier(&column.name);
    let literal = |term: &Term, ty: &CqlType| -> Result<String> {
        Ok(match term.bind(bindings)? {
            Bound::Bytes(bytes) => shown_literal(ty, Some(&bytes)),
            Bound::Null | Bound::Unset => "null".to_owned(),
        })
    };
    let (key, value) = match &column.ty {
        CqlType::Map { key, value, .. } => (&**key, &**value),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => (&**element, &**element),
        other => (other, other),
    };
    let mut parts = Vec::new();
    for term in values.iter().take(VALUES_SHOWN_MAX) {
        parts.push(format!("{name} CONTAINS {}", literal(term, value)?));
    }
    for term in keys.iter().take(VALUES_SHOWN_MAX) {
        parts.push(format!("{name} CONTAINS KEY {}", literal(term, key)?));
    }
    for (of, is) in entries.iter().take(VALUES_SHOWN_MAX) {
        parts.push(format!("{name}[{}] = {}", literal(of, key)?, literal(is, value)?));
    }
    let more = values.len() + keys.len() + entries.len() - parts.len();
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    Ok(parts.join(" AND "))
}

fn comparison(sign: char, end: &End) -> String {
    if end.inclusive { format!("{sign}=") } else { sign.to_string() }
}

fn names(columns: &[Column], count: usize, multi: bool) -> String {
    let names: Vec<_> = columns.iter().take(count).map(|column| quote_identifier(&column.name)).collect();
    if multi { format!("({})", names.join(", ")) } else { names.join(", ") }
}

fn literals(columns: &[Column], values: &[Value<'_>], multi: bool) -> String {
    let mut text = String::new();
    for (index, (column, value)) in columns.iter().zip(values).enumerate() {
        text.push_str(if index > 0 { ", " } else { "" });
        if text.len() >= TEXT_BYTES_MAX {
            text.push_str("...");
            break;
        }
        text.push_str(&shown_literal(&column.ty, value.as_deref()));
    }
    if multi { format!("({text})") } else { text }
}
