//! Shows the progress of work that runs on another thread.

use super::progress::Progress;
use anyhow::{Result, anyhow};
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Time between two queries of the progress.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A progress line that appears once there is something to show.
#[derive(Default)]
pub struct Line {
    progress: Option<Progress>,
}

impl Line {
    /// Shows the name of the work, the bytes done and the total.
    pub fn show(&mut self, (doing, done, total): (&str, u64, u64)) {
        if total == 0 || !stderr().is_terminal() {
            return;
        }
        let progress = self.progress.get_or_insert_with(|| Progress::begin(doing, total));
        progress.name(doing);
        progress.at(done);
    }
}

/// Runs `work` on another thread, and meanwhile shows the progress that `look` returns: name, bytes done, total.
///
/// # Errors
/// The work ended without a result, which only a panic can cause.
pub fn run_with_progress<T: Send>(
    work: impl FnOnce() -> T + Send,
    look: impl Fn() -> (String, u64, u64),
) -> Result<T> {
    std::thread::scope(|scope| {
        let (done, is_done) = sync_channel(1);
        scope.spawn(move || {
            let _nobody_may_look = done.send(work());
        });
        let mut line = Line::default();
        loop {
            match is_done.recv_timeout(POLL_INTERVAL) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => {
                    let (doing, done, total) = look();
                    line.show((&doing, done, total));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("the work ended without a word")),
            }
        }
    })
}
