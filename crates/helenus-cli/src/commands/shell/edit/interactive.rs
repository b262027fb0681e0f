//! The interactive loop: reads a statement, runs it, and repeats.

use super::super::ShellOptions;
use super::super::interpreter::{Shell, is_closed_pipe};
use super::super::session::Interrupt;
use super::super::statement::take_apart;
use super::assist::Assistant;
use super::history;
use anyhow::{Context, Result};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Behavior, CompletionType, Config, EditMode, Editor};

type Lines = Editor<Assistant, FileHistory>;

/// Number of statements kept in the history.
const HISTORY_MAX: usize = 10_000;

/// Runs the loop until the end of the input, or EXIT.
///
/// # Errors
/// The terminal is gone.
pub fn run_interactive(shell: &mut Shell, options: &ShellOptions, interrupt: &Interrupt) -> Result<()> {
    listen_for_interrupts(interrupt.clone())?;
    shell.show_host()?;
    shell.show_version()?;
    say!("Use HELP for help.")?;
    let mut lines = editor(shell, options)?;
    let file = history::file().filter(|_| !options.disable_history);
    if let Some(file) = &file {
        // The file does not exist at the first start.
        _ = lines.load_history(file);
    }
    shell.history = lines.history().into_iter().map(ToString::to_string).collect();
    // The lines of a statement that is not complete yet.
    let mut begun = String::new();
    loop {
        let prompt = match begun.is_empty() {
            true => prompt(shell),
            false => format!("{:>1$}", "... ", prompt(shell).len()),
        };
        if let Some(assistant) = lines.helper_mut() {
            assistant.begun.clone_from(&begun);
        }
        match lines.readline(&prompt) {
            Ok(line) => {
                begun.push_str(&line);
                begun.push('\n');
                if take_apart(&begun).open.is_some() {
                    continue;
                }
                let text = std::mem::take(&mut begun);
                // Discards a Ctrl-C that came before this statement.
                interrupt.take();
                if history::keeps(&text) {
                    lines.add_history_entry(text.trim_end())?;
                    shell.history.push(text.trim_end().replace('\n', " "));
                    if let Some(file) = &file {
                        _ = lines.append_history(file);
                    }
                }
                let mut is_over = false;
                // The last line feed ends shell commands, which need no semicolon.
                for statement in take_apart(&text).statements {
                    if shell.run(&statement, None)?.is_break() {
                        is_over = true;
                        break;
                    }
                }
                if is_over {
                    break;
                }
            }
            Err(ReadlineError::Interrupted) => begun.clear(),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error).context("the terminal is gone"),
        }
    }
    match shell.sink.release() {
        Err(error) if !is_closed_pipe(&error) => Err(error),
        _ => Ok(()),
    }
}

fn editor(shell: &Shell, options: &ShellOptions) -> Result<Lines> {
    let behavior = if options.tty { Behavior::Stdio } else { Behavior::PreferTerm };
    let config = Config::builder()
        .max_history_size(HISTORY_MAX)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .edit_mode(EditMode::Emacs)
        .behavior(behavior)
        .tab_stop(4)
        .build();
    let history = FileHistory::with_config(&config);
    let mut lines = Editor::with_history(config, history)?;
    let in_colour = shell.sink.in_colour();
    lines.set_helper(Some(Assistant::new(std::rc::Rc::clone(&shell.server), in_colour)));
    Ok(lines)
}

fn prompt(shell: &Shell) -> String {
    match shell.server.borrow().0.keyspace() {
        Some(keyspace) => format!("helenus:{keyspace}> "),
        None => "helenus> ".to_owned(),
    }
}

/// Ctrl-C while a statement runs ends the wait for its answer, not the shell. While a line is edited, the editor
/// handles it.
fn listen_for_interrupts(interrupt: Interrupt) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    // The thread ends with the process.
    std::thread::Builder::new().name("interrupts".to_owned()).spawn(move || {
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                interrupt.raise();
            }
        });
    })?;
    Ok(())
}
