//! `USING TIMEOUT`: the time that a statement allows itself, in place of the server's settings.
//!
//! The clause is ScyllaDB's (its reference of CQL extensions). A read that takes longer ends with a read timeout. A write
//! whose time has passed ends with a write timeout before anything of it is written.

use crate::analysis::{Bindings, Bound, Term};
use crate::error::{CqlError, Result};
use crate::plan::modify::ModifyPlan;
use helenus_model::types::Duration;

/// The timeout of a statement: a duration or a marker.
#[derive(Debug)]
pub(crate) struct Timeout(pub(crate) Term);

impl Timeout {
    /// The name of its bind marker.
    pub(crate) const NAME: &str = "[timeout]";

    /// The monotonic time at which an execution that begins at `now_ns` ends; `None` if the bound value is unset.
    ///
    /// # Errors
    /// The value is null, not positive, or has months or days, whose length is not fixed.
    pub(crate) fn deadline_ns(&self, bindings: &Bindings<'_>, now_ns: u64) -> Result<Option<u64>> {
        let bytes = match self.0.bind(bindings)? {
            Bound::Unset => return Ok(None),
            Bound::Null => return Err(invalid("is null")),
            Bound::Bytes(bytes) => bytes,
        };
        let duration = Duration::from_bytes(&bytes).ok_or_else(|| invalid("is no duration"))?;
        if (duration.months, duration.days) != (0, 0) {
            return Err(invalid("has months or days"));
        }
        match u64::try_from(duration.nanoseconds) {
            Ok(ns) if ns > 0 => Ok(Some(now_ns.saturating_add(ns))),
            _ => Err(invalid("is not positive")),
        }
    }
}

fn invalid(problem: &str) -> CqlError {
    CqlError::Invalid(format!(
        "TIMEOUT {problem}; give hours, minutes, seconds or parts of them, as in 500ms"
    ))
}

/// Refuses a timeout of a statement inside a batch: all its statements are one write.
pub(crate) fn refuse_inside_batch(plan: &ModifyPlan) -> Result<()> {
    match plan.attributes.timeout {
        None => Ok(()),
        Some(_) => Err(CqlError::Invalid(
            "TIMEOUT of a statement in a batch: give it once, as BEGIN BATCH USING TIMEOUT".to_owned(),
        )),
    }
}
