//! Runs statements one after the other: the shell's own commands itself, all others on the server.

use super::catalog::Catalog;
use super::command::{self, Command, Expand, Paging, Switch};
use super::copy;
use super::help::help;
use super::output::{Format, Sink};
use super::rc::Rc as Defaults;
use super::refusal::Refused;
use super::session::{Asked, Credentials, Session};
use super::statement::{Statement, take_apart};
use super::suggest::suggestion;
use super::trace::traced;
use super::value::{RED, RESET, ValueRules};
use crate::commands::passwords::read_secret;
use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Maximum nesting of SOURCE commands.
const SOURCE_DEPTH: usize = 16;

/// The session and the catalog, shared with the line editor's completion.
pub type Server = Rc<RefCell<(Session, Catalog)>>;

/// The user's settings.
pub struct Settings {
    pub asked: Asked,
    pub is_paging: bool,
    pub page_size: i32,
    pub format: Format,
    /// Whether each row is a block of lines; `None`: if the table would be wider than the terminal.
    pub expand: Option<bool>,
    pub timing: bool,
    /// Whether the output is a terminal, so that pages wait for a key.
    pub is_terminal: bool,
    pub stop_on_error: bool,
}

/// The shell.
pub struct Shell {
    pub server: Server,
    pub settings: Settings,
    pub sink: Sink,
    /// Number of statements that have failed so far.
    pub failures: usize,
    /// The formatting rules of values.
    pub rules: ValueRules,
    /// The defaults of the user's cqlshrc file, for the options of COPY.
    pub defaults: Defaults,
    /// The stack of running SOURCE files.
    sources: Vec<PathBuf>,
    /// The statements that HISTORY shows.
    pub history: Vec<String>,
    /// Whether the rows of the present result are blocks.
    pub(super) is_expanded: bool,
}

impl Shell {
    /// A shell that has run nothing yet.
    pub fn new(server: Server, settings: Settings, sink: Sink) -> Shell {
        let rules = ValueRules::default();
        Shell {
            server,
            settings,
            sink,
            failures: 0,
            rules,
            defaults: Defaults::default(),
            sources: Vec::new(),
            history: Vec::new(),
            is_expanded: false,
        }
    }

    /// Runs the statements of `input` as their lines arrive. `name` and the line number precede error messages; `None`
    /// for statements of the command line.
    ///
    /// # Errors
    /// The input cannot be read, results cannot be written. A failing statement is counted and reported, and is not an
    /// error.
    pub fn run_lines(&mut self, input: &mut dyn BufRead, name: Option<&str>) -> Result<ControlFlow<()>> {
        let (mut text, mut lines_before) = (String::new(), 0);
        loop {
            let is_end = input.read_line(&mut text).context("cannot read the statements")? == 0;
            if lines_before == 0 && text.starts_with('\u{feff}') {
                text.remove(0);
            }
            if is_end {
                // The end of the file also ends the last line.
                text.push('\n');
            }
            let taken = take_apart(&text);
            if taken.statements.is_empty() && taken.open.is_some() && !is_end {
                continue;
            }
            for statement in &taken.statements {
                let before = self.failures;
                let statement = Statement { line: statement.line + lines_before, ..statement.clone() };
                let flow = self.run(&statement, name)?;
                if flow.is_break() || self.settings.stop_on_error && self.failures > before {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let rest = taken.open.and_then(|open| text.get(open..)).unwrap_or_default().to_owned();
            lines_before += text.get(..text.len() - rest.len()).unwrap_or_default().matches('\n').count();
            if is_end {
                if !rest.trim().is_empty() {
                    let begin: String = rest.trim().chars().take(60).collect();
                    let error = anyhow!("Incomplete statement at end of file: {begin}");
                    self.fail(&error, name.map(|name| (name, lines_before + 1)));
                }
                return Ok(ControlFlow::Continue(()));
            }
            text = rest;
        }
    }

    /// Runs one statement. Returns `Break` if it ends the shell.
    ///
    /// # Errors
    /// As [`Shell::run_lines`].
    pub fn run(&mut self, statement: &Statement, name: Option<&str>) -> Result<ControlFlow<()>> {
        let done = match command::read(&statement.text) {
            Ok(None) => self.run_on_server(&statement.text).map(|()| ControlFlow::Continue(())),
            Ok(Some(Command::Means(other))) => self.run_on_server(&other).map(|()| ControlFlow::Continue(())),
            Ok(Some(command)) => self.obey(command, &statement.text),
            Err(error) => Err(error),
        };
        match done {
            Ok(flow) => Ok(flow),
            Err(error) if is_closed_pipe(&error) => Err(error),
            Err(error) => {
                self.fail(&error, name.map(|name| (name, statement.line)));
                if let Some(question) = self.suggestion(&error, &statement.text) {
                    note!("{question}");
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// The name that was probably meant, if the server does not know one of the statement.
    fn suggestion(&mut self, error: &anyhow::Error, statement: &str) -> Option<String> {
        let Refused(refused) = error.downcast_ref::<Refused>()?;
        let (session, catalog) = &mut *self.server.borrow_mut();
        let current = session.keyspace().map(str::to_owned);
        let keyspaces = catalog.keyspaces(session).ok()?;
        suggestion(&refused.message, statement, keyspaces, current.as_deref())
    }

    /// Counts and prints a failure.
    fn fail(&mut self, error: &anyhow::Error, place: Option<(&str, usize)>) {
        self.failures += 1;
        let place = place.map(|(name, line)| format!("{name}:{line}:")).unwrap_or_default();
        let (colour, reset) = if self.sink.in_colour() { (RED, RESET) } else { ("", "") };
        note!("{colour}{place}{error:#}{reset}");
    }

    fn obey(&mut self, command: Command, text: &str) -> Result<ControlFlow<()>> {
        match command {
            Command::Exit => return Ok(ControlFlow::Break(())),
            Command::Nothing | Command::Means(_) => {}
            Command::Help(topics) => put!("{}", help(&topics))?,
            Command::Clear => put!("\x1b[H\x1b[2J")?,
            Command::Consistency(None) => {
                say!("Current consistency level is {}.", self.settings.asked.consistency)?;
            }
            Command::Consistency(Some(level)) => {
                self.settings.asked.consistency = level;
                say!("Consistency level set to {level}.")?;
            }
            Command::SerialConsistency(None) => {
                say!("Current serial consistency level is {}.", self.settings.asked.serial_consistency)?;
            }
            Command::SerialConsistency(Some(level)) => {
                self.settings.asked.serial_consistency = level;
                say!("Serial consistency level set to {level}.")?;
            }
            Command::Switch(switch, to) => {
                let current = match switch {
                    Switch::Tracing => &mut self.settings.asked.tracing,
                    Switch::Timing => &mut self.settings.timing,
                };
                Self::switch(switch.name(), current, to)?;
            }
            Command::Expand(to) => self.expand(to)?,
            Command::Paging(given) => self.set_paging(given)?,
            Command::Format(given) => self.set_format(given.as_deref())?,
            Command::ShowVersion => self.show_version()?,
            Command::ShowHost => self.show_host()?,
            Command::ShowSession(id) => {
                let id = id.parse().with_context(|| format!("SHOW SESSION takes a UUID, not {id}"))?;
                self.show_trace(id, true)?;
            }
            Command::Source(file) => return self.source(&file),
            Command::Capture(given) => self.capture(given.as_deref())?,
            Command::Login { user, password } => {
                let password = match password {
                    Some(password) => password,
                    None => read_secret("Password: ")?,
                };
                self.server.borrow_mut().0.log_in(Credentials { user, password })?;
            }
            Command::Copy => self.copy(text)?,
            Command::History(count) => {
                let from = self.history.len().saturating_sub(count.unwrap_or(50));
                self.history.iter().skip(from).try_for_each(|line| say!("{line}"))?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn expand(&mut self, to: Option<Expand>) -> Result<()> {
        let current = match (to, self.settings.expand) {
            (Some(Expand::Automatic), _) => {
                self.settings.expand = None;
                return Ok(say!("EXPAND set to AUTO")?);
            }
            (Some(Expand::Always), None) => false,
            (Some(Expand::Never), None) => true,
            (None, None) => return Ok(say!("EXPAND is AUTO: ON for tables wider than the terminal")?),
            (_, Some(current)) => current,
        };
        let mut changed = current;
        Self::switch("EXPAND", &mut changed, to.map(|to| to == Expand::Always))?;
        self.settings.expand = Some(changed);
        Ok(())
    }

    fn switch(name: &str, current: &mut bool, to: Option<bool>) -> Result<()> {
        let word = |on: bool| if on { "ON" } else { "OFF" };
        match to {
            None => say!("{name} is {}", word(*current))?,
            Some(to) if to == *current => say!("{name} is already {}", word(to))?,
            Some(to) => {
                *current = to;
                say!("{name} set to {}", word(to))?;
            }
        }
        Ok(())
    }

    fn set_paging(&mut self, given: Option<Paging>) -> Result<()> {
        match given {
            Some(Paging::Rows(rows)) => (self.settings.is_paging, self.settings.page_size) = (true, rows),
            Some(Paging::On) => self.settings.is_paging = true,
            Some(Paging::Off) => self.settings.is_paging = false,
            None => {}
        }
        match self.settings.is_paging {
            true => say!("PAGING is ON\nPage size: {}", self.settings.page_size)?,
            false => say!("PAGING is OFF")?,
        }
        Ok(())
    }

    fn set_format(&mut self, given: Option<&str>) -> Result<()> {
        if let Some(name) = given {
            let found = Format::from_str(name, true);
            self.settings.format =
                found.map_err(|_| anyhow!("FORMAT takes TABLE, JSON or CSV, not {name}"))?;
        }
        say!("FORMAT is {}", self.settings.format.name().to_uppercase())?;
        Ok(())
    }

    /// Cluster name, server version and CQL version from `system.local`.
    fn local(&mut self) -> Result<[String; 3]> {
        let query = "SELECT cluster_name, release_version, cql_version FROM system.local";
        let rows = self.server.borrow_mut().0.rows(query)?;
        let mut cells = rows.into_iter().flatten();
        let mut next = || String::from_utf8_lossy(&cells.next().flatten().unwrap_or_default()).into_owned();
        Ok([next(), next(), next()])
    }

    /// Prints the cluster and the address of the connection.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn show_host(&mut self) -> Result<()> {
        let [cluster, ..] = self.local()?;
        let endpoint = self.server.borrow().0.endpoint.clone();
        if let Some((_, name)) = endpoint.inside {
            say!("Opened {name}")?;
            return Ok(());
        }
        let address = endpoint.address;
        let (colour, reset) = if self.sink.in_colour() { (super::value::BLUE, RESET) } else { ("", "") };
        say!("Connected to {colour}{cluster}{reset} at {address}")?;
        Ok(())
    }

    /// Prints the versions of shell, server, CQL and protocol.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn show_version(&mut self) -> Result<()> {
        let [_, release, cql] = self.local()?;
        let protocol = self.server.borrow().0.version().number();
        let ours = env!("CARGO_PKG_VERSION");
        say!("[helenus shell {ours} | Cassandra {release} | CQL spec {cql} | Native protocol v{protocol}]")?;
        Ok(())
    }

    fn source(&mut self, file: &str) -> Result<ControlFlow<()>> {
        let path = expand_home(file);
        if self.sources.len() >= SOURCE_DEPTH {
            bail!("{file}: files that run files, {SOURCE_DEPTH} deep");
        }
        let input = File::open(&path).with_context(|| format!("Could not open '{file}'"))?;
        self.sources.push(path);
        let done = self.run_lines(&mut BufReader::new(input), Some(file));
        self.sources.pop();
        // EXIT within the file ends only the file.
        done.map(|_| ControlFlow::Continue(()))
    }

    fn capture(&mut self, given: Option<&str>) -> Result<()> {
        match (given, self.sink.captured()) {
            (None, Some(path)) => say!("Currently capturing query output to '{}'.", path.display())?,
            (None, None) => say!("Currently not capturing query output.")?,
            (Some(""), None) => bail!("Not currently capturing output."),
            (Some(""), Some(_)) => {
                self.sink.release()?;
            }
            (Some(_), Some(path)) => {
                bail!("Already capturing output to {}. Use CAPTURE OFF to disable.", path.display())
            }
            (Some(file), None) => {
                self.sink.capture(&expand_home(file))?;
                say!("Now capturing query output to '{file}'.")?;
            }
        }
        Ok(())
    }

    /// Shows the trace of a request.
    ///
    /// # Errors
    /// There is no trace with this id.
    pub(super) fn show_trace(&mut self, id: uuid::Uuid, is_over: bool) -> Result<()> {
        let in_colour = self.sink.in_colour();
        let text = traced(&mut self.server.borrow_mut().0, id, is_over, in_colour)?;
        self.sink.write(&text)
    }

    fn copy(&mut self, text: &str) -> Result<()> {
        let (session, catalog) = &mut *self.server.borrow_mut();
        let mut place = copy::CopyContext { session, catalog, consistency: self.settings.asked.consistency };
        copy::run(text, &self.defaults, &mut place)
    }
}

/// Replaces a leading `~/` by the home directory.
pub fn expand_home(file: &str) -> PathBuf {
    match (file.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(file),
    }
}

/// Whether the error means that the reader of the results has closed the pipe.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
