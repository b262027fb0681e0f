//! Draws the answer to EXPLAIN as a tree: the plan, the data sources below it, and, after a run, a bar for the time of
//! each stage.

use super::value::{BLUE, CYAN, GREEN, RESET, YELLOW};
use anyhow::Result;
use helenus_wire::native::{ColumnSpec, Rows};
use unicode_width::UnicodeWidthStr;

/// Width of a bar in cells; it represents the statement's total time.
const BAR: usize = 24;
const GREY: &str = "\x1b[0;90m";

/// A row of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    operation: String,
    target: String,
    detail: String,
    count: Option<i64>,
    time_us: Option<i64>,
}

impl Step {
    /// Whether the row is a measured stage rather than a step of the plan.
    fn is_stage(&self) -> bool {
        matches!(
            (self.operation.as_str(), self.target.as_str()),
            (
                "plan"
                    | "sources"
                    | "disk"
                    | "decompress"
                    | "merge"
                    | "answer"
                    | "total"
                    | "cache"
                    | "acknowledge",
                _
            ) | ("index", "entries" | "key cache" | "blocks" | "nodes" | "pages")
                | ("filter", "dropped")
                | ("write", "partitions" | "bytes")
        )
    }

    fn is_source(&self) -> bool {
        matches!(self.operation.as_str(), "memtable" | "sstable" | "skip" | "log")
            || self.operation == "index"
    }
}

/// Whether a result is the answer to an EXPLAIN.
pub fn is_explanation(statement: &str, columns: &[ColumnSpec]) -> bool {
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    super::statement::first_word(statement).eq_ignore_ascii_case("explain")
        && names.starts_with(&["step", "operation", "target", "detail"])
}

/// The drawn tree.
///
/// # Errors
/// Rows that cannot be decoded.
pub fn drawn(rows: &Rows<'_>, in_colour: bool) -> Result<String> {
    let mut steps = Vec::new();
    for row in rows.iter() {
        let cells: Vec<Option<&[u8]>> = row?.cells().collect();
        let text = |at: usize| {
            String::from_utf8_lossy(cells.get(at).copied().flatten().unwrap_or_default()).into_owned()
        };
        let number = |at: usize| {
            let bytes = cells.get(at).copied().flatten()?;
            Some(bytes.iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte)))
        };
        let (operation, target, detail) = (text(1), text(2), text(3));
        steps.push(Step { operation, target, detail, count: number(4), time_us: number(5) });
    }
    Ok(tree(&steps, in_colour))
}

/// A line of the tree: branches, a coloured label, and the text to its right.
struct Line {
    branch: String,
    label: String,
    colour: &'static str,
    right: String,
}

fn tree(steps: &[Step], in_colour: bool) -> String {
    let paint = |colour: &str, text: &str| match in_colour && !text.is_empty() {
        true => format!("{colour}{text}{RESET}"),
        false => text.to_owned(),
    };
    let (stages, planned): (Vec<&Step>, Vec<&Step>) = steps.iter().partition(|step| step.is_stage());
    let Some((root, children)) = planned.split_first() else { return String::new() };
    let (sources, others): (Vec<&Step>, Vec<&Step>) =
        children.iter().copied().partition(|step| step.is_source());
    let mut lines = vec![line("", root)];
    let has_stages = !stages.is_empty();
    for (at, step) in others.iter().enumerate() {
        let is_last = at + 1 == others.len() && sources.is_empty() && !has_stages;
        lines.push(line(if is_last { "└─ " } else { "├─ " }, step));
    }
    if !sources.is_empty() {
        let (branch, below) = if has_stages { ("├─ ", "│  ") } else { ("└─ ", "   ") };
        lines.push(Line {
            branch: branch.into(),
            label: "sources".into(),
            colour: CYAN,
            right: String::new(),
        });
        for (at, step) in sources.iter().enumerate() {
            let end = if at + 1 == sources.len() { "└─ " } else { "├─ " };
            lines.push(line(&format!("{below}{end}"), step));
        }
    }
    let mut out = String::from("\n");
    let width_of = |line: &Line| line.branch.width() + line.label.width();
    let width = lines.iter().map(width_of).max().unwrap_or(0).min(60);
    for line in &lines {
        let pad = " ".repeat(width.saturating_sub(width_of(line)));
        let text = format!(
            " {}{}{pad}  {}",
            paint(GREY, &line.branch),
            paint(line.colour, &line.label),
            paint(GREY, &line.right)
        );
        out.push_str(text.trim_end());
        out.push('\n');
    }
    if has_stages {
        out.push_str(&measured(&stages, &paint));
    }
    out.push('\n');
    out
}

fn line(branch: &str, step: &Step) -> Line {
    let colour = match step.operation.as_str() {
        "advice" => YELLOW,
        "skip" => GREY,
        _ => CYAN,
    };
    let times =
        step.count.filter(|count| *count > 1).map(|count| format!(" (x {count})")).unwrap_or_default();
    Line {
        branch: branch.to_owned(),
        label: format!("{} {}{times}", step.operation, step.target),
        colour,
        right: step.detail.clone(),
    }
}

/// The stages: each bar begins where the previous one ends and is as long as the stage's share of the total.
fn measured(stages: &[&Step], paint: &dyn Fn(&str, &str) -> String) -> String {
    let total = stages.iter().find(|step| step.operation == "total").and_then(|step| step.time_us);
    let sum: i64 =
        stages.iter().filter(|step| step.operation != "total").filter_map(|step| step.time_us).sum();
    // Clock readings are part of the total but of no stage.
    let whole = total.unwrap_or(sum).max(sum).max(1);
    let label = |step: &Step| format!("{} {}", step.operation, step.target);
    let width = stages.iter().map(|step| label(step).width()).max().unwrap_or(0);
    let mut out = String::new();
    let mut passed = 0;
    for (at, step) in stages.iter().enumerate() {
        let branch = if at + 1 == stages.len() { "└─ " } else { "├─ " };
        let is_total = step.operation == "total";
        let (bar, time) = match step.time_us {
            Some(time) => {
                let (from, long) = if is_total { (0, time) } else { (passed, time) };
                passed += if is_total { 0 } else { time };
                (bar(from, long, whole), format!("{time:>9} us {:>3} %", time * 100 / whole))
            }
            None => (String::new(), " ".repeat(18)),
        };
        let pad = " ".repeat(BAR.saturating_sub(bar.width()));
        let count = step.count.map_or_else(String::new, |count| count.to_string());
        let text = format!(
            " {}{}{}  {}{pad} {time} {count:>9}  {}",
            paint(GREY, branch),
            paint(CYAN, &label(step)),
            " ".repeat(width - label(step).width()),
            paint(if is_total { GREEN } else { BLUE }, &bar),
            paint(GREY, &step.detail)
        );
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// Blanks up to `from`, then a bar with a resolution of an eighth of a cell.
fn bar(from: i64, long: i64, whole: i64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let cells = |us: i64| {
        usize::try_from(us.max(0)).unwrap_or(0) * BAR * 8 / usize::try_from(whole).unwrap_or(1).max(1)
    };
    let (start, length) = (cells(from) / 8, cells(long));
    let mut bar = " ".repeat(start.min(BAR));
    bar.push_str(&"█".repeat(length / 8));
    bar.push_str(EIGHTHS.get(length % 8).copied().unwrap_or_default());
    if length == 0 && long > 0 {
        bar.push('▏');
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(operation: &str, target: &str, count: Option<i64>, time_us: Option<i64>) -> Step {
        let detail = "about it".to_owned();
        Step { operation: operation.to_owned(), target: target.to_owned(), detail, count, time_us }
    }

    #[test]
    fn the_plan_is_a_tree_and_the_stages_have_bars() {
        let steps = [
            step("read", "slice", None, None),
            step("partition", "user = 'foo'", None, None),
            step("memtable", "memory", Some(1), None),
            step("sstable", "3h5p", Some(2), None),
            step("plan", "statement", None, Some(25)),
            step("index", "blocks", Some(2), None),
            step("merge", "rows", Some(21), None),
            step("total", "statement", Some(1), Some(100)),
        ];
        let expected = "
 read slice                 about it
 ├─ partition user = 'foo'  about it
 ├─ sources
 │  ├─ memtable memory      about it
 │  └─ sstable 3h5p (x 2)   about it
 ├─ plan statement   ██████                          25 us  25 %            about it
 ├─ index blocks                                                         2  about it
 ├─ merge rows                                                          21  about it
 └─ total statement  ████████████████████████       100 us 100 %         1  about it

";
        assert_eq!(tree(&steps, false), expected);
        assert!(tree(&steps, true).contains(BLUE));
        assert_eq!(tree(&[], true), "");
    }
}
