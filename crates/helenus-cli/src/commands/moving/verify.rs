//! `helenus move verify`: waits for the server's comparison of both sides, with a progress bar, and prints what it has found.

use super::command::ask_mover;
use crate::commands::progress::Progress;
use anyhow::{Result, bail};
use helenus_cql::counted;
use helenus_mover::{MoveAnswer, MoveRequest, VerifiedTable, VerifyReport};
use std::path::Path;
use std::time::Duration;

/// The pause between two questions.
const LOOK: Duration = Duration::from_millis(200);

/// Waits until the comparison has ended.
///
/// # Errors
/// The server does not answer any more.
pub(super) fn watch(socket: &Path, mut report: VerifyReport) -> Result<VerifyReport> {
    let ranges = |report: &VerifyReport, of: fn(&VerifiedTable) -> usize| -> u64 {
        report.tables.iter().map(|table| of(table) as u64).sum()
    };
    let mut progress = Progress::of_items("comparing", ranges(&report, |table| table.ranges), "ranges");
    while report.is_running {
        std::thread::sleep(LOOK);
        let MoveAnswer::Verified(next) = ask_mover(socket, &MoveRequest::VerifyStatus)? else {
            bail!("the server gave another answer");
        };
        let differing: u64 = next.tables.iter().map(|table| table.differing).sum();
        let rows: u64 = next.tables.iter().map(|table| table.rows).sum();
        progress.name(format!("comparing  {}, differing: {differing}", counted(rows, "row")));
        progress.at(ranges(&next, |table| table.ranges_done));
        report = next;
    }
    Ok(report)
}

/// The report for people.
pub(super) fn words(report: &VerifyReport) -> String {
    let mut text = String::new();
    report.definitions.iter().chain(&report.notes).for_each(|line| text.push_str(&format!("{line}\n")));
    for table in &report.tables {
        let VerifiedTable { table: name, rows, cells, differing, unsettled, .. } = table;
        text.push_str(&format!(
            "{name}: {} and {} compared, {} differing\n",
            counted(*rows, "row"),
            counted(*cells, "cell"),
            counted(*differing, "row")
        ));
        let mut list = |lines: &[String], total: u64| {
            lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
            if let Some(more) = total.checked_sub(lines.len() as u64).filter(|more| *more > 0) {
                text.push_str(&format!("  and {}\n", counted(more, "more row")));
            }
        };
        list(&table.differences, *differing);
        if report.repairs && *differing > 0 {
            text.push_str(&format!(
                "  sent again and the same now: {}, still differing: {}\n",
                table.repaired, table.not_repaired
            ));
            let mut left = table.left.iter().map(|line| format!("still: {line}")).collect::<Vec<_>>();
            if table.not_repaired > 0 {
                left.push("the target has newer cells there, or cells that nothing here deletes".to_owned());
            }
            left.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        }
        if *unsettled > 0 {
            text.push_str(&format!(
                "  {} changed again and again, and not compared; verify once more\n",
                counted(*unsettled, "row")
            ));
        }
        if let Some(reason) = &table.no_way_back {
            text.push_str(&format!("  no rollback could bring it back after a cut: {reason}\n"));
        }
        for line in table.note.iter().chain(&table.error) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

/// An error if anything differs, or was not compared.
///
/// # Errors
/// What the command ends with.
pub(super) fn judge(report: &VerifyReport) -> Result<()> {
    if let Some(reason) = &report.reason {
        bail!("the comparison has not come to its end: {reason}");
    }
    let broken = report.tables.iter().filter(|table| table.error.is_some()).count();
    if broken > 0 {
        bail!("{} could not be compared to the end", counted(broken, "table"));
    }
    let count = |of: fn(&VerifiedTable) -> u64| -> u64 { report.tables.iter().map(of).sum() };
    match (report.repairs, count(|table| table.differing), count(|table| table.not_repaired)) {
        (true, _, left) if left > 0 => bail!("{} not repaired: different still", counted(left, "row")),
        (false, differing, _) if differing > 0 => {
            bail!(
                "{} differing; helenus move verify --repair sends what differs again",
                counted(differing, "row")
            )
        }
        _ => {}
    }
    if let unsettled @ 1.. = count(|table| table.unsettled) {
        bail!("{} could not be compared", counted(unsettled, "row"));
    }
    match (report.definitions.len(), report.tables.iter().filter(|table| table.no_way_back.is_some()).count())
    {
        (0, 0) => Ok(()),
        (0, tables) => bail!("{} could not be brought back after a cut", counted(tables, "table")),
        (differences, _) => bail!("{} of definitions", counted(differences, "difference")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_lists_differences_and_ends_with_an_error_unless_all_are_repaired() {
        let table = VerifiedTable {
            table: "ks.t".to_owned(),
            rows: 10,
            cells: 30,
            differing: 3,
            differences: vec!["p = 1: only the target has the row".to_owned()],
            ..VerifiedTable::default()
        };
        let mut report = VerifyReport { tables: vec![table], ..VerifyReport::default() };
        let text = words(&report);
        assert!(text.contains("10 rows and 30 cells compared, 3 rows differing"), "{text}");
        assert!(text.contains("  p = 1: only") && text.contains("and 2 more rows"), "{text}");
        assert!(judge(&report).unwrap_err().to_string().contains("--repair"));
        report.repairs = true;
        report.tables[0].repaired = 3;
        judge(&report).unwrap();
        report.tables[0].not_repaired = 1;
        assert!(words(&report).contains("newer cells there"));
        judge(&report).unwrap_err();
        report.tables[0] = VerifiedTable { unsettled: 1, ..VerifiedTable::default() };
        judge(&report).unwrap_err();
        report.tables[0] = VerifiedTable::default();
        judge(&report).unwrap();
        report.definitions = vec!["ks.t: comment is 'a' here and 'b' at the target".to_owned()];
        assert!(words(&report).starts_with("ks.t: comment is"));
        judge(&report).unwrap_err();
        report.notes = std::mem::take(&mut report.definitions);
        assert!(words(&report).starts_with("ks.t: comment is"));
        judge(&report).unwrap();
    }
}
