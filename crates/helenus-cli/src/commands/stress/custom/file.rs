//! Reads the file of a user-defined workload.
//!
//! ```toml
//! keyspace = "shop"
//! schema = ["CREATE TABLE IF NOT EXISTS orders (customer int, placed timeuuid, what text, PRIMARY KEY (customer, placed))"]
//!
//! [[statement]]
//! name = "order"
//! cql = "INSERT INTO orders (customer, placed, what) VALUES (:customer, :placed, :what)"
//! weight = 1
//!
//! [values]
//! customer = { zipf = [1, 100000] }
//! ```
//! The value of a marker is the one that has its name; `?` has the name of its column.

use super::error::FileError;
use super::value::{Generator, Spec};
use super::work::{Request, Work};
use crate::commands::client::{BlockingClient, PreparedStatement, Session};
use crate::commands::stress::interface::Interface;
use crate::commands::stress::options::LoadOptions;
use crate::commands::stress::workload::Workload;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Maximum sum of weights. A round has that number of requests, and each statement has its exact share of them.
const WEIGHTS_MAX: u64 = 10_000;
/// Maximum number of statements; each has results of its own.
const STATEMENTS_MAX: usize = 64;

/// A parsed file.
pub(in super::super) struct File {
    path: PathBuf,
    text: String,
    content: Content,
}

/// The content of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    keyspace: Option<Spanned<String>>,
    #[serde(default)]
    schema: Vec<Spanned<String>>,
    #[serde(default)]
    statement: Vec<Spanned<Statement>>,
    #[serde(default)]
    values: BTreeMap<String, Spanned<Spec>>,
}

/// A statement of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    name: Option<String>,
    cql: Spanned<String>,
    /// Its share of the requests, relative to the weights of the others.
    #[serde(default = "one")]
    weight: Spanned<u64>,
    /// The number of rows that each answer must have.
    rows: Option<u64>,
}

fn one() -> Spanned<u64> {
    Spanned::new(0..0, 1)
}

impl File {
    /// Reads a file and checks it as far as possible without a server.
    ///
    /// # Errors
    /// The file cannot be read; an error in it, with its line.
    pub fn read(path: &Path) -> Result<File> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(File::parse(path, text)?)
    }

    fn parse(path: &Path, text: String) -> Result<File, FileError> {
        let content: Content = toml::from_str(&text)
            .map_err(|error| FileError::at(path, &text, error.span(), hint(error.message())))?;
        let file = File { path: path.to_owned(), text, content };
        file.check()?;
        Ok(file)
    }

    fn check(&self) -> Result<(), FileError> {
        let statements = &self.content.statement;
        if statements.is_empty() {
            return Err(self.wrong(
                None,
                "it has no statement: write one as\n\n[[statement]]\nname = \"read\"\ncql = \"SELECT * FROM table WHERE key = \
                 :key\"",
            ));
        }
        if let Some(extra) = statements.get(STATEMENTS_MAX) {
            return Err(self.wrong(Some(extra.span()), format!("at most {STATEMENTS_MAX} statements")));
        }
        let mut sum = 0_u64;
        for statement in statements {
            let weight = &statement.as_ref().weight;
            sum = sum.saturating_add(*weight.as_ref());
            if *weight.as_ref() == 0 || sum > WEIGHTS_MAX {
                let problem = format!(
                    "a weight is a whole number above 0, and all together are at most {WEIGHTS_MAX}: write smaller ones"
                );
                return Err(self.wrong(Some(weight.span()), problem));
            }
        }
        Ok(())
    }

    /// An error at a position in the file.
    fn wrong(&self, span: Option<Range<usize>>, problem: impl fmt::Display) -> FileError {
        FileError::at(&self.path, &self.text, span, problem)
    }

    /// The keyspace of the file, or `otherwise` if it names none.
    pub fn keyspace(&self, otherwise: &str) -> String {
        let own = self.content.keyspace.as_ref().map(|keyspace| keyspace.as_ref().clone());
        own.unwrap_or_else(|| otherwise.to_owned())
    }

    /// Creates the keyspace and the schema, and prepares the statements and the generators of their values.
    ///
    /// # Errors
    /// The server refuses a statement; a marker has no value, or a value that its type cannot hold.
    pub fn prepare(&self, caller: &mut BlockingClient, load: &LoadOptions) -> Result<Box<dyn Workload>> {
        load.ensure_known("run", &[Interface::Prepared])?;
        super::super::run::make_keyspace(caller, load)?;
        let BlockingClient::Cql(session) = caller else { anyhow::bail!("statements over CQL alone") };
        session.run(&format!("USE {}", load.keyspace))?;
        for statement in &self.content.schema {
            session
                .run(statement.as_ref())
                .map_err(|error| self.wrong(Some(statement.span()), refused(&error)))?;
        }
        let mut requests = Vec::new();
        for (number, statement) in self.content.statement.iter().enumerate() {
            requests.push(self.request(session, number, statement.as_ref())?);
        }
        let weights: Vec<u64> =
            self.content.statement.iter().map(|statement| *statement.as_ref().weight.as_ref()).collect();
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Box::new(Work::new(name, session.version(), requests, &weights)))
    }

    fn request(&self, session: &mut Session, number: usize, statement: &Statement) -> Result<Request> {
        let cql = &statement.cql;
        let wrong = |problem: String| self.wrong(Some(cql.span()), problem);
        let prepared = session.prepare(cql.as_ref()).map_err(|error| wrong(refused(&error)))?;
        let values = self.generators(&prepared, statement)?;
        let name = statement.name.clone().unwrap_or_else(|| format!("statement {}", number + 1));
        Ok(Request { name, prepared, values, rows: statement.rows })
    }

    /// The generators for the markers of a statement.
    fn generators(&self, prepared: &PreparedStatement, statement: &Statement) -> Result<Vec<Generator>> {
        let mut generators = Vec::new();
        for (name, ty) in &prepared.variables {
            let Some(spec) = self.content.values.get(name) else {
                let problem = format!(
                    "no value for the marker `{name}`, which is of type {ty}: write under [values] how it is made, as\n\n\
                     [values]\n{name} = {{ uniform = [1, 1000000] }}"
                );
                return Err(self.wrong(Some(statement.cql.span()), problem).into());
            };
            let generator = Generator::new(name, spec.as_ref(), ty);
            generators.push(generator.map_err(|problem| {
                self.wrong(Some(spec.span()), format!("value `{name}`, of type {ty}: {problem}"))
            })?);
        }
        Ok(generators)
    }
}

/// The server's error without the statement's text, which the quoted line shows already.
fn refused(error: &anyhow::Error) -> String {
    format!("the server refuses this: {}", error.root_cause())
}

/// Adds to a parser error what the file may contain at that position.
fn hint(message: &str) -> String {
    let known = if message.contains("unknown field") {
        "\nA file has keyspace, schema, [[statement]] with name, cql, weight, rows, and [values] with sequence, uniform, zipf, \
         choice or now, and length, prefix, count"
    } else {
        ""
    };
    format!("{message}{known}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        match File::parse(Path::new("shop.toml"), text.to_owned()) {
            Ok(_) => panic!("accepted: {text}"),
            Err(error) => error.to_string(),
        }
    }

    const STATEMENT: &str = "[[statement]]\ncql = 'SELECT * FROM t'\n";

    #[test]
    fn a_file_has_statements_with_weights_and_values() {
        let text = "keyspace = 'shop'\nschema = ['CREATE TABLE t (k int PRIMARY KEY)']\n[[statement]]\nname = 'read'\n\
                    cql = 'SELECT * FROM t WHERE k = :k'\nweight = 9\nrows = 1\n[values]\nk = { uniform = [1, 10] }\n";
        let file = File::parse(Path::new("shop.toml"), text.to_owned()).unwrap();
        assert_eq!(file.keyspace("stress"), "shop");
        assert_eq!(file.content.statement[0].as_ref().weight.as_ref(), &9);
        assert_eq!(file.content.values["k"].as_ref().uniform, Some((1, 10)));
        let file = File::parse(Path::new("a"), STATEMENT.to_owned()).unwrap();
        assert_eq!(file.keyspace("stress"), "stress");
        assert_eq!(file.content.statement[0].as_ref().weight.as_ref(), &1);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_what_to_write() {
        let text = refusal("keyspace = 'a'\n");
        assert!(text.starts_with("shop.toml: it has no statement: write one as"), "{text}");
        let text = refusal(&format!("{STATEMENT}wieght = 3\n"));
        assert!(text.starts_with("shop.toml:3: unknown field `wieght`"), "{text}");
        assert!(text.contains("name, cql, weight, rows"), "{text}");
        let text = refusal(&format!("{STATEMENT}\nweight = 0\n"));
        assert!(text.starts_with("shop.toml:4: a weight is a whole number above 0"), "{text}");
        let text = refusal("keyspace = 'a'\n[[statement]]\nname = 'x'\n");
        assert!(text.starts_with("shop.toml:2: missing field `cql`"), "{text}");
        let text = refusal(&format!("{STATEMENT}[values]\nk = {{ uniform = 'x' }}\n"));
        assert!(text.starts_with("shop.toml:4:"), "{text}");
        let text = refusal("keyspace = \n");
        assert!(text.starts_with("shop.toml:1:"), "{text}");
    }
}
