//! Cuts the input of an import into chunks of complete records.

use super::dialect::RecordScanner;
use super::json::{ObjectScanner, Place};
use super::options::{Content, CopyOptions};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufRead, Read};
use std::path::PathBuf;

/// Bytes of a read.
const BLOCK: usize = 256 << 10;
/// Bytes after which a chunk ends, even if it has few rows.
const CHUNK_BYTES: usize = 4 << 20;
/// Maximum bytes of a record, which is the maximum of a request.
const RECORD_MAX: usize = 256 << 20;
/// The line that ends data on the standard input.
const END: &[u8] = b"\\.";

/// Consecutive records.
pub struct Chunk {
    bytes: Vec<u8>,
    /// Begin and end of each record, without its line feed.
    spans: Vec<(usize, usize)>,
    /// The number of the first record over all files, from 1.
    pub first_row: u64,
}

impl Chunk {
    /// The number of records.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The number of bytes of all records.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The bytes of a record.
    pub fn record(&self, at: usize) -> &[u8] {
        let (start, end) = self.spans.get(at).copied().unwrap_or_default();
        self.bytes.get(start..end).unwrap_or_default()
    }
}

/// Counts of what was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadUp {
    pub files: usize,
    pub rows_skipped: u64,
}

/// Receives bytes and sends chunks.
struct Cutter<'o, 's> {
    options: &'o CopyOptions,
    send: &'s mut dyn FnMut(Chunk) -> bool,
    csv: RecordScanner,
    json: ObjectScanner,
    bytes: Vec<u8>,
    spans: Vec<(usize, usize)>,
    /// The offset where the current record begins, and the offset up to which the bytes were scanned.
    start: usize,
    looked: usize,
    /// Whether the next line is the first line of a file and contains column names.
    header: bool,
    is_stdin: bool,
    rows: u64,
    sent: u64,
    skipped: u64,
    is_over: bool,
}

/// Reads files one after the other, or the standard input if there are none, and passes chunks to `send`, which returns
/// false to stop.
///
/// # Errors
/// A file cannot be read, or ends within a record.
pub fn read_all(
    files: &[PathBuf],
    options: &CopyOptions,
    send: &mut dyn FnMut(Chunk) -> bool,
) -> Result<ReadUp> {
    let mut cutter = Cutter {
        options,
        send,
        csv: RecordScanner::new(options.marks),
        json: ObjectScanner::default(),
        bytes: Vec::new(),
        spans: Vec::new(),
        start: 0,
        looked: 0,
        header: false,
        is_stdin: files.is_empty(),
        rows: 0,
        sent: 0,
        skipped: 0,
        is_over: false,
    };
    let mut count = 0;
    if files.is_empty() {
        cutter.file(&mut UpToEnd(std::io::stdin().lock()), "the standard input")?;
        count = 1;
    }
    for path in files {
        if cutter.is_over {
            break;
        }
        let name = path.display().to_string();
        let mut file = File::open(path).with_context(|| format!("Can't open '{name}' for reading"))?;
        cutter.file(&mut file, &name)?;
        count += 1;
    }
    cutter.flush();
    Ok(ReadUp { files: count, rows_skipped: cutter.skipped })
}

impl Cutter<'_, '_> {
    fn file(&mut self, input: &mut dyn Read, name: &str) -> Result<()> {
        self.header = self.options.header && self.options.content == Content::Csv;
        self.csv = RecordScanner::new(self.options.marks);
        self.json = ObjectScanner::default();
        let mut is_first = true;
        loop {
            let filled = self.bytes.len();
            self.bytes.resize(filled + BLOCK, 0);
            let place = self.bytes.get_mut(filled..).unwrap_or_default();
            let read = input.read(place);
            let count = match read {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
                Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
            };
            let is_interrupted = count == 0 && place.is_empty();
            self.bytes.truncate(filled + count);
            if is_first && self.bytes.get(filled..).is_some_and(|bytes| bytes.starts_with(b"\xef\xbb\xbf")) {
                self.bytes.drain(filled..filled + 3);
            }
            is_first = false;
            if count == 0 && !is_interrupted {
                return self.end_of_file(name);
            }
            self.look();
            if self.is_over {
                return Ok(());
            }
            if self.bytes.len() - self.start > RECORD_MAX {
                bail!("{name}: a record of over {RECORD_MAX} bytes; is a closing quote missing?");
            }
        }
    }

    /// Scans the new bytes for records.
    fn look(&mut self) {
        let mut at = self.looked;
        while let Some(byte) = self.bytes.get(at).copied() {
            at += 1;
            match self.options.content {
                Content::Csv => {
                    if self.csv.ends_with(byte) {
                        self.record(self.start, at - 1);
                        self.start = at;
                    }
                }
                Content::Json => match self.json.look(byte) {
                    Place::Begins => self.start = at - 1,
                    Place::Ends => {
                        self.record(self.start, at);
                        self.start = at;
                    }
                    Place::Between => self.start = at,
                    Place::Inside => {}
                },
            }
            if self.is_over {
                break;
            }
            if self.spans.len() >= self.options.chunk_rows || at > CHUNK_BYTES && !self.spans.is_empty() {
                self.flush_at(at);
                at = self.looked;
            }
        }
        self.looked = at;
    }

    fn record(&mut self, start: usize, end: usize) {
        let record = self.bytes.get(start..end).unwrap_or_default();
        let record = record.strip_suffix(b"\r").unwrap_or(record);
        if self.is_stdin && record == END {
            self.is_over = true;
        } else if record.is_empty() || std::mem::take(&mut self.header) {
            // An empty line.
        } else if self.rows < self.options.rows_skipped {
            self.rows += 1;
            self.skipped += 1;
        } else if self.options.rows_max.is_some_and(|most| self.rows >= most) {
            self.is_over = true;
        } else {
            self.rows += 1;
            self.spans.push((start, start + record.len()));
        }
    }

    /// Sends the complete records. Bytes after them, up to `at`, were scanned already and begin the next chunk.
    fn flush_at(&mut self, at: usize) {
        let tail = self.bytes.split_off(self.start.min(self.bytes.len()));
        let spans = std::mem::take(&mut self.spans);
        let bytes = std::mem::replace(&mut self.bytes, tail);
        let first_row = self.skipped + self.sent + 1;
        self.sent += spans.len() as u64;
        (self.looked, self.start) = (at.saturating_sub(self.start), 0);
        if !spans.is_empty() && !(self.send)(Chunk { bytes, spans, first_row }) {
            self.is_over = true;
        }
    }

    fn end_of_file(&mut self, name: &str) -> Result<()> {
        let end = self.bytes.len();
        match self.options.content {
            Content::Csv if end > self.start => self.record(self.start, end),
            Content::Json if end > self.start => bail!("{name} ends within an object"),
            _ => {}
        }
        (self.start, self.looked) = (end, end);
        Ok(())
    }

    fn flush(&mut self) {
        self.flush_at(self.looked);
    }
}

/// Reads the standard input line by line, up to and including the line that ends the data. Statements may follow it.
struct UpToEnd<R>(R);

impl<R: BufRead> Read for UpToEnd<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let buffered = self.0.fill_buf()?;
        let buffered = buffered.get(..into.len()).unwrap_or(buffered);
        let whole = buffered.iter().rposition(|byte| *byte == b'\n').map_or(buffered.len(), |last| last + 1);
        let mut count = 0;
        for line in buffered.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            count += line.len();
            if line.trim_ascii_end() == END {
                break;
            }
        }
        let (Some(from), Some(to)) = (buffered.get(..count), into.get_mut(..count)) else { return Ok(0) };
        to.copy_from_slice(from);
        self.0.consume(count);
        Ok(count)
    }
}

/// The first record of a file, which contains the column names.
///
/// # Errors
/// The file cannot be read.
pub fn first_record(path: &PathBuf, options: &CopyOptions) -> Result<Option<String>> {
    let mut found = None;
    let peek =
        CopyOptions { header: false, rows_skipped: 0, rows_max: Some(1), chunk_rows: 1, ..options.clone() };
    read_all(std::slice::from_ref(path), &peek, &mut |chunk| {
        found = std::str::from_utf8(chunk.record(0)).ok().map(str::to_owned);
        false
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str, options: &CopyOptions) -> Result<Vec<String>> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), text)?;
        let mut found = Vec::new();
        read_all(&[file.path().to_owned()], options, &mut |chunk| {
            found.extend((0..chunk.len()).map(|at| String::from_utf8_lossy(chunk.record(at)).into_owned()));
            true
        })?;
        Ok(found)
    }

    #[test]
    fn records_are_whole_in_chunks_of_any_size() {
        let text = "k,v\n1,\"a\nb\"\r\n\n2,x\\\ny\n3,\"he said \"\"hi\"\"\"";
        for chunk_rows in [1, 2, 5_000] {
            let options = CopyOptions { header: true, chunk_rows, ..CopyOptions::default() };
            let expected = ["1,\"a\nb\"", "2,x\\\ny", "3,\"he said \"\"hi\"\"\""];
            assert_eq!(records(text, &options).unwrap(), expected);
        }
        let options = CopyOptions { rows_skipped: 1, rows_max: Some(2), ..CopyOptions::default() };
        assert_eq!(records("a\nb\nc\n", &options).unwrap(), ["b"]);
    }

    #[test]
    fn what_follows_the_end_of_the_data_is_left() {
        let mut input: &[u8] = b"a,1\nb,2\n\\.\nSELECT 1;\n";
        let (mut data, mut buffer) = (Vec::new(), [0; 64]);
        let mut lines = UpToEnd(&mut input);
        while !data.ends_with(b"\\.\n") {
            let count = lines.read(&mut buffer).unwrap();
            data.extend_from_slice(&buffer[..count]);
        }
        assert_eq!((data.as_slice(), input), (&b"a,1\nb,2\n\\.\n"[..], &b"SELECT 1;\n"[..]));
    }

    #[test]
    fn objects_are_found_in_lines_and_in_arrays() {
        let options = CopyOptions { content: Content::Json, ..CopyOptions::default() };
        let expected = ["{\"a\": {\"b\": \"}\"}}", "{}"];
        assert_eq!(records("{\"a\": {\"b\": \"}\"}}\n{}\n", &options).unwrap(), expected);
        assert_eq!(records("[{\"a\": {\"b\": \"}\"}},\n {}]", &options).unwrap(), expected);
        assert!(records("{\"a\"", &options).is_err());
    }
}
