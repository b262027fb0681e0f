//! A client of the RPC interface before it has begun: before its first message and, where clients have to log in, its login.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use crate::connection_budget::Newcomer;

/// Whether a client has begun, or must make room for another.
#[derive(Default)]
pub(super) struct RpcNewcomer {
    has_begun: AtomicBool,
    is_displaced: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl RpcNewcomer {
    /// Notes that it has begun.
    pub fn begin(&self) {
        if !self.has_begun() {
            self.has_begun.store(true, Ordering::Release);
        }
    }

    /// Whether it must make room. The waker is woken when it must.
    pub fn is_displaced(&self, waker: &Waker) -> bool {
        if self.has_begun() {
            return false;
        }
        let mut kept = self.waker.lock();
        match &mut *kept {
            Some(kept) => kept.clone_from(waker),
            None => *kept = Some(waker.clone()),
        }
        drop(kept);
        self.is_displaced.load(Ordering::Acquire)
    }

    /// Waits until it must make room.
    pub async fn displaced(&self) {
        poll_fn(|context| match self.is_displaced(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

impl Newcomer for RpcNewcomer {
    fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    fn displace(&self) {
        self.is_displaced.store(true, Ordering::Release);
        // Cloned, so that this lock is not held while the runtime takes its own.
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
