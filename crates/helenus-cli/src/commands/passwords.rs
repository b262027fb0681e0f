//! Names and passwords for logins: from the command line, the environment, a file, or a terminal without echo.

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{IsTerminal, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The variable of the environment that may have the password.
const VARIABLE: &str = "HELENUS_PASSWORD";

/// The variable of the environment that may have the name.
pub const USER_VARIABLE: &str = "HELENUS_USERNAME";

/// The name of a role and its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} *******", self.user)
    }
}

/// The options of a login, for commands that connect to a server.
#[derive(Args, Clone, Default)]
pub struct LoginOptions {
    /// Log in as this role [default: HELENUS_USERNAME]
    #[arg(short, long, global = true, value_name = "NAME")]
    pub username: Option<String>,
    /// Password; other users of this machine see it in the list of processes, so better use --password-file or
    /// HELENUS_PASSWORD. Asked for at a terminal if there is none
    #[arg(short, long, global = true, value_name = "PASSWORD")]
    pub password: Option<String>,
    /// File whose first line is the password
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "password")]
    pub password_file: Option<PathBuf>,
    #[arg(skip)]
    found: OnceLock<Option<Login>>,
}

impl std::fmt::Debug for LoginOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.username)
    }
}

impl LoginOptions {
    /// The options that lead to this login.
    pub fn of(login: Option<Login>) -> LoginOptions {
        LoginOptions { found: OnceLock::from(login), ..LoginOptions::default() }
    }

    /// The login, if a name was given. The first call may ask at the terminal.
    ///
    /// # Errors
    /// There is no password, or its file cannot be read.
    pub fn login(&self) -> Result<Option<&Login>> {
        if let Some(found) = self.found.get() {
            return Ok(found.as_ref());
        }
        let of_environment = || std::env::var(USER_VARIABLE).ok().filter(|user| !user.is_empty());
        let user = self.username.clone().or_else(of_environment);
        let found = match user {
            None if self.password.is_some() || self.password_file.is_some() => {
                bail!("a password without a name: give --username too")
            }
            None => None,
            Some(user) => Some(Login { password: self.password_of(&user)?, user }),
        };
        Ok(self.found.get_or_init(|| found).as_ref())
    }

    fn password_of(&self, user: &str) -> Result<String> {
        if let Some(password) = &self.password {
            warn_of_command_line();
            return Ok(password.clone());
        }
        if let Some(file) = &self.password_file {
            return first_line(file);
        }
        if let Some(password) = of_environment() {
            return Ok(password);
        }
        if stdin().is_terminal() {
            return read_secret(&format!("Password of {user}: "));
        }
        bail!("--username without a password: give --password-file FILE or {VARIABLE}, or run at a terminal")
    }
}

/// Warns that others can read a password on the command line.
pub fn warn_of_command_line() {
    note!(
        "WARNING: other users of this machine see a password on the command line in the list of processes; use --password-file \
         or {VARIABLE}"
    );
}

/// The password of the environment, if there is one.
pub fn of_environment() -> Option<String> {
    std::env::var(VARIABLE).ok()
}

/// The first line of a file.
///
/// # Errors
/// The file cannot be read; its first line is empty.
pub fn first_line(file: &Path) -> Result<String> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    match text.lines().next().unwrap_or_default() {
        "" => bail!("{}: its first line is empty; write the password there", file.display()),
        password => Ok(password.to_owned()),
    }
}

/// Reads a line without echo, for a password.
///
/// # Errors
/// The terminal is gone.
pub fn read_secret(prompt: &str) -> Result<String> {
    let input = stdin();
    let mut out = stdout().lock();
    out.write_all(prompt.as_bytes())?;
    out.flush()?;
    let before = tcgetattr(&input)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Now, &silent)?;
    let mut line = String::new();
    let read = input.read_line(&mut line);
    tcsetattr(&input, OptionalActions::Now, &before)?;
    out.write_all(b"\n")?;
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
