//! Chooses the source of statements: the command line, a file, a pipe, or an interactive terminal.

use super::ShellOptions;
use super::catalog::Catalog;
use super::edit;
use super::interpreter::{Server, Settings, Shell, is_closed_pipe};
use super::output::Sink;
use super::rc::Rc;
use super::session::{Asked, Credentials, Endpoint, Interrupt, Session};
use crate::commands::passwords::{first_line, of_environment, read_secret, warn_of_command_line};
use crate::commands::serve::{InProcess, Source};
use anyhow::{Context, Result, bail};
use helenus_server::native::OwnClients;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read, stdin, stdout};
use std::path::Path;
use std::rc;
use std::sync::Arc;

/// Connects and runs all statements.
///
/// # Errors
/// No connection; a statement that failed, unless the shell was interactive.
pub fn run(options: &ShellOptions) -> Result<()> {
    if options.password.is_some() && !options.insecure_password_without_warning {
        warn_of_command_line();
    }
    let (mut options, mut notes) = (options.clone(), Vec::new());
    options.read_environment(&|name| std::env::var(name).ok())?;
    let rc = Rc::find(options.cqlshrc.as_deref())?;
    rc.apply(&mut options, &mut notes)?;
    // Before anything can fail for the reasons that they give.
    notes.iter().for_each(|text| note!("Warning: {text}"));
    let source = match (&options.data, &options.sstables) {
        (Some(data), _) => Some((Source::Directory(data), format!("{}, without a server", data.display()))),
        (None, Some(folder)) => Some((
            Source::SsTables(folder, options.schema.as_deref()),
            format!("the SSTables in {}; what is written ends with the shell", folder.display()),
        )),
        (None, None) if options.memory => {
            Some((Source::Memory, "a database in memory, which ends with the shell".to_owned()))
        }
        (None, None) => None,
    };
    if let Some((source, name)) = source {
        let database = InProcess::open(source)?;
        let inside =
            Inside { address: database.address().to_string(), clients: database.clients.clone(), name };
        let done = with_options(&options, &rc, Some(inside));
        let closed = database.close();
        return done.and(closed);
    }
    with_options(&options, &rc, None)
}

/// A database that this process has open itself.
struct Inside {
    address: String,
    clients: Arc<OwnClients>,
    name: String,
}

fn with_options(options: &ShellOptions, rc: &Rc, inside: Option<Inside>) -> Result<()> {
    let at_terminal = stdin().is_terminal();
    let is_interactive = options.execute.is_none() && options.file.is_none() && (at_terminal || options.tty);
    let interrupt = Interrupt::default();
    let endpoint = match inside {
        Some(Inside { address, clients, name }) => Endpoint {
            address,
            credentials: None,
            tls: None,
            version: options.version(),
            request_timeout: options.patience(),
            inside: Some((clients, name)),
        },
        None => endpoint(options, at_terminal)?,
    };
    let session = Session::open(endpoint, interrupt.clone())?;
    let server: Server = rc::Rc::new(RefCell::new((session, Catalog::default())));
    if let Some(keyspace) = &options.keyspace {
        server.borrow_mut().0.use_keyspace(keyspace)?;
    }
    let is_terminal = is_interactive && at_terminal && stdout().is_terminal();
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term.is_empty() || term == "dumb");
    let in_colour = options.color || !options.no_color && stdout().is_terminal() && !is_dumb;
    let settings = Settings {
        asked: Asked::plain(),
        is_paging: true,
        page_size: options.page_size,
        format: options.format,
        // Programs that read the output rely on one line a row.
        expand: if is_terminal { None } else { Some(false) },
        timing: false,
        is_terminal,
        stop_on_error: options.stop_on_error,
    };
    let mut shell = Shell::new(server, settings, Sink::new(in_colour));
    let mut notes = Vec::new();
    rc.values(&mut shell.rules, &mut notes)?;
    shell.defaults = rc.clone();
    notes.iter().for_each(|text| note!("Warning: {text}"));
    let done = match (&options.execute, options.file.as_deref().filter(|file| *file != Path::new("-"))) {
        _ if is_interactive => return edit::run_interactive(&mut shell, options, &interrupt),
        (Some(text), _) => shell.run_lines(&mut format!("{text}\n;").as_bytes(), None),
        (None, Some(file)) => {
            let input = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
            shell.run_lines(&mut BufReader::new(input), Some(&file.display().to_string()))
        }
        (None, None) => shell.run_lines(&mut StandardInput, Some("<stdin>")),
    };
    match done {
        Ok(_) => {}
        Err(error) if is_closed_pipe(&error) => return Ok(()),
        Err(error) => return Err(error),
    }
    shell.sink.release()?;
    match shell.failures {
        0 => Ok(()),
        1 => bail!("a statement failed"),
        count => bail!("{count} statements failed"),
    }
}

fn endpoint(options: &ShellOptions, at_terminal: bool) -> Result<Endpoint> {
    let password = match (options.own_password.as_ref().or(options.password.as_ref()), &options.password_file)
    {
        (Some(password), _) => Some(password.clone()),
        (None, Some(file)) => Some(first_line(file)?),
        (None, None) => of_environment(),
    };
    let credentials = match (&options.username, password) {
        (None, _) => None,
        (Some(user), Some(password)) => Some(Credentials { user: user.clone(), password }),
        (Some(user), None) if at_terminal => {
            Some(Credentials { user: user.clone(), password: read_secret("Password: ")? })
        }
        (Some(_), None) => {
            bail!(
                "--username without a password: give --password-file or HELENUS_PASSWORD; there is no terminal to ask"
            )
        }
    };
    Ok(Endpoint {
        address: options.address(),
        credentials,
        tls: options.tls.client()?.cloned(),
        version: options.version(),
        request_timeout: options.patience(),
        inside: None,
    })
}

/// The standard input, locked only while a line is read, because COPY FROM STDIN reads on where its statement ends.
struct StandardInput;

impl Read for StandardInput {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        stdin().read(into)
    }
}

impl BufRead for StandardInput {
    // The only caller reads whole lines.
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn consume(&mut self, _: usize) {}

    fn read_line(&mut self, line: &mut String) -> std::io::Result<usize> {
        stdin().read_line(line)
    }
}
