//! CSV as cqlsh reads and writes it: fields are quoted where necessary, and an escape character precedes quotes and
//! escapes.
//!
//! The reader also accepts the common form, in which a quote inside quotes is doubled.

use super::options::Marks;

/// Finds the ends of records in text that arrives in pieces.
#[derive(Clone, Copy, Debug)]
pub struct RecordScanner {
    marks: Marks,
    in_quotes: bool,
    is_escaped: bool,
    at_field_start: bool,
}

impl RecordScanner {
    /// A scanner at the beginning of a record.
    pub fn new(marks: Marks) -> RecordScanner {
        RecordScanner { marks, in_quotes: false, is_escaped: false, at_field_start: true }
    }

    /// Whether the record ends with this byte, its line feed.
    #[inline]
    pub fn ends_with(&mut self, byte: u8) -> bool {
        if self.is_escaped {
            (self.is_escaped, self.at_field_start) = (false, false);
            return false;
        }
        if byte == b'\n' && !self.in_quotes {
            self.at_field_start = true;
            return true;
        } else if byte == self.marks.quote && (self.in_quotes || self.at_field_start) {
            // A doubled quote closes and reopens the quotes, so at the second quote the field is still at its start.
            self.in_quotes = !self.in_quotes;
            self.at_field_start = !self.in_quotes;
            return false;
        } else if byte == self.marks.escape {
            self.is_escaped = true;
        }
        self.at_field_start = byte == self.marks.delimiter && !self.in_quotes;
        false
    }
}

/// A field: a range of the record, or of the unescaped text.
#[derive(Clone, Copy, Debug)]
enum Field {
    Record(usize, usize),
    /// The range, and whether the field was quoted.
    Made(usize, usize, bool),
}

/// The fields of a record. Its memory is reused from record to record.
#[derive(Debug, Default)]
pub struct Fields {
    fields: Vec<Field>,
    made: String,
}

impl Fields {
    /// Splits a record, given without its line feed, into fields.
    pub fn read(&mut self, record: &str, marks: Marks) {
        self.fields.clear();
        self.made.clear();
        let record = record.strip_suffix('\r').unwrap_or(record);
        let bytes = record.as_bytes();
        if !bytes.iter().any(|byte| *byte == marks.quote || *byte == marks.escape) {
            let mut start = 0;
            for (at, byte) in bytes.iter().enumerate() {
                if *byte == marks.delimiter {
                    self.fields.push(Field::Record(start, at));
                    start = at + 1;
                }
            }
            self.fields.push(Field::Record(start, bytes.len()));
            return;
        }
        let mut rest = record;
        loop {
            let start = self.made.len();
            let is_quoted = rest.starts_with(char::from(marks.quote));
            let (length, goes_on) = self.take_field(rest, marks);
            self.fields.push(Field::Made(start, self.made.len(), is_quoted));
            if !goes_on {
                return;
            }
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    /// Unescapes a field into `made`. Returns its length including the delimiter, and whether there was a delimiter.
    fn take_field(&mut self, text: &str, marks: Marks) -> (usize, bool) {
        let (delimiter, quote, escape) =
            (char::from(marks.delimiter), char::from(marks.quote), char::from(marks.escape));
        let mut in_quotes = false;
        let mut letters = text.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            let next = letters.peek().map(|(_, next)| *next);
            if letter == escape && escape != quote {
                if let Some((_, escaped)) = letters.next() {
                    self.made.push(escaped);
                }
            } else if letter == quote && in_quotes && next == Some(quote) {
                self.made.push(quote);
                letters.next();
            } else if letter == quote && (in_quotes || at == 0) {
                in_quotes = !in_quotes;
            } else if letter == delimiter && !in_quotes {
                return (at + delimiter.len_utf8(), true);
            } else {
                self.made.push(letter);
            }
        }
        (text.len(), false)
    }

    /// Whether a field was quoted. A quoted field is a text even if it equals the null marker.
    pub fn is_quoted(&self, at: usize) -> bool {
        matches!(self.fields.get(at), Some(Field::Made(_, _, true)))
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field of the record that was split last.
    pub fn get<'f>(&'f self, record: &'f str, at: usize) -> Option<&'f str> {
        match *self.fields.get(at)? {
            Field::Record(start, end) => record.get(start..end),
            Field::Made(start, end, _) => self.made.get(start..end),
        }
    }
}

/// Appends a field, quoted if necessary.
pub fn put_field(text: &str, marks: Marks, out: &mut String) {
    let special = |byte: u8| {
        byte == marks.delimiter
            || byte == marks.quote
            || byte == marks.escape
            || byte == b'\n'
            || byte == b'\r'
    };
    match text.bytes().any(special) {
        true => put_quoted_field(text, marks, out),
        false => out.push_str(text),
    }
}

/// Appends a quoted field.
pub fn put_quoted_field(text: &str, marks: Marks, out: &mut String) {
    let (quote, escape) = (char::from(marks.quote), char::from(marks.escape));
    out.push(quote);
    for letter in text.chars() {
        if letter == quote || letter == escape {
            out.push(escape);
        }
        out.push(letter);
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: Marks = Marks { delimiter: b',', quote: b'"', escape: b'\\' };

    fn fields(record: &str) -> Vec<String> {
        let mut fields = Fields::default();
        fields.read(record, MARKS);
        (0..fields.len()).map(|at| fields.get(record, at).unwrap().to_owned()).collect()
    }

    #[test]
    fn what_is_written_is_read_back() {
        for row in
            [vec!["a", "", "c"], vec!["a,b", "say \"x\"", "back\\slash"], vec!["line\nfeed", "é漢", "\r"]]
        {
            let mut line = String::new();
            for (at, field) in row.iter().enumerate() {
                if at > 0 {
                    line.push(',');
                }
                put_field(field, MARKS, &mut line);
            }
            assert_eq!(fields(&line), row);
            let mut scanner = RecordScanner::new(MARKS);
            line.push('\n');
            let ends: Vec<usize> = line
                .bytes()
                .enumerate()
                .filter(|(_, byte)| scanner.ends_with(*byte))
                .map(|(at, _)| at)
                .collect();
            assert_eq!(ends, [line.len() - 1]);
        }
    }

    #[test]
    fn other_programs_files_are_read() {
        assert_eq!(fields("1,\"say \"\"x\"\"\",\r"), ["1", "say \"x\"", ""]);
        assert_eq!(fields("5' 2\",x"), ["5' 2\"", "x"]);
        assert_eq!(fields("a\\,b,c"), ["a,b", "c"]);
    }
}
