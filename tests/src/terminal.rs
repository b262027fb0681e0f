//! Runs a program on a pseudo-terminal: types keys and waits for output, as a person would.
//!
//! The program has a real terminal: it is the controlling terminal, has a size, echoes, and turns Ctrl-C into a signal.
//! `setsid --ctty` of util-linux sets it up, because safe code cannot take a terminal between fork and exec.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::binary;

/// Maximum time to wait for a text. Only a failing test takes that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running program and its terminal. The program is killed when this value is dropped.
pub struct Terminal {
    screen: File,
    child: Child,
    /// All output so far.
    written: Vec<u8>,
    /// The output as text, without escape sequences for cursor and colours.
    text: String,
    /// Bytes of `text` before the position where the next wait begins.
    passed: usize,
}

impl Terminal {
    /// Starts `helenus ARGS` on a terminal of 100 columns and 40 rows.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn start<S: AsRef<OsStr>>(args: &[S]) -> Self {
        let mut command = Command::new(binary());
        command.args(args);
        Self::run(&command, 100, 40)
    }

    /// Starts a program on a terminal of a given size. Arguments, environment and working directory are those of
    /// `command`; TERM is `xterm-256color` unless `command` sets it.
    ///
    /// # Panics
    /// It cannot be started.
    pub fn run(command: &Command, columns: u16, rows: u16) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let screen: OwnedFd = screen.expect("a pseudo-terminal");
        grantpt(&screen).expect("grant the pseudo-terminal");
        unlockpt(&screen).expect("unlock the pseudo-terminal");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&screen, size).expect("set the terminal's size");
        let name = ptsname(&screen, Vec::new()).expect("the terminal's name");
        let name = name.to_str().expect("a terminal's name in UTF-8");
        let open =
            || Stdio::from(File::options().read(true).write(true).open(name).expect("open the terminal"));
        let mut started = Command::new("setsid");
        started.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        started.env("TERM", "xterm-256color");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => started.env(name, value),
                None => started.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            started.current_dir(folder);
        }
        let child = started.stdin(open()).stdout(open()).stderr(open()).spawn();
        let child = child.unwrap_or_else(|error| panic!("start {command:?} with setsid: {error}"));
        Self { screen: File::from(screen), child, written: Vec::new(), text: String::new(), passed: 0 }
    }

    /// Types keys: `\t` completes, `\x03` is Ctrl-C, `\x04` is Ctrl-D, `\x1b[A` is the up arrow.
    ///
    /// # Panics
    /// The program is gone.
    pub fn keys(&mut self, keys: &str) {
        self.screen.write_all(keys.as_bytes()).unwrap_or_else(|error| panic!("type {keys:?}: {error}"));
    }

    /// Types a line and Enter.
    ///
    /// # Panics
    /// The program is gone.
    pub fn line(&mut self, line: &str) {
        self.keys(line);
        self.keys("\r");
    }

    /// Waits until `text` appears after the text of the last wait. Returns everything in between, including `text`.
    /// Escape sequences are removed, so a line that is redrawn appears again.
    ///
    /// # Panics
    /// The text does not appear within a minute, or the program ends before.
    pub fn expect(&mut self, text: &str) -> String {
        let began = Instant::now();
        loop {
            let rest = self.text.get(self.passed..).unwrap_or_default();
            if let Some(at) = rest.find(text) {
                let found = rest[..at + text.len()].to_owned();
                self.passed += found.len();
                return found;
            }
            let left = PATIENCE.saturating_sub(began.elapsed());
            assert!(self.read(left), "no {text:?} on the terminal:\n{}", self.text);
        }
    }

    /// Waits for the program's end. Returns its output since the last wait, and its exit code.
    ///
    /// # Panics
    /// It does not end within a minute, or is killed by a signal.
    pub fn end(mut self) -> (String, i32) {
        let began = Instant::now();
        while self.read(PATIENCE.saturating_sub(began.elapsed())) {}
        let status = self.child.try_wait().expect("ask for the program's end");
        // The terminal closes when the program ends, or a moment before.
        let status = match status {
            None if began.elapsed() < PATIENCE => {
                Some(self.child.wait().expect("wait for the program's end"))
            }
            status => status,
        };
        let rest = self.text.get(self.passed..).unwrap_or_default().to_owned();
        let status = status.unwrap_or_else(|| panic!("the program did not end:\n{}", self.text));
        let code = status.code().unwrap_or_else(|| panic!("{status}:\n{}", self.text));
        (rest, code)
    }

    /// All output so far, with escape sequences.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    /// Reads available output; false if none comes within `left`, or if the terminal is closed.
    fn read(&mut self, left: Duration) -> bool {
        let wait = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let ready = poll(&mut [PollFd::new(&self.screen, PollFlags::IN)], Some(&wait)).unwrap_or_default();
        let mut buffer = [0; 1 << 16];
        // A terminal that no process has open any more answers with EIO.
        let count = if ready == 0 { 0 } else { self.screen.read(&mut buffer).unwrap_or_default() };
        self.written.extend_from_slice(&buffer[..count]);
        self.text = without_escapes(&String::from_utf8_lossy(&self.written));
        count > 0
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Closing the terminal sends a hang-up to the program. An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Removes escape sequences (ECMA-48) and carriage returns.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        match next {
            '\x1b' => match rest.next() {
                // CSI: parameters up to a final byte.
                Some('[') => while rest.next().is_some_and(|byte| !('@'..='~').contains(&byte)) {},
                // OSC: up to BEL or ESC \.
                Some(']') => while rest.next().is_some_and(|byte| byte != '\x07' && byte != '\\') {},
                _ => {}
            },
            '\r' | '\x07' => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_movements_are_left_out() {
        assert_eq!(without_escapes("\x1b[0;1;31mred\x1b[0m\r\n\x1b]0;title\x07 text\x1b[2K"), "red\n text");
    }

    #[test]
    fn a_program_sits_at_a_terminal_of_its_own() {
        let mut command = Command::new("sh");
        command.args(["-c", "test -t 0 && test -t 1 && stty size && read line && echo got $line && exit 3"]);
        let mut terminal = Terminal::run(&command, 70, 20);
        terminal.expect("20 70");
        terminal.line("some words");
        terminal.expect("got some words");
        let (rest, code) = terminal.end();
        assert_eq!((rest.trim(), code), ("", 3));
    }
}
