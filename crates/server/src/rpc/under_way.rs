//! Counts the logins of one server that are under way on the threads of a pool which other servers use too. Such a pool goes on when
//! this server ends, so its end waits for them here, for a limited time.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The logins that are under way.
#[derive(Clone, Default)]
pub(super) struct UnderWay(Arc<Counted>);

#[derive(Default)]
struct Counted {
    count: Mutex<usize>,
    /// Notified when none is left.
    ended: Condvar,
}

/// One of them, until it is dropped.
pub(super) struct LoginUnderWay(Arc<Counted>);

impl UnderWay {
    /// Counts one more.
    pub fn begin(&self) -> LoginUnderWay {
        *self.0.count.lock() += 1;
        LoginUnderWay(Arc::clone(&self.0))
    }

    /// Waits until none is under way, or this time is over: a node that a login asks may not answer. Returns whether none is.
    pub fn wait(&self, within: Duration) -> bool {
        let mut count = self.0.count.lock();
        !self.0.ended.wait_while_for(&mut count, |count| *count > 0, within).timed_out() || *count == 0
    }
}

impl Drop for LoginUnderWay {
    fn drop(&mut self) {
        let mut count = self.0.count.lock();
        *count -= 1;
        if *count == 0 {
            self.0.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn the_end_waits_for_all() {
        let (under_way, is_over) = (UnderWay::default(), AtomicBool::new(false));
        let hour = Duration::from_secs(3600);
        assert!(under_way.wait(hour));
        let logins = [under_way.begin(), under_way.begin()];
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                assert!(under_way.wait(hour));
                assert!(is_over.load(Ordering::Acquire));
            });
            let [first, second] = logins;
            drop(first);
            is_over.store(true, Ordering::Release);
            drop(second);
            waits.join().unwrap();
        });
    }

    #[test]
    fn the_end_does_not_wait_for_ever() {
        let under_way = UnderWay::default();
        let login = under_way.begin();
        assert!(!under_way.wait(Duration::from_millis(1)));
        drop(login);
        assert!(under_way.wait(Duration::ZERO));
    }
}
