//! A WHERE clause as text with its bound values, for EXPLAIN.
//!
//! The text of a restriction depends on its effect: it selects partitions, bounds rows, or is tested row by row. The
//! decisions are those of `partition`, `clustering` and `row_filter`.

use super::restriction::{Candidates, End, Operand, Restriction, Test, Value};
use super::statement::{Restrictions, is_filtered};
use crate::analysis::{Bindings, Bound, Term};
use crate::error::Result;
use helenus_model::schema::Column;
use helenus_model::types::{CqlType, quote_identifier, to_cql_literal};

/// Maximum number of values of an IN that are printed.
const VALUES_SHOWN_MAX: usize = 8;

/// The parts of a WHERE clause as CQL text; each is empty if there is nothing to print.
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
        let (mut partitions, mut rows, mut filters) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(test) = &self.token {
            partitions.push(self.token_text(test, bindings)?);
        }
        for restriction in self.partition.iter() {
            let of = if self.filters_partition_key() { &mut filters } else { &mut partitions };
            of.push(text(restriction, bindings)?);
        }
        let mut position = 0;
        for restriction in self.clustering.iter() {
            let of = if is_filtered(restriction, &mut position) { &mut filters } else { &mut rows };
            of.push(text(restriction, bindings)?);
        }
        for restriction in self.other.iter() {
            filters.push(text(restriction, bindings)?);
        }
        let joined = |parts: Vec<String>| parts.join(" AND ");
        Ok(WhereText { partitions: joined(partitions), rows: joined(rows), filters: joined(filters) })
    }

    fn token_text(&self, test: &Test, bindings: &Bindings<'_>) -> Result<String> {
        let names: Vec<_> =
            self.table.partition_key.iter().map(|column| quote_identifier(&column.name)).collect();
        let name = format!("token({})", names.join(", "));
        let value = |operand: &Operand| -> Result<String> {
            let values = operand.bind(bindings, ("Invalid", &self.table.partition_key[0]))?;
            Ok(to_cql_literal(&CqlType::BigInt, values.first().and_then(|value| value.as_deref())))
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
            Bound::Bytes(bytes) => to_cql_literal(ty, Some(&bytes)),
            Bound::Null | Bound::Unset => "null".to_owned(),
        })
    };
    let (key, value) = match &column.ty {
        CqlType::Map { key, value, .. } => (&**key, &**value),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => (&**element, &**element),
        other => (other, other),
    };
    let mut parts = Vec::new();
    for term in values {
        parts.push(format!("{name} CONTAINS {}", literal(term, value)?));
    }
    for term in keys {
        parts.push(format!("{name} CONTAINS KEY {}", literal(term, key)?));
    }
    for (of, is) in entries {
        parts.push(format!("{name}[{}] = {}", literal(of, key)?, literal(is, value)?));
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
    let literal = |(column, value): (&Column, &Value<'_>)| to_cql_literal(&column.ty, value.as_deref());
    let literals: Vec<String> = columns.iter().zip(values).map(literal).collect();
    if multi { format!("({})", literals.join(", ")) } else { literals.join(", ") }
}
