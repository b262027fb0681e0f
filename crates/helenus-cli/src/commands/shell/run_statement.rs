//! Runs a CQL statement on the server, page by page, and shows its rows, warnings, time and trace.

use super::agreement::{MISMATCH, agree};
use super::catalog::Role;
use super::describe::{described, is_description};
use super::explain;
use super::interpreter::Shell;
use super::output::{
    Format, More, csv_header, csv_row, expanded, json_row, table, table_width, terminal_columns,
    wait_for_more,
};
use super::session::{Asked, Reply, notes};
use super::statement::first_word;
use super::value::{CYAN, MAGENTA, Painted, RED, Style, ValueRules, WHITE, show, show_name};
use anyhow::{Result, bail};
use helenus_wire::native::{ColumnSpec, Response, ResultMessage, Row};
use std::time::{Duration, Instant};

impl Shell {
    /// Runs a statement on the server and shows the answer, page by page.
    ///
    /// # Errors
    /// The server refused the statement or does not answer; the results cannot be written.
    pub(super) fn run_on_server(&mut self, text: &str) -> Result<()> {
        let mut state: Option<Vec<u8>> = None;
        let mut shown = 0;
        let (mut took, mut traces, mut warnings) = (Duration::ZERO, Vec::new(), Vec::new());
        let asked = self.asked_for(text);
        // The semicolon is sent too, as cqlsh does, because an error's text quotes the surrounding text. If there are
        // comments, a line feed must end the last one before the semicolon.
        let has_comment = text.contains("--") || text.contains("//");
        let whole = format!("{text}{}", if has_comment { "\n;" } else { ";" });
        loop {
            let begun = Instant::now();
            let reply = self.server.borrow_mut().0.query(&whole, &asked, state.as_deref())?;
            took += begun.elapsed();
            let (page_warnings, trace) = notes(&reply.message()?);
            warnings.extend(page_warnings);
            traces.extend(trace);
            let page = self.show_page(text, &reply, shown)?;
            shown = page.shown;
            match page.next {
                Some(next) => state = Some(next),
                None => break,
            }
        }
        let mut notes = String::new();
        if !warnings.is_empty() {
            notes.push_str("\nWarnings :\n");
            warnings.dedup();
            warnings.iter().for_each(|warning| notes.push_str(&format!("{warning}\n\n")));
        }
        if self.settings.timing {
            notes.push_str(&format!("Time: {:.3} ms\n", took.as_secs_f64() * 1e3));
        }
        // Programs that read JSON or CSV must get only rows on stdout.
        match self.settings.format {
            Format::Table => self.sink.write(&notes)?,
            Format::Json | Format::Csv => note!("{}", notes.trim_end_matches('\n')),
        }
        traces.into_iter().try_for_each(|id| self.show_trace(id, false))
    }

    fn asked_for(&self, text: &str) -> Asked {
        // Requests that read traces are not traced.
        let is_of_traces = text.to_ascii_lowercase().contains("system_traces")
            || self.server.borrow().0.keyspace() == Some("system_traces");
        // On a terminal, a page is shown at once. Elsewhere, larger pages save round trips.
        let page_size = match self.settings.is_terminal && self.settings.format == Format::Table {
            true => self.settings.page_size,
            false => self.settings.page_size.max(1_000),
        };
        Asked {
            page_size: self.settings.is_paging.then_some(page_size),
            tracing: self.settings.asked.tracing && !is_of_traces,
            ..self.settings.asked
        }
    }

    fn show_page(&mut self, text: &str, reply: &Reply, shown: usize) -> Result<Page> {
        let message = reply.message()?;
        let rows = match message.response {
            Response::Result(ResultMessage::Rows(rows)) => rows,
            Response::Result(ResultMessage::SchemaChange(_)) => {
                let (session, catalog) = &mut *self.server.borrow_mut();
                catalog.is_stale();
                if !agree(session) {
                    note!("{MISMATCH}");
                }
                return Ok(Page::last(shown));
            }
            Response::Result(_) => return Ok(Page::last(shown)),
            other => bail!("an answer that does not fit: {other:?}"),
        };
        let columns = rows.metadata.columns.to_vec()?;
        let in_colour = self.sink.in_colour();
        let word = first_word(text);
        let is_table = self.settings.format == Format::Table;
        if is_table && self.settings.expand != Some(true) && explain::is_explanation(text, &columns) {
            self.sink.write(&explain::drawn(&rows, in_colour)?)?;
            return Ok(Page::last(rows.row_count));
        }
        let is_describe = word.eq_ignore_ascii_case("describe") || word.eq_ignore_ascii_case("desc");
        if is_table && is_describe && is_description(&columns) {
            let in_keyspace = self.server.borrow().0.keyspace().is_some();
            self.sink.write(&described(&columns, &rows, in_keyspace)?)?;
            return Ok(Page::of(rows.metadata.paging_state, shown + rows.row_count));
        }
        let mut out = String::new();
        let found = rows.iter().collect::<Result<Vec<_>, _>>()?;
        let next = rows.metadata.paging_state;
        match self.settings.format {
            Format::Json => found.iter().for_each(|row| json_row(&columns, row, &mut out)),
            Format::Csv => {
                if shown == 0 {
                    csv_header(&columns, &mut out);
                }
                let rules = ValueRules { float: None, double: None, escapes: false, ..self.rules.clone() };
                found.iter().for_each(|row| csv_row(&columns, row, &rules, &mut out));
            }
            Format::Table => {
                let is_counted = word.eq_ignore_ascii_case("select") || word.eq_ignore_ascii_case("list");
                let page = TablePage {
                    columns: &columns,
                    rows: &found,
                    shown,
                    has_more: next.is_some(),
                    is_counted,
                };
                self.put_table(&page, &mut out)?;
            }
        }
        self.sink.write(&out)?;
        let waits = next.is_some()
            && self.settings.is_terminal
            && is_table
            && self.sink.captured().is_none()
            && !found.is_empty();
        if waits && wait_for_more()? == More::Nothing {
            self.sink.write("(more rows not shown)\n")?;
            return Ok(Page::last(shown));
        }
        Ok(Page::of(next, shown + found.len()))
    }

    fn put_table(&mut self, page: &TablePage<'_, '_>, out: &mut String) -> Result<()> {
        let TablePage { columns, rows, shown, has_more, is_counted } = *page;
        let in_colour = self.sink.in_colour();
        let is_first = shown == 0;
        let is_terminal = self.settings.is_terminal;
        if is_first {
            out.push('\n');
        }
        let style = Style { rules: &self.rules, in_colour };
        let values: Vec<Vec<Painted>> = rows
            .iter()
            .map(|row| row.cells().zip(columns).map(|(cell, column)| show(&column.ty, cell, style)).collect())
            .collect();
        if is_first || !rows.is_empty() {
            let names = self.names(columns, in_colour);
            let columns_max = terminal_columns().filter(|_| is_terminal && self.sink.captured().is_none());
            if is_first {
                // All pages of a result look alike.
                let is_wide = columns_max.is_some_and(|most| table_width(&names, &values) > most);
                self.is_expanded = self.settings.expand.unwrap_or(is_wide);
            }
            match self.is_expanded && !rows.is_empty() {
                true => out.push_str(&expanded(&names, &values, (shown, columns_max))),
                false => {
                    out.push_str(&table(&names, &values, is_first || is_terminal));
                    if rows.is_empty() || is_terminal {
                        out.push('\n');
                    }
                }
            }
        }
        if !has_more && is_counted {
            if !is_terminal {
                out.push('\n');
            }
            out.push_str(&format!("({} rows)\n", shown + rows.len()));
        }
        Ok(())
    }

    /// The column names, coloured by the role of the column.
    fn names(&self, columns: &[ColumnSpec], in_colour: bool) -> Vec<Painted> {
        let (session, catalog) = &mut *self.server.borrow_mut();
        let table = match columns.first() {
            // Without colours the catalog is not needed. An error of the catalog must not hide the rows.
            Some(first) if in_colour => catalog.table(session, &first.keyspace, &first.table).ok().flatten(),
            _ => None,
        };
        let colour = |name: &str| {
            let column = table.and_then(|table| table.iter().find(|column| column.name == name));
            match column.map(|column| column.role) {
                Some(Role::PartitionKey) => RED,
                Some(Role::Clustering) => CYAN,
                Some(Role::Static) => WHITE,
                _ => MAGENTA,
            }
        };
        columns.iter().map(|column| show_name(&column.name, colour(&column.name), in_colour)).collect()
    }
}

/// One page of rows of a result table.
#[derive(Clone, Copy)]
struct TablePage<'p, 'r> {
    columns: &'p [ColumnSpec],
    rows: &'p [Row<'r>],
    /// Number of rows of the previous pages.
    shown: usize,
    has_more: bool,
    /// Whether the number of rows is printed after the last page.
    is_counted: bool,
}

/// How to fetch the next page.
struct Page {
    next: Option<Vec<u8>>,
    shown: usize,
}

impl Page {
    fn last(shown: usize) -> Page {
        Page { next: None, shown }
    }

    fn of(next: Option<&[u8]>, shown: usize) -> Page {
        Page { next: next.map(<[u8]>::to_vec), shown }
    }
}
