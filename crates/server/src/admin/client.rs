//! The client of the admin socket, for tools.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::answer::AdminAnswer;
use super::request::AdminRequest;
use super::socket::{AdminError, check_folder};

/// Sends a request to the server behind `socket` and waits for the answer.
///
/// # Errors
/// No server answers, or the reply is not an answer.
pub fn ask(socket: &Path, request: &AdminRequest) -> Result<AdminAnswer, AdminError> {
    let no_server = |source| AdminError::NoServer { path: socket.to_owned(), source };
    let not_an_answer = |problem: String| AdminError::NotAnAnswer { path: socket.to_owned(), problem };
    check_folder(socket)?;
    let mut stream = UnixStream::connect(socket).map_err(no_server)?;
    let mut line = serde_json::to_string(request).map_err(|error| not_an_answer(error.to_string()))?;
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(no_server)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(no_server)?;
    serde_json::from_str(&answer).map_err(|error| not_an_answer(error.to_string()))
}
