//! Secondary indexes of a generated table.

use super::Draw;
use super::kind::Kind;
use super::schema::{GeneratedColumn, GeneratedTable};

/// CREATE INDEX statements for some columns; some that both servers refuse.
pub fn indexes(draw: &mut Draw, table: &GeneratedTable) -> Vec<String> {
    let values = table.values();
    let mut texts = Vec::new();
    for number in 0..draw.between(1, 3) {
        let all = table.all();
        let column = if values.is_empty() || draw.chance(25) { *draw.one(&all) } else { *draw.one(&values) };
        // A table may be named with its keyspace, an index never.
        let plain = table.name.rsplit_once('.').map_or(&*table.name, |(_, name)| name);
        let name = format!("{plain}_i{number}");
        let target = target(draw, column);
        let sai = draw.chance(40);
        let using = if sai { " USING 'sai'" } else { "" };
        let mut text = format!("CREATE INDEX {name} ON {} ({target}){using}", table.name);
        if sai && draw.chance(20) {
            let option = draw.word(&["case_sensitive", "normalize", "ascii"]);
            text = format!("{text} WITH OPTIONS = {{'{option}': '{}'}}", draw.word(&["true", "false"]));
        }
        texts.push(text);
    }
    texts
}

fn target(draw: &mut Draw, column: &GeneratedColumn) -> String {
    let name = &column.name;
    match &column.kind {
        Kind::Map(_, _, false) => format!("{}({name})", draw.word(&["keys", "values", "entries"])),
        Kind::List(_, true) | Kind::Set(_, true) | Kind::Map(_, _, true) if draw.chance(80) => {
            format!("full({name})")
        }
        _ => name.clone(),
    }
}
