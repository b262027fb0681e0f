//! The COPY statement and its options, which are those of cqlsh. An option without a meaning here is refused by name.

use super::super::command::{Word, words};
use super::super::rc::Rc;
use super::super::value::{DEFAULT_TIMESTAMP, TextRules, TimeFormat, ValueRules};
use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;
use std::time::Duration;

/// The names of all options with their equals sign, for completion.
pub const OPTION_NAMES: &[&str] = &[
    "BEGINTOKEN = ",
    "BOOLSTYLE = ",
    "CHUNKSIZE = ",
    "CONFIGFILE = ",
    "DATETIMEFORMAT = ",
    "DECIMALSEP = ",
    "DELIMITER = ",
    "DOUBLEPRECISION = ",
    "ENCODING = ",
    "ENDTOKEN = ",
    "ERRFILE = ",
    "ESCAPE = ",
    "FLOATPRECISION = ",
    "FORMAT = ",
    "HEADER = ",
    "INGESTRATE = ",
    "MAXATTEMPTS = ",
    "MAXBATCHSIZE = ",
    "MAXINSERTERRORS = ",
    "MAXOUTPUTSIZE = ",
    "MAXPARSEERRORS = ",
    "MAXREQUESTS = ",
    "MAXROWS = ",
    "NULL = ",
    "NULLASUNSET = ",
    "NUMPROCESSES = ",
    "PAGESIZE = ",
    "PAGETIMEOUT = ",
    "QUOTE = ",
    "RATEFILE = ",
    "REPORTFREQUENCY = ",
    "SKIPCOLS = ",
    "SKIPROWS = ",
    "THOUSANDSSEP = ",
    "TTL = ",
];

/// The text of HELP COPY.
pub const HELP: &str = "\
COPY <table> [(<column>, ...)] TO   '<file>' | STDOUT [WITH <option> = <value> [AND ...]];
COPY <table> [(<column>, ...)] FROM '<file>, <pattern>, ...' | STDIN [WITH ...];

Both ways
  FORMAT='csv'           csv, or json: one object a line (FROM also takes an array); by the file's ending if left out
  HEADER=false           the first line has the columns' names
  DELIMITER=','  QUOTE='\"'  ESCAPE='\\'  NULL=''
  DATETIMEFORMAT='%Y-%m-%d %H:%M:%S.%f%z'  BOOLSTYLE='True,False'  DECIMALSEP='.'  THOUSANDSSEP=''
  MAXATTEMPTS=5          how often a request is tried that the server had no time for
  NUMPROCESSES           connections; by default as many as there are processors, 4 at most
  REPORTFREQUENCY=0.25   seconds between two reports    RATEFILE='<file>' keeps them
  ENCODING='utf8'        the only one
  CONFIGFILE='<file>'    options of its sections [copy], [copy-from], [copy:ks.table], [copy-from:ks.table], and -to;
                         by default those of ~/.cassandra/cqlshrc
FROM
  SKIPROWS=0  MAXROWS=-1  SKIPCOLS='a,b'  TTL=<seconds>
  INGESTRATE=-1          rows a second at most
  CHUNKSIZE=5000         rows handed to a connection at once
  MAXBATCHSIZE=20        rows of one partition that follow each other go as one batch; 1 sends each by itself
  MAXREQUESTS=512        requests on the way on each connection
  NULLASUNSET=false      a null leaves what is there instead of deleting it
  ERRFILE='import_<keyspace>_<table>.err'   rows that could not be imported
  MAXPARSEERRORS=-1  MAXINSERTERRORS=1000   how many of them end it
TO
  PAGESIZE=1000  PAGETIMEOUT=10  MAXREQUESTS=6 (ranges read at a time)
  BEGINTOKEN=  ENDTOKEN=          from behind one token up to the other
  MAXOUTPUTSIZE=-1                rows a file; then FILE.1, FILE.2, ...
  FLOATPRECISION, DOUBLEPRECISION digits; without them as many as a number has

STDIN ends with a line \\. or with the input.";

/// The direction of the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From files, or from the standard input.
    From(Option<String>),
    /// To a file, or to the standard output.
    To(Option<PathBuf>),
}

/// The format of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Csv,
    Json,
}

/// The special characters of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    pub delimiter: u8,
    pub quote: u8,
    pub escape: u8,
}

/// A parsed COPY statement.
#[derive(Clone, Debug)]
pub struct CopyStatement {
    pub table: String,
    /// Empty: all columns.
    pub columns: Vec<String>,
    pub direction: Direction,
    pub options: CopyOptions,
}

/// The options of a COPY.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    pub content: Content,
    pub marks: Marks,
    pub header: bool,
    pub values: ValueRules,
    pub texts: TextRules,
    pub attempts_max: u32,
    pub connections: Option<usize>,
    pub report_every: Duration,
    pub rate_file: Option<PathBuf>,
    pub rows_skipped: u64,
    pub rows_max: Option<u64>,
    pub columns_skipped: Vec<String>,
    pub ttl_s: Option<u32>,
    pub rows_per_second: Option<u64>,
    pub chunk_rows: usize,
    pub batch_rows: usize,
    pub requests_max: Option<usize>,
    pub null_as_unset: bool,
    pub error_file: Option<PathBuf>,
    pub parse_errors_max: Option<u64>,
    pub insert_errors_max: Option<u64>,
    pub page_rows: i32,
    pub page_timeout: Duration,
    pub begin_token: Option<i64>,
    pub end_token: Option<i64>,
    pub rows_per_file: Option<u64>,
}

impl Default for CopyOptions {
    fn default() -> CopyOptions {
        let mut timestamp = TimeFormat::new(DEFAULT_TIMESTAMP);
        timestamp.milliseconds = true;
        let booleans = ["True".to_owned(), "False".to_owned()];
        CopyOptions {
            content: Content::Csv,
            marks: Marks { delimiter: b',', quote: b'"', escape: b'\\' },
            header: false,
            values: ValueRules {
                float: None,
                double: None,
                timestamp: timestamp.clone(),
                null: String::new(),
                booleans: booleans.clone(),
                decimal_separator: None,
                thousands_separator: None,
                escapes: false,
                reads_back: true,
            },
            texts: TextRules {
                null: String::new(),
                timestamp,
                booleans,
                decimal_separator: None,
                thousands_separator: None,
            },
            attempts_max: 5,
            connections: None,
            report_every: Duration::from_millis(250),
            rate_file: None,
            rows_skipped: 0,
            rows_max: None,
            columns_skipped: Vec::new(),
            ttl_s: None,
            rows_per_second: None,
            chunk_rows: 5_000,
            batch_rows: 20,
            requests_max: None,
            null_as_unset: false,
            error_file: None,
            parse_errors_max: None,
            insert_errors_max: Some(1_000),
            page_rows: 1_000,
            page_timeout: Duration::from_secs(10),
            begin_token: None,
            end_token: None,
            rows_per_file: None,
        }
    }
}

/// Parses a COPY statement, and applies the defaults that the cqlshrc file has for its table; CONFIGFILE names another
/// such file. Also returns the table's keyspace, which is `present` if the statement names none.
///
/// # Errors
/// Errors in the statement or in the file.
pub fn read(statement: &str, defaults: &Rc, present: Option<&str>) -> Result<(CopyStatement, String)> {
    let words = words(statement);
    let mut rest = words.get(1..).unwrap_or_default();
    let (keyspace, table) = take_name(&mut rest)?;
    let columns = take_columns(&mut rest)?;
    let direction = take_direction(&mut rest)?;
    let keyspace = match (&keyspace, present) {
        (Some(keyspace), _) => keyspace.clone(),
        (None, Some(keyspace)) => keyspace.to_owned(),
        (None, None) => bail!("Not in any keyspace: USE one, or write keyspace.{table}"),
    };
    let mut options = CopyOptions::default();
    let name = match &direction {
        Direction::From(file) => file.clone(),
        Direction::To(file) => file.as_ref().map(|file| file.display().to_string()),
    };
    for name in name.iter().flat_map(|name| name.split(',')) {
        check_kind(name.trim(), matches!(direction, Direction::From(_)))?;
    }
    if name
        .is_some_and(|name| [".json", ".jsonl", ".ndjson"].iter().any(|end| name.trim_end().ends_with(end)))
    {
        options.content = Content::Json;
    }
    let is_from = matches!(direction, Direction::From(_));
    let mut given: Vec<(String, String)> = Vec::new();
    if let Some((with, after)) = rest.split_first() {
        ensure!(is_word(with, "with"), "after the file's name comes WITH, not {}", with.text);
        rest = after;
        loop {
            let [name, equals, value, after @ ..] = rest else {
                bail!("WITH takes options: WITH HEADER = true AND DELIMITER = '|'");
            };
            ensure!(equals.text == "=", "{} is to be followed by = and a value", name.text);
            given.push((name.text.clone(), value.text.clone()));
            match after {
                [] => break,
                [and, after @ ..] if is_word(and, "and") => rest = after,
                [other, ..] => bail!("between options stands AND, not {}", other.text),
            }
        }
    }
    let is_file = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("CONFIGFILE");
    let named = match given.iter().find(is_file) {
        Some((_, file)) => Some(Rc::read(&super::super::interpreter::expand_home(file))?),
        None => None,
    };
    let rc = named.as_ref().unwrap_or(defaults);
    for (name, value) in rc.copy_options(is_from, &format!("{keyspace}.{table}")) {
        let set = options.set(&name, &value, is_from);
        set.with_context(|| format!("{}: options of COPY", rc.file().display()))?;
    }
    for (name, value) in given.iter().filter(|given| !is_file(given)) {
        options.set(name, value, is_from)?;
    }
    Ok((CopyStatement { table, columns, direction, options }, keyspace))
}

/// The ends of names of compressed files, and the program that makes them.
const COMPRESSED: [(&str, &str); 9] = [
    (".gz", "gzip"),
    (".tgz", "gzip"),
    (".bz2", "bzip2"),
    (".xz", "xz"),
    (".zst", "zstd"),
    (".lz4", "lz4"),
    (".br", "brotli"),
    (".snappy", "snzip"),
    (".zip", "zip"),
];
/// The ends of names of tables in a form that COPY does not write, and the form.
const OTHER_FORMS: [(&str, &str); 8] = [
    (".parquet", "Parquet"),
    (".arrow", "Arrow"),
    (".feather", "Arrow"),
    (".avro", "Avro"),
    (".orc", "ORC"),
    (".xlsx", "Excel's form"),
    (".xls", "Excel's form"),
    (".ods", "OpenDocument"),
];

/// Refuses a file whose name says that it is neither CSV nor JSON: its content would not be what its name says.
fn check_kind(name: &str, is_from: bool) -> Result<()> {
    let lower = name.to_ascii_lowercase();
    let found = |kinds: &'static [(&str, &'static str)]| {
        kinds.iter().find(|(end, _)| lower.ends_with(end)).map(|(_, kind)| *kind)
    };
    match (found(&COMPRESSED), found(&OTHER_FORMS), is_from) {
        (Some(program), _, true) => bail!(
            "COPY FROM reads no compressed files, as {name}: unpack it first, or pipe it, \
             {program} -dc FILE | helenus shell -e \"COPY table FROM STDIN\""
        ),
        (Some(program), _, false) => bail!(
            "COPY TO compresses nothing, and {name} would not be what its name says: pipe it, \
             helenus shell -e \"COPY table TO STDOUT\" | {program} > FILE"
        ),
        (_, Some(form), true) => {
            bail!("COPY FROM reads CSV and JSON, and {name} is {form}: convert it to one of them first")
        }
        (_, Some(form @ ("Parquet" | "Arrow")), false) => bail!(
            "COPY TO writes CSV and JSON, and {name} would be {form}: helenus export --{} writes that",
            form.to_ascii_lowercase()
        ),
        (_, Some(form), false) => bail!("COPY TO writes CSV and JSON, and {name} would be {form}"),
        _ => Ok(()),
    }
}

fn is_word(word: &Word, expected: &str) -> bool {
    !word.is_quoted && word.text.eq_ignore_ascii_case(expected)
}

/// Reads `table` or `keyspace.table`; either part may be quoted.
fn take_name(rest: &mut &[Word]) -> Result<(Option<String>, String)> {
    let mut parts: Vec<String> = vec![String::new()];
    while let Some((word, after)) = rest.split_first() {
        if is_word(word, "from") || is_word(word, "to") || !word.is_quoted && word.text == "(" {
            break;
        }
        *rest = after;
        if word.is_quoted {
            parts.last_mut().into_iter().for_each(|part| part.push_str(&word.text));
            continue;
        }
        for (at, piece) in word.text.split('.').enumerate() {
            if at > 0 {
                parts.push(String::new());
            }
            parts.last_mut().into_iter().for_each(|part| part.push_str(&piece.to_lowercase()));
        }
    }
    match parts.as_slice() {
        [table] if !table.is_empty() => Ok((None, table.clone())),
        [keyspace, table] if !keyspace.is_empty() && !table.is_empty() => {
            Ok((Some(keyspace.clone()), table.clone()))
        }
        _ => bail!("COPY takes a table: COPY keyspace.table TO 'file.csv'"),
    }
}

fn take_columns(rest: &mut &[Word]) -> Result<Vec<String>> {
    let mut columns = Vec::new();
    let [open, after @ ..] = *rest else { return Ok(columns) };
    if open.is_quoted || open.text != "(" {
        return Ok(columns);
    }
    *rest = after;
    while let Some((word, after)) = rest.split_first() {
        *rest = after;
        match (word.is_quoted, word.text.as_str()) {
            (false, ")") => return Ok(columns),
            (false, ",") => {}
            (true, name) => columns.push(name.to_owned()),
            (false, name) => columns.push(name.to_lowercase()),
        }
    }
    bail!("the list of columns has no )")
}

fn take_direction(rest: &mut &[Word]) -> Result<Direction> {
    let [direction, file, after @ ..] = *rest else {
        bail!("after the table comes FROM or TO, and a file's name between quotes");
    };
    *rest = after;
    let is_from = is_word(direction, "from");
    ensure!(is_from || is_word(direction, "to"), "after the table comes FROM or TO, not {}", direction.text);
    let standard = if is_from { "stdin" } else { "stdout" };
    let name = match file.is_quoted {
        true => Some(file.text.clone()),
        false if is_word(file, standard) => None,
        false => {
            bail!("a file's name stands between quotes; without one there is {}", standard.to_uppercase())
        }
    };
    Ok(match is_from {
        true => Direction::From(name),
        false => Direction::To(name.map(|name| super::super::interpreter::expand_home(&name))),
    })
}

impl CopyOptions {
    fn set(&mut self, name: &str, value: &str, is_from: bool) -> Result<()> {
        let upper = name.to_ascii_uppercase();
        let done = match upper.as_str() {
            name if is_from => self.set_from(name, value),
            name => self.set_to(name, value),
        };
        if done.with_context(|| format!("{upper} = {value}"))? {
            return Ok(());
        }
        if self.set_common(&upper, value).with_context(|| format!("{upper} = {value}"))? {
            return Ok(());
        }
        match upper.as_str() {
            "MINBATCHSIZE" => bail!(
                "MINBATCHSIZE is not supported: rows are batched only where they follow each other in one partition; MAXBATCHSIZE bounds that"
            ),
            "PREPAREDSTATEMENTS" if value.eq_ignore_ascii_case("true") => Ok(()),
            "PREPAREDSTATEMENTS" => bail!(
                "PREPAREDSTATEMENTS = false is not supported: rows are always sent as values of a prepared statement"
            ),
            _ => bail!("Unrecognized COPY {} options: {name}", if is_from { "FROM" } else { "TO" }),
        }
    }

    fn set_common(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "FORMAT" if value.eq_ignore_ascii_case("csv") => self.content = Content::Csv,
            "FORMAT" if value.eq_ignore_ascii_case("json") => self.content = Content::Json,
            "FORMAT" => bail!("csv or json"),
            "HEADER" => self.header = truth(value)?,
            "DELIMITER" => self.marks.delimiter = one_byte(&value.replace("\\t", "\t"))?,
            "QUOTE" => self.marks.quote = one_byte(value)?,
            "ESCAPE" => self.marks.escape = one_byte(value)?,
            "NULL" => {
                self.values.null = value.to_owned();
                self.texts.null = value.to_owned();
            }
            "DATETIMEFORMAT" => {
                self.values.timestamp = TimeFormat::new(value);
                self.texts.timestamp = TimeFormat::new(value);
            }
            "BOOLSTYLE" => {
                let Some((yes, no)) = value.split_once(',') else { bail!("two words, as in 'yes,no'") };
                let styles = [yes.trim().to_owned(), no.trim().to_owned()];
                ensure!(styles[0] != styles[1] && !styles.contains(&String::new()), "Invalid boolean styles");
                self.values.booleans = styles.clone();
                self.texts.booleans = styles;
            }
            "DECIMALSEP" => {
                let separator = one_character(value)?.filter(|separator| *separator != '.');
                self.values.decimal_separator = separator;
                self.texts.decimal_separator = separator;
            }
            "THOUSANDSSEP" => {
                let separator = one_character(value)?;
                self.values.thousands_separator = separator;
                self.texts.thousands_separator = separator;
            }
            "MAXATTEMPTS" => self.attempts_max = value.parse::<u32>()?.max(1),
            "NUMPROCESSES" => self.connections = Some(value.parse::<usize>()?.clamp(1, 64)),
            "MAXREQUESTS" => self.requests_max = Some(value.parse::<usize>()?.clamp(1, 10_000)),
            "REPORTFREQUENCY" => self.report_every = Duration::try_from_secs_f64(value.parse()?)?,
            "RATEFILE" => self.rate_file = (!value.is_empty()).then(|| PathBuf::from(value)),
            "ENCODING" => {
                let plain = value.to_ascii_lowercase().replace('-', "");
                ensure!(plain == "utf8", "utf8 is the only encoding");
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_from(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "SKIPROWS" => self.rows_skipped = value.parse()?,
            "MAXROWS" => self.rows_max = limit(value)?,
            "SKIPCOLS" => {
                let names = value.split(',').map(|name| name.trim().to_owned());
                self.columns_skipped = names.filter(|name| !name.is_empty()).collect();
            }
            "TTL" => self.ttl_s = Some(value.parse()?),
            "INGESTRATE" => self.rows_per_second = limit(value)?.filter(|rate| *rate > 0),
            "CHUNKSIZE" => self.chunk_rows = value.parse::<usize>()?.max(1),
            "MAXBATCHSIZE" => self.batch_rows = value.parse::<usize>()?.clamp(1, 1_000),
            "NULLASUNSET" => self.null_as_unset = truth(value)?,
            "ERRFILE" => self.error_file = (!value.is_empty()).then(|| PathBuf::from(value)),
            "MAXPARSEERRORS" => self.parse_errors_max = limit(value)?,
            "MAXINSERTERRORS" => self.insert_errors_max = limit(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_to(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "PAGESIZE" => self.page_rows = value.parse::<i32>()?.max(1),
            "PAGETIMEOUT" => self.page_timeout = Duration::from_secs(value.parse::<u64>()?.max(1)),
            "BEGINTOKEN" => self.begin_token = Some(value.parse()?),
            "ENDTOKEN" => self.end_token = Some(value.parse()?),
            "MAXOUTPUTSIZE" => self.rows_per_file = limit(value)?.filter(|rows| *rows > 0),
            "FLOATPRECISION" => self.values.float = Some(value.parse()?),
            "DOUBLEPRECISION" => self.values.double = Some(value.parse()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn truth(value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => bail!("true or false"),
    }
}

/// A limit; negative numbers mean none.
fn limit(value: &str) -> Result<Option<u64>> {
    let number: i64 = value.parse()?;
    Ok(u64::try_from(number).ok())
}

fn one_byte(value: &str) -> Result<u8> {
    match value.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ => bail!("one character of ASCII"),
    }
}

fn one_character(value: &str) -> Result<Option<char>> {
    let mut characters = value.chars();
    match (characters.next(), characters.next()) {
        (first, None) => Ok(first),
        _ => bail!("one character, or none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_read_with_its_options() {
        let text = "copy Feed.\"T x\" (a, \"B\") FROM '~x, *.csv' WITH header = TRUE AND DELIMITER='|' and maxrows=-1 AND NULL = ''";
        let (read, keyspace) = read(text, &Rc::default(), None).unwrap();
        assert_eq!((keyspace.as_str(), read.table.as_str()), ("feed", "T x"));
        assert_eq!(read.columns, ["a", "B"]);
        assert_eq!(read.direction, Direction::From(Some("~x, *.csv".to_owned())));
        assert!(
            read.options.header && read.options.marks.delimiter == b'|' && read.options.rows_max.is_none()
        );
        let (json, _) = super::read("COPY t TO 'x.json'", &Rc::default(), Some("ks")).unwrap();
        assert_eq!(json.options.content, Content::Json);
    }

    #[test]
    fn what_is_not_supported_is_refused_by_name() {
        for (text, expected) in [
            ("COPY t FROM 'x' WITH CONFIGFILE = '/nowhere/y'", "cannot read /nowhere/y"),
            ("COPY t FROM 'x' WITH MINBATCHSIZE = 1", "MINBATCHSIZE"),
            ("COPY t FROM 'x' WITH PAGESIZE = 1", "PAGESIZE"),
            ("COPY t FROM 'x' WITH HEADER = yes", "HEADER"),
            ("COPY t TO 'x.parquet'", "helenus export --parquet"),
            ("COPY t TO 'x.CSV.GZ' WITH HEADER = true", "| gzip > FILE"),
            ("COPY t FROM 'a.csv, b.jsonl.zst'", "zstd -dc FILE |"),
            ("COPY t FROM '*.avro'", "convert it"),
            ("COPY t FROM x", "between quotes"),
            ("COPY t", "FROM or TO"),
            ("COPY t TO 'x' WITH DELIMITER = 'ab'", "one character"),
        ] {
            let error = format!("{:#}", read(text, &Rc::default(), Some("ks")).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
