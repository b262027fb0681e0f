//! Runs the tutorial `docs/book/first-hour.md` as a reader would: its files are written, its commands run in one folder, and
//! their output compared with what the page shows.
//!
//! A line of the page that begins with `$` is a command; the lines below it are its output, with `...` for any text. A line
//! of dots alone stands for any lines. `helenus serve` gets a free port, which the other commands find in `HELENUS_HOST`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use end_to_end::{binary, root};
use tempfile::TempDir;

/// A command of the page and the output that it shows.
struct Step {
    command: String,
    output: Vec<String>,
}

fn page() -> String {
    fs::read_to_string(root().join("docs/book/first-hour.md")).expect("the page")
}

/// The commands, in order.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_block = false;
    for line in page.lines() {
        match line.strip_prefix("    ") {
            Some(line) if line.starts_with("$ ") => {
                is_block = true;
                steps.push(Step { command: line[2..].to_owned(), output: Vec::new() });
            }
            Some(line) if is_block => steps.last_mut().expect("a command").output.push(line.to_owned()),
            // An empty line may stand within an output.
            None if is_block && line.is_empty() => {
                steps.last_mut().expect("a command").output.push(String::new());
            }
            _ => is_block = false,
        }
    }
    for step in &mut steps {
        let end = step.output.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
        step.output.truncate(end);
    }
    steps
}

/// The block of a language.
fn block<'p>(page: &'p str, language: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("```").expect("its end").0
}

/// Whether a line fits one of the page, in which `...` stands for any text.
fn fits(shown: &str, line: &str) -> bool {
    let mut parts = shown.split("...");
    let Some(mut rest) = line.trim_end().strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let part = if at + 1 == parts.len() { part.trim_end() } else { part };
        let is_last = at + 1 == parts.len();
        let found = if is_last && !part.is_empty() { rest.rfind(part) } else { rest.find(part) };
        let Some(found) = found else { return false };
        rest = &rest[found + part.len()..];
        if is_last && !part.is_empty() && !rest.is_empty() {
            return false;
        }
    }
    !parts.is_empty() || rest.trim_end().is_empty()
}

/// Whether the lines are those of the page.
fn all_fit(shown: &[String], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.iter().all(|line| line.trim().is_empty()),
        Some((first, rest)) if first.trim() == "..." => {
            (0..=lines.len()).any(|from| all_fit(rest, &lines[from..]) || rest.is_empty())
        }
        Some((first, rest)) => match lines.split_first() {
            Some((line, lines)) => fits(first, line) && all_fit(rest, lines),
            None => false,
        },
    }
}

struct Reader {
    folder: TempDir,
    programs: PathBuf,
    server: Option<(Child, String)>,
}

impl Reader {
    fn begin() -> Reader {
        let folder = TempDir::with_prefix("helenus-first-hour-").expect("a temporary directory");
        let programs = folder.path().join("bin");
        fs::create_dir(&programs).expect("a folder");
        let helenus = fs::canonicalize(binary()).expect("the binary");
        std::os::unix::fs::symlink(helenus, programs.join("helenus")).expect("a link");
        Reader { folder, programs, server: None }
    }

    fn command(&self, words: &str) -> Command {
        let path = format!("{}:{}", self.programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command.args(["-c", words]).current_dir(self.folder.path()).env("PATH", path);
        command.env("HOME", self.folder.path()).stdin(Stdio::null());
        if let Some((_, address)) = &self.server {
            command.env("HELENUS_HOST", address);
        }
        command
    }

    /// Starts a server on a free port, and waits until it listens. Returns what it printed.
    fn serve(&mut self, words: &str) -> String {
        let mut command = self.command(&format!("exec {words} --listen 127.0.0.1:0"));
        let mut server = command.stdout(Stdio::piped()).spawn().expect("start the server");
        let mut printed = String::new();
        let mut lines = BufReader::new(server.stdout.take().expect("its output"));
        while !printed.lines().any(|line| line.starts_with("listening")) {
            assert!(lines.read_line(&mut printed).expect("its output") > 0, "it has ended: {printed}");
        }
        let address =
            printed.lines().last().and_then(|line| line.split_whitespace().nth(1)).expect("its address");
        self.server = Some((server, address.to_owned()));
        // Its later messages need a reader.
        std::thread::spawn(move || lines.lines().map_while(Result::ok).for_each(drop));
        printed
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some((server, _)) = &mut self.server {
            _ = server.kill();
            _ = server.wait();
        }
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("a file of the page");
}

#[test]
fn the_first_hour_goes_as_its_page_says() {
    let page = page();
    let mut reader = Reader::begin();
    write(reader.folder.path(), "schema.cql", block(&page, "cql"));
    let steps = steps(&page);
    assert!(steps.len() >= 10, "{} commands", steps.len());
    for Step { command, output } in &steps {
        let printed = match command.starts_with("helenus serve") {
            true => reader.serve(command),
            false => {
                let done = reader.command(command).output().expect("run a command");
                let errors = String::from_utf8_lossy(&done.stderr).into_owned();
                assert!(done.status.success(), "$ {command}\n{errors}");
                format!("{}{errors}", String::from_utf8_lossy(&done.stdout))
            }
        };
        let lines: Vec<&str> = printed.lines().collect();
        let is_shown = output.is_empty() || all_fit(output, &lines);
        assert!(is_shown, "$ {command}\nthe page shows:\n{}\nit printed:\n{printed}", output.join("\n"));
    }
}

#[test]
fn the_comparison_of_outputs_can_fail() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let fit = |page: &str, printed: &str| all_fit(&shown(page), &printed.lines().collect::<Vec<_>>());
    assert!(
        fit("a\n...\nz ...", "a\nb\nc\nz 1")
            && fit("...\n", "anything")
            && fit("...mean x?", "did you mean x?")
    );
    assert!(!fit("a", "b") && !fit("a\nb", "a") && !fit("a", "a\nb") && !fit("a ... c", "a b d"));
    assert!(!fit("...\nz", "a\nb") && !fit("...mean x?", "did you mean y?"));
}
