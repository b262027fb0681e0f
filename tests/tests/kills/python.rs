//! A Python driver client that outlives the server: `tests/drivers/python/kills.py`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use end_to_end::Client;

/// The program. If a check fails, it exits.
pub struct Python {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Python {
    pub fn start() -> Python {
        let mut command = Client::program("python/kills.py");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start the Python driver's program");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Python { child, output }
    }

    /// Tells the program that the server is running again: it checks every acknowledged write, then writes until the
    /// server is gone.
    pub fn go_on(&mut self, address: &str) {
        let told = self.ask(address);
        assert!(told.starts_with("ready"), "the Python driver: {told}");
    }

    /// Checks everything once more. Returns the program's summary.
    pub fn end(&mut self, address: &str) -> String {
        self.ask(&format!("{address} end"))
    }

    fn ask(&mut self, line: &str) -> String {
        let input = self.child.stdin.as_mut().expect("its input");
        writeln!(input, "{line}").expect("the Python driver's program runs");
        let mut told = String::new();
        self.output.read_line(&mut told).expect("a line");
        assert!(!told.is_empty(), "the Python driver's program has ended: {:?}", self.child.wait());
        told.trim_end().to_owned()
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
