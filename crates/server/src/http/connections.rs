//! The open connections of the HTTP port, and which of them is closed when others need its place.
//!
//! Called by `serve`. A connection that has sent no whole request goes first, then one that has shown no login, each time the
//! oldest, and one that is logged in comes last. One that streams changes is never closed for others: `Streams` limits their
//! number below that of connections.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What a connection has done so far. Its own task changes it.
#[derive(Default)]
pub(super) struct Progress {
    stage: AtomicU8,
}

/// No whole request has come.
const SILENT: u8 = 0;
/// A request has come.
const ASKED: u8 = 1;
/// A login has succeeded.
const LOGGED_IN: u8 = 2;
/// Changes are streamed.
const STREAMS: u8 = 3;

impl Progress {
    /// Notes that a request has come.
    pub fn has_asked(&self) {
        self.stage.fetch_max(ASKED, Ordering::Relaxed);
    }

    /// Notes that a login has succeeded.
    pub fn has_logged_in(&self) {
        self.stage.fetch_max(LOGGED_IN, Ordering::Relaxed);
    }

    /// Whether a request has come.
    pub fn is_silent(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == SILENT
    }
}

/// The places for streams. There are fewer than connections, so that streams, which last, leave room for others.
pub(super) struct Streams {
    places: Arc<Semaphore>,
}

/// The place of a stream, until dropped.
pub(super) struct StreamPlace {
    progress: Arc<Progress>,
    _place: OwnedSemaphorePermit,
}

impl Streams {
    /// The places beside `connections_max` connections: half as many.
    pub fn of(connections_max: usize) -> Streams {
        Streams { places: Arc::new(Semaphore::new((connections_max / 2).max(1))) }
    }

    /// A place for a stream on a connection; `None` if all are taken.
    pub fn take(&self, progress: &Arc<Progress>) -> Option<StreamPlace> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        progress.stage.store(STREAMS, Ordering::Relaxed);
        Some(StreamPlace { progress: Arc::clone(progress), _place: place })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.progress.stage.store(ASKED, Ordering::Relaxed);
    }
}

/// A connection in the list.
struct Open {
    came: Instant,
    progress: Arc<Progress>,
    task: AbortHandle,
}

/// The connections, the oldest first; some of them may have ended.
#[derive(Default)]
pub(super) struct Connections {
    all: VecDeque<Open>,
}

impl Connections {
    /// Adds a connection that has just come.
    pub fn add(&mut self, progress: Arc<Progress>, task: AbortHandle) {
        self.all.push_back(Open { came: tokio::time::Instant::now(), progress, task });
    }

    /// Forgets those that have ended.
    pub fn forget_ended(&mut self) {
        self.all.retain(|open| !open.task.is_finished());
    }

    /// The connection to close when others need its place, and when it came; `None` if all stream.
    pub fn next_to_close(&self) -> Option<(Instant, &AbortHandle)> {
        let stage = |open: &&Open| open.progress.stage.load(Ordering::Relaxed);
        let open = self.all.iter().filter(|open| stage(open) < STREAMS && !open.task.is_finished());
        // The first of the least: the oldest.
        open.min_by_key(stage).map(|open| (open.came, &open.task))
    }
}
