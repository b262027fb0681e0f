//! One server process under test.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long a start may take before the test gives up. The target is 50 ms; replay after a kill takes longer.
const START_MAX: Duration = Duration::from_secs(120);
/// How long a stop may take: it flushes what is in memory.
const STOP_MAX: Duration = Duration::from_secs(120);

/// A running `helenus serve`, killed when dropped. Its directory goes with it.
pub struct Server {
    /// Holds `data` and the log of the process.
    folder: TempDir,
    args: Vec<String>,
    environment: Vec<(String, String)>,
    /// What a shell does before it becomes the server.
    before: String,
    child: Child,
    address: String,
    head: Vec<String>,
    start_time: Duration,
}

impl Server {
    /// Starts on an empty directory and a free port.
    ///
    /// # Panics
    /// If the binary is missing, ends, or does not say where it listens within two minutes.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with further arguments of `helenus serve`.
    pub fn start_with(args: &[&str]) -> Self {
        let folder = TempDir::with_prefix("helenus-e2e-").expect("a temporary directory");
        Self::start_in(folder, args)
    }

    /// The same in a folder that somebody prepared: the server takes or makes `data` in it.
    pub fn start_in(folder: TempDir, args: &[&str]) -> Self {
        Self::start_under(folder, args, &[])
    }

    /// The same with variables of the environment, at this start and the later ones.
    pub fn start_under(folder: TempDir, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let environment: Vec<(String, String)> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::start_as(folder, (args, environment, String::new()))
    }

    /// The same by a shell that does something before it becomes the server, at this start and the later ones: `umask 027`,
    /// `ulimit -n 256`.
    pub fn start_after(before: &str, folder: TempDir, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self::start_as(folder, (args, Vec::new(), before.to_owned()))
    }

    fn start_as(
        folder: TempDir,
        (args, environment, before): (Vec<String>, Vec<(String, String)>, String),
    ) -> Self {
        let begin = Instant::now();
        let (child, head, address) = spawn(folder.path(), &before, (&args, &environment));
        Self { folder, args, environment, before, child, address, head, start_time: begin.elapsed() }
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The directory given as `--data`; with `--memory` there is none, and this is what the server would make by itself.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The folder of its tables: one folder a keyspace, in it one a table.
    pub fn tables(&self) -> PathBuf {
        self.data().join("data")
    }

    /// What the process printed up to and including the line that says where it listens.
    pub fn head(&self) -> &[String] {
        &self.head
    }

    /// From the start of the process to that line.
    pub fn start_time(&self) -> Duration {
        self.start_time
    }

    /// The number of the process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`: the process has no say. Returns when it is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("kill the server");
        self.child.wait().expect("wait for the killed server");
    }

    /// SIGTERM, and waits for the end.
    ///
    /// # Panics
    /// If it does not end within two minutes.
    pub fn stop(&mut self) -> ExitStatus {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("send SIGTERM to the server");
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("ask for the server's end") {
                return status;
            }
            assert!(
                begin.elapsed() < STOP_MAX,
                "the server did not end within {STOP_MAX:?} of SIGTERM\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What the server says when it is started on the same directory and must refuse.
    ///
    /// # Panics
    /// If it starts.
    pub fn start_refused(&self) -> String {
        let mut command = Command::new(binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(self.data()).args(&self.args);
        let output = command.output().expect("run the server");
        assert!(!output.status.success(), "it started");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Further arguments for the next start.
    pub fn add_args(&mut self, args: &[&str]) {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
    }

    /// Starts again on the same directory, after [`Self::kill`] or [`Self::stop`]. The port may be another.
    pub fn restart(&mut self) {
        let begin = Instant::now();
        let (child, head, address) = spawn(self.folder.path(), &self.before, (&self.args, &self.environment));
        self.child = child;
        self.head = head;
        self.address = address;
        self.start_time = begin.elapsed();
    }

    /// `helenus admin ARGS --data DIR`; its output.
    ///
    /// # Panics
    /// If it fails.
    pub fn admin(&self, args: &[&str]) -> String {
        let output = Command::new(binary()).arg("admin").args(args).arg("--data").arg(self.data()).output();
        let output = output.expect("run helenus admin");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "helenus admin {args:?}: {}\n{text}{errors}{}",
            output.status,
            self.log()
        );
        text
    }

    /// The lines that the process wrote to its standard error, from all its starts. A line that it is just writing is not
    /// among them: a file grows by pages, so a reader may see the first half of a write.
    pub fn log(&self) -> String {
        let mut log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        log.truncate(whole_lines(&log));
        log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the server's log ---\n{}", self.log());
        }
        // It may have been killed or stopped before; then both answer with an error, and nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary under test.
///
/// # Panics
/// If it is not there.
pub fn binary() -> PathBuf {
    let path = crate::configured("HELENUS_BIN", "release/helenus");
    // In full, because the server gets another working directory.
    path.canonicalize().unwrap_or_else(|error| {
        panic!("no binary at {} ({error}): run `cargo build --release`, or set HELENUS_BIN", path.display())
    })
}

fn spawn(
    folder: &Path,
    before: &str,
    (args, environment): (&[String], &[(String, String)]),
) -> (Child, Vec<String>, String) {
    let log_path = folder.join("log");
    let log = File::options().create(true).append(true).open(&log_path).expect("open the server's log");
    let mut command = if before.is_empty() {
        Command::new(binary())
    } else {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{before}; exec \"$0\" \"$@\"")]).arg(binary());
        shell
    };
    command.arg("serve").args(args).current_dir(folder);
    if !args.iter().any(|arg| arg == "--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    // These say themselves where the data is.
    if !args.iter().any(|arg| ["--memory", "--adopt", "--gateway"].contains(&arg.as_str())) {
        command.arg("--data").arg(folder.join("data"));
    }
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("start the server");
    let output = child.stdout.take().expect("the server's output");
    let (sender, lines) = mpsc::sync_channel(100);
    // Reads to the end, so that the server never blocks on a full pipe, and passes on what somebody still takes. It ends
    // with the process.
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = sender.try_send(line);
        }
    });
    let mut head = Vec::new();
    loop {
        match lines.recv_timeout(START_MAX) {
            Ok(line) => {
                let address = listening(&line);
                head.push(line);
                if let Some(address) = address {
                    return (child, head, address);
                }
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                let log = std::fs::read_to_string(&log_path).unwrap_or_default();
                panic!("the server did not say where it listens ({error}); it printed {head:?}\n{log}");
            }
        }
    }
}

/// The address in a line such as `listening   127.0.0.1:9042  (CQL native protocol v3-v5)`, or in the same as JSON.
fn listening(line: &str) -> Option<String> {
    if line.contains("\"event\":\"listening\"") {
        let (_, rest) = line.split_once("\"address\":\"")?;
        return rest.split('"').next().map(str::to_owned);
    }
    let mut words = line.split_whitespace();
    (words.next()? == "listening").then(|| words.next().map(str::to_owned)).flatten()
}

/// The length of a text up to the end of its last whole line.
fn whole_lines(text: &str) -> usize {
    text.rfind('\n').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_being_written_is_left_out() {
        assert_eq!(whole_lines("{\"a\":1}\n{\"b\""), 8);
        assert_eq!(whole_lines("{\"a\":1}\n"), 8);
        assert_eq!(whole_lines("{\"a\""), 0);
    }

    #[test]
    fn the_address_is_the_word_after_listening() {
        let line = "  listening   127.0.0.1:41333  (CQL native protocol v3-v5)";
        assert_eq!(listening(line).as_deref(), Some("127.0.0.1:41333"));
        let line = r#"{"address":"127.0.0.1:7","event":"listening","level":"info"}"#;
        assert_eq!(listening(line).as_deref(), Some("127.0.0.1:7"));
        assert_eq!(listening("storing     /tmp/data"), None);
    }
}
