//! `passwd [ROLE]`: sets the password of a role, also for who is locked out, because the admin socket belongs to the user
//! that runs the server.

use super::requests::{Server, unexpected};
use crate::commands::passwords::{first_line, read_secret};
use anyhow::{Result, bail};
use helenus_server::admin::{AdminAnswer, AdminRequest, Password};
use std::io::{IsTerminal, stdin};
use std::path::Path;

/// Sets the password.
///
/// # Errors
/// There is no such role; the two passwords typed differ; clients of the server need no password.
pub fn passwd(server: &Server, role: &str, file: Option<&str>) -> Result<()> {
    let password = match file {
        Some(file) => first_line(Path::new(file))?,
        None if stdin().is_terminal() => {
            let password = read_secret(&format!("New password of {role}: "))?;
            if read_secret("Once more: ")? != password {
                bail!("the two passwords differ; nothing was changed");
            }
            password
        }
        None => {
            let mut line = String::new();
            stdin().read_line(&mut line)?;
            line.trim_end_matches(['\r', '\n']).to_owned()
        }
    };
    let request = AdminRequest::SetPassword { role: role.to_owned(), password: Password(password) };
    match server.request(&request)? {
        AdminAnswer::Done => Ok(()),
        _ => unexpected(),
    }
}
