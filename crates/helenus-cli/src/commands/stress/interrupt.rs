//! Ctrl-C ends a run early with its results so far; a second Ctrl-C ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether Ctrl-C was pressed. Not set before `listen` is called.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts to listen. If that is impossible, Ctrl-C ends the program as by default.
    pub fn listen(&self) {
        let flag = Arc::clone(&self.0);
        std::thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
                return;
            };
            runtime.block_on(async {
                while tokio::signal::ctrl_c().await.is_ok() {
                    if flag.swap(true, Ordering::Relaxed) {
                        std::process::exit(130);
                    }
                }
            });
        });
    }

    /// Whether Ctrl-C was pressed.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
