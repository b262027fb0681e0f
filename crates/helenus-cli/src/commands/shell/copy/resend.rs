//! Which requests of an import are sent again after an error, and when, and how many may be in flight.

use helenus_wire::native::ErrorCode;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Pause before a request is sent again; it doubles with each attempt.
const PAUSE: Duration = Duration::from_millis(50);
/// Attempts after which the pause grows no more.
const DOUBLINGS_MAX: u32 = 5;

/// What an error says about the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It may succeed later, and sending it twice has the effect of sending it once.
    Transient,
    /// It has had no effect, because of its rows.
    OfTheRow,
    /// It may have had an effect, and must not be sent again: counters would count twice.
    InDoubt,
}

impl Refusal {
    /// What an error with this code says about a request.
    pub fn of(code: ErrorCode, is_counter: bool) -> Refusal {
        match code {
            ErrorCode::Overloaded | ErrorCode::Unavailable | ErrorCode::IsBootstrapping => Refusal::Transient,
            ErrorCode::WriteTimeout | ErrorCode::WriteFailure | ErrorCode::Server if !is_counter => {
                Refusal::Transient
            }
            ErrorCode::Invalid
            | ErrorCode::Syntax
            | ErrorCode::Unauthorized
            | ErrorCode::BadCredentials
            | ErrorCode::Config
            | ErrorCode::AlreadyExists
            | ErrorCode::Protocol
            | ErrorCode::Unprepared => Refusal::OfTheRow,
            _ if is_counter => Refusal::InDoubt,
            _ => Refusal::OfTheRow,
        }
    }
}

/// The number of requests that may be in flight. A server that is overloaded halves it, at most once in the pause after which the
/// refused requests come again; answers raise it by one for each round of them.
#[derive(Debug)]
pub struct Window {
    size: usize,
    size_max: usize,
    /// Answers since the size has changed.
    answers: usize,
    /// Until then refusals are of requests that were sent before the last cut.
    cut_until: Option<Instant>,
}

impl Window {
    /// The window with its greatest size.
    pub fn new(size_max: usize) -> Window {
        Window { size: size_max.max(1), size_max: size_max.max(1), answers: 0, cut_until: None }
    }

    /// Its present size, at least 1.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A request was done.
    pub fn done(&mut self) {
        self.answers += 1;
        if self.answers >= self.size && self.size < self.size_max {
            (self.size, self.answers) = (self.size + 1, 0);
        }
    }

    /// The server was overloaded.
    pub fn overloaded(&mut self, now: Instant) {
        if self.cut_until.is_none_or(|until| until <= now) {
            (self.size, self.answers) = ((self.size / 2).max(1), 0);
            self.cut_until = Some(now + PAUSE);
        }
    }
}

/// Requests that are sent again, by the time when they are due.
#[derive(Debug)]
pub struct Later<T> {
    /// The second part of the key keeps requests apart that are due at the same time.
    by_due: BTreeMap<(Instant, u64), T>,
    put_count: u64,
}

impl<T> Default for Later<T> {
    fn default() -> Self {
        Later { by_due: BTreeMap::new(), put_count: 0 }
    }
}

impl<T> Later<T> {
    /// The pause after so many attempts.
    pub fn pause(attempts: u32) -> Duration {
        PAUSE * 2_u32.pow(attempts.saturating_sub(1).min(DOUBLINGS_MAX))
    }

    /// Adds a request that is due at this time.
    pub fn put(&mut self, due: Instant, request: T) {
        self.put_count += 1;
        self.by_due.insert((due, self.put_count), request);
    }

    /// Takes the request that is due longest, if there is one.
    pub fn take_due(&mut self, now: Instant) -> Option<T> {
        let first = self.by_due.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }

    /// When the next request is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.by_due.first_key_value().map(|((due, _), _)| *due)
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.by_due.len()
    }

    /// Whether there is no request.
    pub fn is_empty(&self) -> bool {
        self.by_due.is_empty()
    }

    /// All requests.
    pub fn into_all(self) -> impl Iterator<Item = T> {
        self.by_due.into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_may_have_counted_is_never_sent_again() {
        let sent_again = |is_counter| {
            ErrorCode::ALL
                .iter()
                .copied()
                .filter(|code| Refusal::of(*code, is_counter) == Refusal::Transient)
                .collect::<Vec<_>>()
        };
        use ErrorCode::{IsBootstrapping, Overloaded, Server, Unavailable, WriteFailure, WriteTimeout};
        let mut of_counters = sent_again(true);
        of_counters.sort_by_key(|code| code.number());
        assert_eq!(of_counters, [Unavailable, Overloaded, IsBootstrapping]);
        for code in [Server, WriteFailure, WriteTimeout] {
            assert!(sent_again(false).contains(&code));
            assert_eq!(Refusal::of(code, true), Refusal::InDoubt);
        }
    }

    #[test]
    fn a_window_is_halved_once_for_the_refusals_of_one_pause_and_grows_by_one_a_round() {
        let (mut window, now) = (Window::new(8), Instant::now());
        for _ in 0..8 {
            window.overloaded(now);
        }
        assert_eq!(window.size(), 4);
        window.overloaded(now + PAUSE);
        window.overloaded(now + PAUSE * 2);
        window.overloaded(now + PAUSE * 3);
        assert_eq!(window.size(), 1);
        window.done();
        assert_eq!(window.size(), 2);
        (0..200).for_each(|_| window.done());
        assert_eq!(window.size(), 8);
    }

    #[test]
    fn requests_come_when_they_are_due() {
        let (mut later, now) = (Later::default(), Instant::now());
        let at = |ms| now + Duration::from_millis(ms);
        later.put(at(50), "c");
        later.put(now, "a");
        later.put(now, "b");
        assert_eq!(
            (later.take_due(now), later.take_due(now), later.take_due(now)),
            (Some("a"), Some("b"), None)
        );
        assert_eq!(later.next_due(), Some(at(50)));
        assert_eq!(later.take_due(at(60)), Some("c"));
        assert!(later.is_empty());
        assert_eq!(Later::<()>::pause(1), PAUSE);
        assert_eq!(Later::<()>::pause(9), PAUSE * 32);
    }
}
