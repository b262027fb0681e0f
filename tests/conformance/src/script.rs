//! Scripts: statements of CQL, each ended by `;`, and directives in comments that begin with `-- @`.
//!
//! | directive | meaning |
//! |---|---|
//! | `@pages 1 3 100` | page sizes that each following SELECT is run with (besides without pages) |
//! | `@consistency quorum`, `@serial local_serial` | levels of the following statements |
//! | `@timestamp 17`, `@timestamp none` | the default timestamp that goes with the following statements |
//! | `@bind 0x00000001 null unset` | values of the next statement's markers |
//! | `@execute` | the next statement is run prepared only |
//! | `@unordered` | the rows of the next statement may come in any order |
//! | `@superuser` | the next statement is run by the superuser alone, where the others are run by another role |
//! | `@accept ID` | the next statement differs as the entry `ID` of `docs/conformance.md` says |
//! | `@flush`, `@compact`, `@restart` | done to Helenus here |
//!
//! `${ks}` stands for the keyspace of the script, which is in use and empty when it begins.

use anyhow::{Context, Result, bail};
use helenus_wire::native::Consistency;

use crate::answer::CellBytes;

/// A step of a script and the line it begins in, from 1.
#[derive(Clone, Debug)]
pub struct Step {
    /// Where it stands.
    pub line: usize,
    /// What is done.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// A statement goes to both servers.
    Run(Statement),
    /// Helenus writes its memtables.
    Flush,
    /// Helenus compacts everything.
    Compact,
    /// Helenus is stopped and started again.
    Restart,
}

/// A value for a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Bytes or null.
    Value(CellBytes),
    /// Left as it is.
    Unset,
}

/// A statement with what goes with it.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its text without the `;` at its end.
    pub text: String,
    /// Values of its markers.
    pub bound: Vec<Bound>,
    /// Only prepared.
    pub only_prepared: bool,
    /// Rows may come in any order.
    pub any_order: bool,
    /// Run by the superuser alone.
    pub by_superuser: bool,
    /// The accepted difference it shows.
    pub accepts: Option<String>,
    /// What goes with every request.
    pub settings: Settings,
}

/// What stays in force from statement to statement.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Page sizes of SELECTs.
    pub pages: Vec<i32>,
    /// Level.
    pub consistency: Consistency,
    /// Level of conditions.
    pub serial: Option<Consistency>,
    /// Default timestamp, microseconds.
    pub timestamp_us: Option<i64>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { pages: vec![1, 3], consistency: Consistency::One, serial: None, timestamp_us: None }
    }
}

impl Statement {
    /// A statement without values.
    pub fn plain(text: impl Into<String>) -> Statement {
        Statement {
            text: text.into(),
            bound: Vec::new(),
            only_prepared: false,
            any_order: false,
            by_superuser: false,
            accepts: None,
            settings: Settings::default(),
        }
    }

    /// Its first word, in capitals.
    pub fn verb(&self) -> String {
        let word = self.text.split_whitespace().next().unwrap_or_default();
        word.trim_end_matches(|c: char| !c.is_ascii_alphabetic()).to_ascii_uppercase()
    }
}

/// The steps of a script.
///
/// # Errors
/// A directive that is none, a statement that does not end.
pub fn parse(text: &str, keyspace: &str) -> Result<Vec<Step>> {
    let mut reader = Reader { rest: text, line: 1 };
    let mut steps = Vec::new();
    let mut next = Statement::plain("");
    loop {
        match reader.boundary() {
            Boundary::End => return Ok(steps),
            Boundary::Comment(line, comment) => {
                let Some(directive) = comment.trim().strip_prefix('@') else { continue };
                let done =
                    apply(directive, &mut next).with_context(|| format!("line {line}: @{directive}"))?;
                steps.extend(done.map(|action| Step { line, action }));
            }
            Boundary::Statement(line) => {
                let text = reader.statement().with_context(|| format!("line {line}"))?;
                let settings = next.settings.clone();
                next.text = text.replace("${ks}", keyspace);
                let statement = std::mem::replace(&mut next, Statement::plain(""));
                next.settings = settings;
                steps.push(Step { line, action: Action::Run(statement) });
            }
        }
    }
}

fn apply(directive: &str, next: &mut Statement) -> Result<Option<Action>> {
    let mut words = directive.split_whitespace();
    let name = words.next().unwrap_or_default();
    let mut one = || words.next().context("a word is missing after it");
    let settings = &mut next.settings;
    match name {
        "flush" => return Ok(Some(Action::Flush)),
        "compact" => return Ok(Some(Action::Compact)),
        "restart" => return Ok(Some(Action::Restart)),
        "pages" => settings.pages = words.map(str::parse).collect::<Result<_, _>>()?,
        "consistency" => settings.consistency = level(one()?)?,
        "serial" => settings.serial = Some(level(one()?)?),
        "timestamp" => {
            let word = one()?;
            settings.timestamp_us = if word == "none" { None } else { Some(word.parse()?) };
        }
        "bind" => next.bound = words.map(bound).collect::<Result<_>>()?,
        "execute" => next.only_prepared = true,
        "superuser" => next.by_superuser = true,
        "unordered" => next.any_order = true,
        "accept" => next.accepts = Some(one()?.to_owned()),
        _ => bail!("there is no such directive; see tests/conformance/README.md"),
    }
    Ok(None)
}

fn level(word: &str) -> Result<Consistency> {
    let word = word.to_ascii_uppercase();
    let found = Consistency::ALL.iter().find(|level| level.to_string() == word);
    found.copied().with_context(|| format!("{word} is no consistency level"))
}

fn bound(word: &str) -> Result<Bound> {
    match word {
        "null" => Ok(Bound::Value(None)),
        "unset" => Ok(Bound::Unset),
        _ => {
            let digits =
                word.strip_prefix("0x").with_context(|| format!("{word} is not 0x.., null or unset"))?;
            let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2).unwrap_or("?"), 16);
            let bytes: Result<Vec<u8>, _> = (0..digits.len()).step_by(2).map(byte).collect();
            Ok(Bound::Value(Some(bytes.with_context(|| format!("{word} is no blob"))?)))
        }
    }
}

enum Boundary<'t> {
    Comment(usize, &'t str),
    Statement(usize),
    End,
}

struct Reader<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> Reader<'t> {
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// What comes next between statements.
    fn boundary(&mut self) -> Boundary<'t> {
        let space = self.rest.len() - self.rest.trim_start().len();
        self.take(space);
        let line = self.line;
        if self.rest.is_empty() {
            return Boundary::End;
        }
        if !self.rest.starts_with("--") {
            return Boundary::Statement(line);
        }
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        Boundary::Comment(line, &self.take(end)[2..])
    }

    /// A statement up to its `;`, which is passed; those inside of a batch, a string or a body do not end it.
    fn statement(&mut self) -> Result<String> {
        let upper =
            |text: &str| text.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("BEGIN "));
        let is_batch = upper(self.rest);
        let mut at = 0;
        loop {
            let rest = &self.rest[at..];
            let next = rest.find([';', '\'', '"', '$', '-']).context("the statement is not ended by `;`")?;
            at += next;
            let rest = &rest[next..];
            at += match rest.as_bytes() {
                [b';', ..] => {
                    let so_far = self.rest[..at].trim_end().to_ascii_uppercase();
                    if !is_batch || so_far.ends_with("BATCH") {
                        let text = self.take(at).to_owned();
                        self.take(1);
                        return Ok(text);
                    }
                    1
                }
                [b'$', b'$', ..] => 4 + rest[2..].find("$$").context("a body does not end")?,
                [b'-', b'-', ..] => rest.find('\n').unwrap_or(rest.len()),
                [quote @ (b'\'' | b'"'), ..] => {
                    2 + rest[1..].find(char::from(*quote)).context("a string does not end")?
                }
                _ => 1,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Vec<String> {
        let steps = parse(text, "k").unwrap();
        let texts = steps.into_iter().filter_map(|step| match step.action {
            Action::Run(statement) => Some(statement.text),
            _ => None,
        });
        texts.collect()
    }

    #[test]
    fn a_semicolon_in_a_string_a_body_or_a_batch_ends_nothing() {
        let text = "SELECT ';--' ; BEGIN BATCH INSERT; UPDATE; APPLY BATCH; CREATE FUNCTION AS $$ a; b $$;";
        let batch = "BEGIN BATCH INSERT; UPDATE; APPLY BATCH";
        assert_eq!(statements(text), ["SELECT ';--' ", batch, "CREATE FUNCTION AS $$ a; b $$"]);
    }

    #[test]
    fn directives_hold_for_the_next_statement_or_from_there_on() {
        let text = "-- @pages 2\n-- @bind 0x0102 null unset\nA ?;\n-- said\nUSE ${ks};\n-- @flush\n";
        let steps = parse(text, "k").unwrap();
        assert_eq!(steps.iter().map(|step| step.line).collect::<Vec<_>>(), [3, 5, 6]);
        let [Action::Run(a), Action::Run(b), Action::Flush] =
            [0, 1, 2].map(|at: usize| steps[at].action.clone())
        else {
            panic!("{steps:?}")
        };
        assert_eq!(a.bound, [Bound::Value(Some(vec![1, 2])), Bound::Value(None), Bound::Unset]);
        assert_eq!((b.text.as_str(), b.bound.len(), &b.settings.pages[..]), ("USE k", 0, &[2][..]));
    }
}
