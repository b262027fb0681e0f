//! Runs one step of a check: a line when it begins and ends, its output only where somebody needs it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the `test result:` lines of a test runner add up to.
#[derive(Clone, Default)]
pub struct Tests {
    pub passed: u64,
    pub failed: u64,
    pub ignored: u64,
    /// The lines themselves: one for each test program.
    pub lines: Vec<String>,
}

impl Tests {
    /// Adds the figures of a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; ...`.
    fn add_line(&mut self, line: &str) {
        let Some(figures) = line.trim_start().strip_prefix("test result: ") else { return };
        let words: Vec<&str> = figures.split([' ', ';']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let [number, noun] = pair else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match *noun {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
        self.lines.push(line.trim().to_owned());
    }
}

/// Runs `command` under the title `title`. Prints the runner's own `test result:` lines as they come; prints the whole
/// output if the command fails. The error is one line that names the step and the command.
pub fn step(title: &str, command: &mut Command) -> Result<Tests, String> {
    let begin = Instant::now();
    println!("{title} ...");
    let shown = format!("{command:?}").replace('"', "");
    command.current_dir(super::root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{title}: cannot start `{shown}`: {error}"))?;

    // Two pipes, two readers: a child blocks when either is full.
    let errors = child.stderr.take().map(|pipe| std::thread::spawn(move || collect(pipe, |_| {})));
    let mut tests = Tests::default();
    let output = child.stdout.take().map(|pipe| {
        collect(pipe, |line| {
            if line.trim_start().starts_with("test result:") {
                println!("  {line}");
            }
            tests.add_line(line);
        })
    });
    let errors = errors.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let status = child.wait().map_err(|error| format!("{title}: {error}"))?;
    let seconds = begin.elapsed();
    if status.success() {
        println!("{title}: ok, {}", in_seconds(seconds));
        return Ok(tests);
    }
    println!("{errors}\n{}", output.unwrap_or_default());
    Err(format!("{title}: failed after {} ({status}): {shown}", in_seconds(seconds)))
}

/// `12.3 s`.
pub fn in_seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// Reads a pipe to its end, line by line, and keeps the text.
fn collect(pipe: impl std::io::Read, mut each: impl FnMut(&str)) -> String {
    let mut text = String::new();
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        each(&line);
        text.push_str(&line);
        text.push('\n');
        let _ = std::io::stdout().flush();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_add_up_and_other_lines_count_nothing() {
        let mut tests = Tests::default();
        tests.add_line(
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        );
        tests.add_line("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        tests.add_line("7 passed on the way");
        assert_eq!((tests.passed, tests.failed, tests.ignored, tests.lines.len()), (15, 2, 1, 2));
    }
}
