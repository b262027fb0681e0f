//! INSERT JSON: values of columns as JSON writes them.

use super::Draw;
use super::kind::Kind;
use super::schema::{GeneratedColumn, GeneratedTable};
use super::terms::Written;

/// INSERT of a document with these columns.
pub fn insert_json(draw: &mut Draw, table: &GeneratedTable, columns: &[&GeneratedColumn], out: &mut Written) {
    let mut members = Vec::new();
    for column in columns {
        let name = column.name.trim_matches('"');
        // As CQL: a name with capitals is written in quotes within the quotes.
        let name = if name == column.name { name.to_owned() } else { format!("\\\"{name}\\\"") };
        let value = if draw.chance(6) { "null".to_owned() } else { json(draw, &column.kind) };
        members.push(format!("\"{name}\": {value}"));
    }
    let document = format!("{{{}}}", members.join(", ")).replace('\'', "''");
    let rest = draw.word(&["", "", " DEFAULT NULL", " DEFAULT UNSET"]);
    out.put(&format!("INSERT INTO {} JSON '{document}'{rest}", table.name));
}

fn json(draw: &mut Draw, kind: &Kind) -> String {
    let some = |draw: &mut Draw, of: &dyn Fn(&mut Draw) -> String| {
        (0..draw.below(3)).map(|_| of(draw)).collect::<Vec<_>>().join(", ")
    };
    match kind {
        Kind::Simple(name) | Kind::Class(_, name) => simple(name, &kind.literal(draw), draw.chance(10)),
        Kind::List(element, _) | Kind::Set(element, _) => {
            format!("[{}]", some(draw, &|draw| json(draw, element)))
        }
        Kind::Vector(element, dimension) => {
            let elements: Vec<String> = (0..*dimension).map(|_| json(draw, element)).collect();
            format!("[{}]", elements.join(", "))
        }
        Kind::Tuple(fields) => {
            let fields: Vec<String> = fields.iter().map(|field| json(draw, field)).collect();
            format!("[{}]", fields.join(", "))
        }
        Kind::Map(key, value, _) => {
            // One entry at most: of keys written twice nobody knows which counts.
            if draw.chance(30) {
                return "{}".to_owned();
            }
            let key = json(draw, key);
            let key = if key.starts_with('"') { key } else { format!("\"{}\"", key.replace('"', "\\\"")) };
            format!("{{{key}: {}}}", json(draw, value))
        }
        Kind::Udt(_, fields, _) => {
            let taken = draw.some(fields, 70);
            let members: Vec<String> =
                taken.iter().map(|(name, kind)| format!("\"{name}\": {}", json(draw, kind))).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

/// A literal of CQL as a value of JSON; `quoted`: also where JSON needs no quotes.
fn simple(name: &str, literal: &str, quoted: bool) -> String {
    let text = literal.trim_matches('\'').replace("''", "'");
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite) && !literal.starts_with('\'');
    let bare = matches!(name, "boolean") || is_number && name != "date" && name != "duration";
    if bare && !quoted { text } else { format!("\"{text}\"") }
}
