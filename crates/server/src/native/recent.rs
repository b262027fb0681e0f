//! The prepared statements that an event loop ran recently. Each thread keeps its own, so that a request neither looks up
//! the shared table nor changes a reference count that other threads change.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use helenus_cql::CqlError;
use helenus_cql::backend::{Backend, Prepared, StatementId};
use helenus_wire::native::{ErrorDetail, ErrorMessage};

use super::answer::Failure;

/// Statements of one thread.
const KEPT_MAX: usize = 8;
/// Statements of a batch among which one is looked for one by one; beyond, by hash.
const SCANNED_MAX: usize = 16;
/// Uses after which the backend is asked all the same: it keeps what is asked for.
const USES_MAX: u32 = 64;

/// The statements, in no order.
#[derive(Default)]
pub(super) struct Recent {
    kept: Vec<Taken>,
}

/// A statement taken out for a request; to be given back after it.
pub(super) struct Taken {
    statement: Arc<Prepared>,
    uses: u32,
}

/// The prepared statements of a batch, each once.
#[derive(Default)]
pub(super) struct OfBatch {
    pub taken: Vec<Taken>,
    places: HashMap<StatementId, usize>,
}

impl Deref for Taken {
    type Target = Prepared;

    fn deref(&self) -> &Prepared {
        &self.statement
    }
}

impl Recent {
    /// A statement by the id of a request, or the UNPREPARED that makes the driver prepare it again. One that was analysed
    /// under another schema than the present one is asked for anew, and where this thread may not wait only if that is quick.
    pub fn take(&mut self, backend: &dyn Backend, id: &[u8], may_block: bool) -> Result<Taken, Failure> {
        if let Some(at) = self.kept.iter().position(|kept| kept.id == *id) {
            let mut taken = self.kept.swap_remove(at);
            taken.uses += 1;
            if taken.uses < USES_MAX && taken.is_of_epoch(backend.schema_epoch()) {
                return Ok(taken);
            }
        }
        if !may_block && StatementId::try_from(id).is_ok_and(|id| !backend.has_at_hand(&id)) {
            return Err(Failure::Cql(CqlError::WouldBlock));
        }
        Ok(Taken { statement: prepared(backend, id)?, uses: 0 })
    }

    /// The place of a statement among those that a batch has taken so far; it is taken now if it is not among them. Mostly it
    /// is that of the entry before.
    pub fn place(
        &mut self,
        backend: &dyn Backend,
        id: &[u8],
        may_block: bool,
        of_batch: &mut OfBatch,
    ) -> Result<usize, Failure> {
        let OfBatch { taken, places } = of_batch;
        let near = taken.len().saturating_sub(SCANNED_MAX);
        if let Some(at) = taken.iter().skip(near).rposition(|taken| taken.id == *id) {
            return Ok(near + at);
        }
        if near > 0
            && let Some(at) = places.get(id)
        {
            return Ok(*at);
        }
        let new = self.take(backend, id, may_block)?;
        places.insert(new.id, taken.len());
        taken.push(new);
        Ok(taken.len() - 1)
    }

    /// Keeps it for the next request.
    pub fn give_back(&mut self, taken: Taken) {
        if self.kept.len() >= KEPT_MAX {
            self.kept.swap_remove(0);
        }
        self.kept.push(taken);
    }
}

/// A prepared statement by the id of a request, or the UNPREPARED that makes the driver prepare it again.
fn prepared(backend: &dyn Backend, id: &[u8]) -> Result<Arc<Prepared>, Failure> {
    let Ok(id) = StatementId::try_from(id) else {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let message = format!("Prepared query with ID {hex} not found");
        return Err(Failure::Message(ErrorMessage {
            message,
            detail: ErrorDetail::Unprepared { id: id.to_vec() },
        }));
    };
    backend.prepared(&id)?.ok_or(Failure::Cql(CqlError::Unprepared(id)))
}
