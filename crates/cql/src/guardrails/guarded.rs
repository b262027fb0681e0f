//! The guardrails of a running server, which may change. Most servers have none: then a statement only reads one flag.

use super::limits::Guardrails;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The guardrails of a running server.
#[derive(Default)]
pub(crate) struct Guarded {
    is_on: AtomicBool,
    guardrails: RwLock<Arc<Guardrails>>,
}

impl Guarded {
    /// Replaces the guardrails.
    pub(crate) fn set(&self, guardrails: Guardrails) {
        let is_on = guardrails != Guardrails::default();
        *self.guardrails.write() = Arc::new(guardrails);
        self.is_on.store(is_on, Ordering::Release);
    }

    /// The guardrails; `None` if there are none.
    #[inline]
    pub(crate) fn get(&self) -> Option<Arc<Guardrails>> {
        self.is_on.load(Ordering::Acquire).then(|| Arc::clone(&self.guardrails.read()))
    }
}
