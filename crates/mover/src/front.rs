//! What clients connect to, as a move sees it: the server's listeners, which can wait, and which serve either this database or the
//! target.
//!
//! The mover calls it for `cutover` and `rollback`, from a plain thread that may block. Whoever implements it keeps this: between
//! the return of `pause` and its end no statement of a client is run, neither here nor at the target, and no answer is lost.
//! A server that starts after a cut asks [`crate::cut_of`] before it opens its listeners, and calls `make_ready` and `to_cluster`
//! before it admits a client: a write that this database acknowledged then would be lost.

use crate::messages::MoveOrder;
use helenus_cluster::WrittenPartitions;
use std::sync::Arc;
use std::time::Duration;

/// Who answers the clients' requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// This database.
    Local,
    /// The target of the move, through this server.
    Cluster,
}

/// Why the front could not do what it was told. Clients go on as before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrontError {
    /// Requests in flight have not ended in time.
    #[error("{requests} requests or connections of clients did not come to an end within {} ms", within.as_millis())]
    Busy {
        /// Their number.
        requests: usize,
        /// The time that they had.
        within: Duration,
    },
    /// Anything else, with what to do.
    #[error("{0}")]
    Failed(String),
}

/// The listeners of a server.
///
/// ```text
///            make_ready, pause        to_cluster
///   Local -----------------> paused ------------> Cluster
///     ^                      |    ^                  |
///     +-- go_on or to_local -+    +----- pause ------+
/// ```
pub trait Front: Send + Sync {
    /// Who answers now, or did before the pause.
    fn side(&self) -> Side;

    /// Why clients cannot be served by the target now, a text each: what writes here beside them, a closed listener.
    fn hindrances(&self) -> Vec<String> {
        Vec::new()
    }

    /// Connects to the target, so that `to_cluster` takes no time. Clients notice nothing. Called again, it uses the new order.
    ///
    /// # Errors
    /// The target cannot be reached.
    fn make_ready(&self, order: &MoveOrder) -> Result<(), FrontError>;

    /// Completes the requests that were begun, answers included, and begins no other. Clients wait; those that connect meanwhile
    /// do too.
    ///
    /// # Errors
    /// Requests have not ended within this time; then there is no pause.
    fn pause(&self, within: Duration) -> Result<(), FrontError>;

    /// Ends a pause; `side` answers as before. Without a pause it does nothing.
    fn go_on(&self);

    /// Notes what clients write at the target through this server; `None`: it cannot be known.
    fn written(&self) -> Option<Arc<WrittenPartitions>>;

    /// From now on the target answers, and a pause ends. `make_ready` was called before. `shows_nodes`: clients learn of the nodes of
    /// the target and go to them by themselves, so that no rollback would find all of them here.
    ///
    /// # Errors
    /// It cannot be done; a pause goes on.
    fn to_cluster(&self, shows_nodes: bool) -> Result<(), FrontError>;

    /// From now on this database answers, and a pause ends.
    ///
    /// # Errors
    /// It cannot be done; a pause goes on.
    fn to_local(&self) -> Result<(), FrontError>;
}

/// A pause that ends when it is dropped, so that no failure leaves clients waiting.
pub(crate) struct Pause<'f>(&'f dyn Front);

impl<'f> Pause<'f> {
    /// Begins a pause.
    ///
    /// # Errors
    /// As `Front::pause`.
    pub(crate) fn begin(front: &'f dyn Front, within: Duration) -> Result<Pause<'f>, FrontError> {
        front.pause(within)?;
        Ok(Pause(front))
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.go_on();
    }
}

#[cfg(test)]
pub(crate) mod double {
    //! A front without clients, which notes what it was told.

    use super::{Front, FrontError, Side};
    use crate::messages::MoveOrder;
    use helenus_cluster::WrittenPartitions;
    use parking_lot::Mutex;
    use std::sync::Arc;
    use std::time::Duration;

    #[derive(Debug, Default)]
    pub(crate) struct Told {
        pub(crate) steps: Vec<&'static str>,
        pub(crate) is_paused: bool,
        pub(crate) is_cut: bool,
        /// The step that fails.
        pub(crate) fails: Option<&'static str>,
    }

    #[derive(Debug, Default)]
    pub(crate) struct FrontDouble(pub(crate) Mutex<Told>);

    impl FrontDouble {
        fn step(&self, name: &'static str, change: impl FnOnce(&mut Told)) -> Result<(), FrontError> {
            let mut told = self.0.lock();
            told.steps.push(name);
            if told.fails == Some(name) {
                return Err(FrontError::Failed(format!("{name} failed")));
            }
            change(&mut told);
            Ok(())
        }
    }

    impl Front for FrontDouble {
        fn side(&self) -> Side {
            if self.0.lock().is_cut { Side::Cluster } else { Side::Local }
        }

        fn make_ready(&self, _: &MoveOrder) -> Result<(), FrontError> {
            self.step("make_ready", |_| {})
        }

        fn written(&self) -> Option<Arc<WrittenPartitions>> {
            None
        }

        fn pause(&self, _: Duration) -> Result<(), FrontError> {
            self.step("pause", |told| told.is_paused = true)
        }

        fn go_on(&self) {
            let mut told = self.0.lock();
            if std::mem::take(&mut told.is_paused) {
                told.steps.push("go_on");
            }
        }

        fn to_cluster(&self, _shows_nodes: bool) -> Result<(), FrontError> {
            self.step("to_cluster", |told| (told.is_paused, told.is_cut) = (false, true))
        }

        fn to_local(&self) -> Result<(), FrontError> {
            self.step("to_local", |told| (told.is_paused, told.is_cut) = (false, false))
        }
    }

    #[test]
    fn a_pause_ends_when_it_is_dropped_but_not_twice() {
        let front = FrontDouble::default();
        {
            let _pause = super::Pause::begin(&front, Duration::ZERO).unwrap();
            assert!(front.0.lock().is_paused);
        }
        {
            let _pause = super::Pause::begin(&front, Duration::ZERO).unwrap();
            front.to_cluster(false).unwrap();
        }
        assert_eq!(front.0.lock().steps, ["pause", "go_on", "pause", "to_cluster"]);
        front.0.lock().fails = Some("pause");
        assert!(super::Pause::begin(&front, Duration::ZERO).is_err());
    }
}
