//! The open connections of the HTTP port, and which of them is closed when others need its place.
//!
//! Called by `serve`. A connection that has sent no whole request goes first, then one that has shown no login, each time the
//! oldest, and one that is logged in comes last. One that streams changes is never closed for others: `Streams` limits their
//! number below that of connections.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use helenus_logins::network_of;
use parking_lot::Mutex;
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

/// Who has a stream: a role, or where nobody logs in, a network (`network_of`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Reader {
    Role(String),
    Network(IpAddr),
}

/// The number of streams of each reader that has some.
type Counts = Arc<Mutex<HashMap<Reader, usize>>>;

/// The places for streams. There are fewer than connections, so that streams, which last, leave room for others. A reader has at
/// most half of them, so that one leaves room for others too.
pub(super) struct Streams {
    places: Arc<Semaphore>,
    of_reader_max: usize,
    of_readers: Counts,
}

/// The place of a stream, until dropped.
pub(super) struct StreamPlace {
    progress: Arc<Progress>,
    reader: Reader,
    of_readers: Counts,
    _place: OwnedSemaphorePermit,
}

impl Streams {
    /// The places beside `connections_max` connections: half as many.
    pub fn of(connections_max: usize) -> Streams {
        let places = (connections_max / 2).max(1);
        Streams {
            places: Arc::new(Semaphore::new(places)),
            of_reader_max: places.div_ceil(2),
            of_readers: Arc::default(),
        }
    }

    /// A place for a stream on a connection of this client and role, if there are logins.
    ///
    /// # Errors
    /// All places are taken, or all that the reader may have; what to do, in words.
    pub fn take(
        &self,
        progress: &Arc<Progress>,
        (client, role): (IpAddr, Option<&str>),
    ) -> Result<StreamPlace, String> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            "too many streams of changes are open; close one, or try again later\n".to_owned()
        })?;
        let reader =
            role.map_or_else(|| Reader::Network(network_of(client)), |role| Reader::Role(role.to_owned()));
        let mut of_readers = self.of_readers.lock();
        let count = of_readers.entry(reader.clone()).or_default();
        if *count >= self.of_reader_max {
            let most = self.of_reader_max;
            let shown = match &reader {
                Reader::Role(role) => format!("role {role}"),
                Reader::Network(network) => format!("{network}"),
            };
            return Err(format!("{shown} has {most} streams of changes open, its most; close one\n"));
        }
        *count += 1;
        drop(of_readers);
        progress.stage.store(STREAMS, Ordering::Relaxed);
        let of_readers = Arc::clone(&self.of_readers);
        Ok(StreamPlace { progress: Arc::clone(progress), reader, of_readers, _place: place })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.progress.stage.store(ASKED, Ordering::Relaxed);
        let mut of_readers = self.of_readers.lock();
        if let Some(count) = of_readers.get_mut(&self.reader) {
            *count -= 1;
            if *count == 0 {
                of_readers.remove(&self.reader);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_or_a_network_without_logins_leaves_places_to_others() {
        let here: IpAddr = "2001:db8::1".parse().expect("an address");
        let beside: IpAddr = "2001:db8::2".parse().expect("an address");
        let elsewhere: IpAddr = "10.0.0.1".parse().expect("an address");
        for (one, same, other, third, shown) in [
            (
                (here, Some("one")),
                (elsewhere, Some("one")),
                (here, Some("other")),
                (here, Some("third")),
                "role one has 2",
            ),
            ((here, None), (beside, None), (elsewhere, None), (here, Some("one")), "2001:db8:: has 2"),
        ] {
            let streams = Streams::of(8);
            let progress = Arc::new(Progress::default());
            let mut of_one: Vec<_> =
                [one, same].map(|of| streams.take(&progress, of).expect("a place")).into_iter().collect();
            assert!(streams.take(&progress, same).err().expect("a refusal").contains(shown));
            let of_other = streams.take(&progress, other).expect("a place");
            of_one.pop();
            of_one.push(streams.take(&progress, one).expect("its place again"));
            let last = streams.take(&progress, other).expect("the last place");
            assert!(streams.take(&progress, third).err().expect("a refusal").contains("too many streams"));
            drop((of_one, of_other, last));
            assert!(streams.of_readers.lock().is_empty());
        }
    }
}
