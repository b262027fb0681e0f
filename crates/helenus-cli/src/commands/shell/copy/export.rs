//! COPY TO: several connections read ranges of the token ring and write them to files.

use super::super::catalog::Role;
use super::super::session::{Asked, Session, quoted};
use super::super::value::{Style, ValueRules, show};
use super::dialect::{put_field, put_quoted_field};
use super::import::Filled;
use super::options::{Content, CopyOptions, CopyStatement, Marks};
use super::progress::{RateMeter, interval};
use super::run::CopyContext;
use anyhow::{Context, Result, bail, ensure};
use helenus_model::types::CqlType;
use helenus_wire::native::{Response, ResultMessage};
use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Number of ranges for each connection: enough that no connection waits long for the others at the end.
const RANGES_EACH: usize = 16;
/// Number of ranges that are read concurrently by default (cqlsh's MAXREQUESTS).
const REQUESTS: usize = 6;

/// A page of rows in the format of the file.
struct Page {
    text: String,
    /// The end of each row.
    ends: Vec<usize>,
}

/// The state that all connections share.
struct Reading<'r> {
    ranges: Vec<String>,
    next: AtomicUsize,
    /// The number of ranges that were read to their ends.
    done: AtomicUsize,
    is_aborted: AtomicBool,
    options: &'r CopyOptions,
    asked: Asked,
}

/// Writes a table to a file, or to the standard output.
///
/// # Errors
/// The file cannot be written, the connection is lost, a range has failed.
pub fn export(
    copy: &CopyStatement,
    from: &Filled<'_>,
    file: Option<&Path>,
    place: &mut CopyContext<'_>,
) -> Result<()> {
    let names: Vec<String> = match copy.columns.as_slice() {
        [] => from.columns.iter().map(|column| column.name.clone()).collect(),
        columns => columns.to_vec(),
    };
    for name in &names {
        ensure!(from.columns.iter().any(|column| column.name == *name), "Invalid column name {name}");
    }
    let options = &copy.options;
    let connections = options.connections.or(options.requests_max).unwrap_or(REQUESTS);
    let ranges = statements(copy, from, &names, connections, place)?;
    let connections = connections.min(ranges.len());
    let mut writer = Writer::open(file, options, &names)?;
    if file.is_some() {
        say!("\nStarting copy of {}.{} with columns [{}].", from.keyspace, from.table, names.join(", "))?;
    }
    let reading = Reading {
        ranges,
        next: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
        is_aborted: AtomicBool::new(false),
        options,
        asked: Asked { consistency: place.consistency, page_size: Some(options.page_rows), ..Asked::plain() },
    };
    let mut sessions = Vec::new();
    for _ in 0..connections {
        let mut session = place.session.another()?;
        session.endpoint.request_timeout = options.page_timeout;
        sessions.push(session);
    }
    let mut meter = RateMeter::begin(options.report_every, options.rate_file.as_deref())?;
    let mut rows = 0;
    let done = std::thread::scope(|scope| -> Result<()> {
        let (sender, pages) = sync_channel::<Page>(2 * connections);
        let reading = &reading;
        let running: Vec<_> = sessions
            .into_iter()
            .map(|session| {
                let sender = sender.clone();
                scope.spawn(move || reading.run(session, &sender))
            })
            .collect();
        drop(sender);
        let mut written = Ok(());
        loop {
            match pages.recv_timeout(Duration::from_millis(100)) {
                Ok(page) if written.is_ok() => {
                    rows += page.ends.len() as u64;
                    written = writer.write(&page);
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let read = reading.done.load(Ordering::Relaxed) as f64 / reading.ranges.len().max(1) as f64;
            meter.at(rows, Some(read));
            if written.is_ok() && place.session.interrupt.take() {
                written = Err(anyhow::anyhow!("interrupted; the file holds a part of the table"));
            }
            if written.is_err() {
                reading.is_aborted.store(true, Ordering::Relaxed);
            }
        }
        for thread in running {
            written =
                written.and(thread.join().unwrap_or_else(|_| bail!("a connection's thread ended by itself")));
        }
        written
    });
    let (took, rate) = meter.end(rows);
    writer.close()?;
    done?;
    if file.is_some() {
        say!("{rows} rows exported to {} files in {}, {rate:.0} rows/s.", writer.files, interval(took))?;
    }
    Ok(())
}

/// One SELECT for each range of tokens.
fn statements(
    copy: &CopyStatement,
    from: &Filled<'_>,
    names: &[String],
    connections: usize,
    place: &mut CopyContext<'_>,
) -> Result<Vec<String>> {
    let columns: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    let json = if copy.options.content == Content::Json { "JSON " } else { "" };
    let select =
        format!("SELECT {json}{} FROM {}.{}", columns.join(", "), quoted(from.keyspace), quoted(from.table));
    let (begin, end) = (copy.options.begin_token, copy.options.end_token);
    let has_ring = is_by_murmur3(place.session)? && !from.keyspace.starts_with("system_v");
    if !has_ring {
        ensure!(begin.is_none() && end.is_none(), "BEGINTOKEN and ENDTOKEN need Murmur3Partitioner's tokens");
        return Ok(vec![select]);
    }
    let key: Vec<String> = from
        .columns
        .iter()
        .filter(|column| column.role == Role::PartitionKey)
        .map(|column| quoted(&column.name))
        .collect();
    let token = format!("token({})", key.join(", "));
    let cuts = cuts(begin, end, connections * RANGES_EACH);
    let mut ranges = Vec::new();
    for pair in cuts.windows(2) {
        let [from, to] = pair else { continue };
        let lower = from.map(|from| format!("{token} > {from}"));
        let upper = to.map(|to| format!("{token} <= {to}"));
        let bounds: Vec<String> = [lower, upper].into_iter().flatten().collect();
        match bounds.is_empty() {
            true => ranges.push(select.clone()),
            false => ranges.push(format!("{select} WHERE {}", bounds.join(" AND "))),
        }
    }
    Ok(ranges)
}

/// The tokens that cut the ring from `begin` to `end` into about `count` ranges; `None` is an open end.
fn cuts(begin: Option<i64>, end: Option<i64>, count: usize) -> Vec<Option<i64>> {
    let (from, to) = (i128::from(begin.unwrap_or(i64::MIN)), i128::from(end.unwrap_or(i64::MAX)));
    let count = count.max(1) as i128;
    let mut cuts = vec![begin];
    for at in 1..count {
        let token = from + (to - from) * at / count;
        let cut = i64::try_from(token).ok();
        if token > from && token < to && cuts.last() != Some(&cut) {
            cuts.push(cut);
        }
    }
    cuts.push(end);
    cuts
}

fn is_by_murmur3(session: &mut Session) -> Result<bool> {
    let rows = session.rows("SELECT partitioner FROM system.local")?;
    let name = rows.into_iter().flatten().next().flatten().unwrap_or_default();
    Ok(name.ends_with(b"Murmur3Partitioner"))
}

impl Reading<'_> {
    /// Reads ranges until none is left.
    fn run(&self, mut session: Session, pages: &SyncSender<Page>) -> Result<()> {
        while let Some(range) = self.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let mut attempts = 1;
            while !self.is_aborted.load(Ordering::Relaxed) {
                let mut rows = 0;
                let Err(error) = self.read_range(range, &mut session, pages, &mut rows) else { break };
                // A range is not retried after its first rows, because they would be written twice.
                if rows > 0 || attempts >= self.options.attempts_max {
                    self.is_aborted.store(true, Ordering::Relaxed);
                    return Err(error)
                        .with_context(|| format!("{range}: given up after {attempts} attempts"));
                }
                attempts += 1;
            }
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn read_range(
        &self,
        range: &str,
        session: &mut Session,
        pages: &SyncSender<Page>,
        rows_read: &mut usize,
    ) -> Result<()> {
        let mut state: Option<Vec<u8>> = None;
        loop {
            let reply = session.query(range, &self.asked, state.as_deref())?;
            let Response::Result(ResultMessage::Rows(rows)) = reply.message()?.response else {
                bail!("an answer without rows");
            };
            let columns = rows.metadata.columns.to_vec()?;
            let mut page = Page { text: String::new(), ends: Vec::with_capacity(rows.row_count) };
            for row in rows.iter() {
                for (at, (column, cell)) in columns.iter().zip(row?.cells()).enumerate() {
                    if self.options.content == Content::Json {
                        page.text.push_str(&String::from_utf8_lossy(cell.unwrap_or_default()));
                        continue;
                    }
                    if at > 0 {
                        page.text.push(char::from(self.options.marks.delimiter));
                    }
                    put_cell(&column.ty, cell, &self.options.values, self.options.marks, &mut page.text);
                }
                page.text.push('\n');
                page.ends.push(page.text.len());
            }
            *rows_read += page.ends.len();
            if !page.ends.is_empty() && pages.send(page).is_err() || self.is_aborted.load(Ordering::Relaxed) {
                return Ok(());
            }
            match rows.metadata.paging_state {
                Some(next) => state = Some(next.to_vec()),
                None => return Ok(()),
            }
        }
    }
}

/// Appends a field. A text that equals the null marker is quoted, so that COPY FROM can distinguish the two.
fn put_cell(ty: &CqlType, cell: Option<&[u8]>, rules: &ValueRules, marks: Marks, out: &mut String) {
    match cell {
        None => out.push_str(&rules.null),
        Some(_) => {
            let text = show(ty, cell, Style { rules, in_colour: false }).text;
            let is_text = matches!(ty, CqlType::Text | CqlType::Ascii);
            match is_text && text == rules.null {
                true => put_quoted_field(&text, marks, out),
                false => put_field(&text, marks, out),
            }
        }
    }
}

/// Writes to a file, to a sequence of files, or to the standard output.
struct Writer<'w> {
    path: Option<&'w Path>,
    out: Option<BufWriter<File>>,
    rows_per_file: Option<u64>,
    rows: u64,
    files: usize,
}

impl<'w> Writer<'w> {
    fn open(path: Option<&'w Path>, options: &CopyOptions, names: &[String]) -> Result<Writer<'w>> {
        let rows_per_file = options.rows_per_file.filter(|_| path.is_some());
        let mut writer = Writer { path, out: None, rows_per_file, rows: 0, files: 0 };
        writer.next_file()?;
        if options.header && options.content == Content::Csv {
            let mut line = String::new();
            for (at, name) in names.iter().enumerate() {
                if at > 0 {
                    line.push(char::from(options.marks.delimiter));
                }
                put_field(name, options.marks, &mut line);
            }
            line.push('\n');
            writer.put(&line)?;
        }
        Ok(writer)
    }

    fn next_file(&mut self) -> Result<()> {
        self.close()?;
        let Some(path) = self.path else { return Ok(()) };
        let path = match self.files {
            0 => path.to_owned(),
            number => PathBuf::from(format!("{}.{number}", path.display())),
        };
        let file =
            File::create(&path).with_context(|| format!("Can't open '{}' for writing", path.display()))?;
        self.out = Some(BufWriter::with_capacity(1 << 20, file));
        self.files += 1;
        self.rows = 0;
        Ok(())
    }

    fn put(&mut self, text: &str) -> Result<()> {
        match &mut self.out {
            Some(out) => out.write_all(text.as_bytes())?,
            None => stdout().lock().write_all(text.as_bytes())?,
        }
        Ok(())
    }

    fn write(&mut self, page: &Page) -> Result<()> {
        let Some(most) = self.rows_per_file else { return self.put(&page.text) };
        let mut start = 0;
        for end in &page.ends {
            if self.rows >= most {
                self.next_file()?;
            }
            self.put(page.text.get(start..*end).unwrap_or_default())?;
            self.rows += 1;
            start = *end;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        match self.out.take() {
            Some(mut out) => Ok(out.flush()?),
            None => Ok(stdout().lock().flush()?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_the_ring_without_a_gap() {
        let whole = cuts(None, None, 4);
        assert_eq!((whole.first(), whole.last(), whole.len()), (Some(&None), Some(&None), 5));
        assert!(whole.windows(2).all(|pair| pair[0] < pair[1] || pair[1].is_none()));
        assert_eq!(cuts(Some(10), Some(12), 64), [Some(10), Some(11), Some(12)]);
        assert_eq!(cuts(None, None, 1), [None, None]);
    }
}
