//! What stands behind IF.

use super::Draw;
use super::kind::Kind;
use super::schema::GeneratedTable;
use super::terms::{Written, in_list};

/// ` IF EXISTS` or ` IF ..` with a condition or two on columns of values.
pub fn condition(draw: &mut Draw, table: &GeneratedTable, out: &mut Written) {
    let values = table.values();
    if values.is_empty() || draw.chance(25) {
        return out.put(" IF EXISTS");
    }
    let mut word = " IF ";
    while word == " IF " || draw.chance(25) {
        out.put(word);
        word = " AND ";
        let column = *draw.one(&values);
        let name = &column.name;
        match &column.kind {
            _ if draw.chance(12) => in_list(draw, column, out),
            Kind::Map(key, value, _) if draw.chance(50) => {
                out.put(&format!("{name}["));
                out.value(draw, key, 2);
                out.put("] ");
                compared(draw, value, out);
            }
            Kind::List(element, _) if draw.chance(50) => {
                out.put(&format!("{name}[{}] ", draw.below(3)));
                compared(draw, element, out);
            }
            Kind::Udt(_, fields, _) if draw.chance(50) => {
                let (field, kind) = draw.one(fields);
                out.put(&format!("{name}.{field} "));
                compared(draw, kind, out);
            }
            Kind::List(element, _) | Kind::Set(element, _) if draw.chance(15) => {
                out.put(&format!("{name} CONTAINS "));
                out.value(draw, element, 2);
            }
            kind => {
                out.put(&format!("{name} "));
                compared(draw, kind, out);
            }
        }
    }
}

fn compared(draw: &mut Draw, kind: &Kind, out: &mut Written) {
    out.put(draw.word(&["= ", "= ", "= ", "!= ", "< ", ">= ", "> "]));
    out.value(draw, kind, 25);
}
