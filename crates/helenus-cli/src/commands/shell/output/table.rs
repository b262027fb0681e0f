//! Aligned tables in cqlsh's layout: names to the left, values to the right.

use super::super::value::Painted;

/// The width of a table with these columns and rows.
pub fn table_width(names: &[Painted], rows: &[Vec<Painted>]) -> usize {
    let widest = |at: usize, name: &Painted| {
        rows.iter().filter_map(|row| row.get(at)).map(|value| value.width).fold(name.width, usize::max)
    };
    names.iter().enumerate().map(|(at, name)| widest(at, name) + 3).sum::<usize>().saturating_sub(1)
}

/// A table of rows below the column names. Without `header`, the names only count for the column widths.
pub fn table(names: &[Painted], rows: &[Vec<Painted>], header: bool) -> String {
    let mut widths: Vec<usize> = names.iter().map(|name| name.width).collect();
    for row in rows {
        for (width, value) in widths.iter_mut().zip(row) {
            *width = (*width).max(value.width);
        }
    }
    let mut out = String::new();
    if header {
        let mut line = String::from(" ");
        for (at, (name, width)) in names.iter().zip(&widths).enumerate() {
            if at > 0 {
                line.push_str(" | ");
            }
            name.left(*width, &mut line);
        }
        out.push_str(line.trim_end());
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        out.push_str(&format!("\n-{}-\n", rule.join("-+-")));
    }
    for row in rows {
        out.push(' ');
        for (at, (value, width)) in row.iter().zip(&widths).enumerate() {
            if at > 0 {
                out.push_str(" | ");
            }
            value.right(*width, &mut out);
        }
        out.push('\n');
    }
    out
}

/// A block for each row, a line for each column. `before` is the number of rows shown already; rules are no longer than
/// a line of the terminal.
pub fn expanded(
    names: &[Painted],
    rows: &[Vec<Painted>],
    (before, columns_max): (usize, Option<usize>),
) -> String {
    let name_width = names.iter().map(|name| name.width).max().unwrap_or(0);
    let value_width = rows.iter().flatten().map(|value| value.width).max().unwrap_or(0);
    let value_width = match columns_max {
        Some(most) => value_width.min(most.saturating_sub(name_width + 5)),
        None => value_width,
    };
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        let rule = format!("-{}-+-{}-", "-".repeat(name_width), "-".repeat(value_width));
        out.push_str(&format!("@ Row {}\n{rule}\n", before + at + 1));
        for (name, value) in names.iter().zip(row) {
            out.push(' ');
            name.left(name_width, &mut out);
            out.push_str(" | ");
            out.push_str(&value.text);
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

/// Names in columns that fill a line of `width`, ordered downwards first (Python's `cmd.columnize`).
pub fn columnize(names: &[String], width: usize) -> String {
    if names.is_empty() {
        return "<empty>\n".to_owned();
    }
    let width_of = |name: &String| name.chars().count();
    for rows in 1..=names.len() {
        let columns: Vec<&[String]> = names.chunks(rows).collect();
        let widths: Vec<usize> =
            columns.iter().map(|column| column.iter().map(width_of).max().unwrap_or(0)).collect();
        let total: usize = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
        if total > width && rows < names.len() {
            continue;
        }
        let mut out = String::new();
        for row in 0..rows {
            let mut line = String::new();
            for (at, (column, width)) in columns.iter().zip(&widths).enumerate() {
                let Some(name) = column.get(row) else { continue };
                if at > 0 {
                    line.push_str("  ");
                }
                line.push_str(&format!("{name:<width$}"));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        return out;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(text: &str) -> Painted {
        Painted { text: text.to_owned(), width: text.chars().count() }
    }

    #[test]
    fn values_stand_right_under_their_names() {
        let names = [painted("k"), painted("value")];
        let rows = [vec![painted("100"), painted("a")]];
        assert_eq!(table_width(&names, &rows), "-----+-------".len());
        assert_eq!(table(&names, &rows, true), " k   | value\n-----+-------\n 100 |     a\n");
        assert_eq!(
            expanded(&names, &rows, (4, None)),
            "@ Row 5\n-------+-----\n k     | 100\n value | a\n\n"
        );
    }

    #[test]
    fn names_go_down_first() {
        let names: Vec<String> = ["a", "bb", "c", "d"].map(str::to_owned).into();
        assert_eq!(columnize(&names, 80), "a  bb  c  d\n");
        assert_eq!(columnize(&names, 7), "a   c\nbb  d\n");
    }
}
