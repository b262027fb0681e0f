//! A cache of the prepared statements that a thread ran recently. Each thread has its own, so that a request neither
//! searches the shared table nor changes a reference count that other threads change.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use helenus_cql::CqlError;
use helenus_cql::backend::{Backend, Prepared, StatementId};
use helenus_wire::native::{ErrorDetail, ErrorMessage};

use super::answer::Failure;
use crate::audit::KeptTail;

/// Statements kept by one thread.
const KEPT_MAX: usize = 8;
/// The last statements of a batch, which are searched one by one; earlier ones are found by hash.
const SCANNED_MAX: usize = 16;
/// Uses after which the backend is asked again, because it keeps the statements that it is asked for.
const USES_MAX: u32 = 64;

/// The statements, in no order.
#[derive(Default)]
pub(super) struct StatementCache {
    kept: Vec<CachedStatement>,
}

/// A statement taken out for a request, to be given back after it.
pub(super) struct CachedStatement {
    statement: Arc<Prepared>,
    uses: u32,
    /// What is kept of its line in the audit log.
    tail: KeptTail,
}

impl CachedStatement {
    /// The statement, and what is kept of its line in the audit log.
    pub fn parts(&mut self) -> (&Prepared, &mut KeptTail) {
        (&self.statement, &mut self.tail)
    }
}

/// The prepared statements of a batch, without duplicates.
#[derive(Default)]
pub(super) struct BatchStatements {
    pub taken: Vec<CachedStatement>,
    places: HashMap<StatementId, usize>,
}

impl BatchStatements {
    /// The statement of an id, if the batch has taken it.
    pub fn find(&self, id: &[u8]) -> Option<&CachedStatement> {
        self.taken.get(*self.places.get(id)?)
    }
}

impl Deref for CachedStatement {
    type Target = Prepared;

    fn deref(&self) -> &Prepared {
        #[cfg(test)]
        tests::LOOKED_AT.with(|count| count.set(count.get() + 1));
        &self.statement
    }
}

impl StatementCache {
    /// Finds the statement of a request's id; fails with UNPREPARED, so that the driver prepares it again. A statement
    /// that was analysed under an older schema is fetched anew from the backend; if that is slow and this thread may
    /// not wait, the result is `WouldBlock`.
    pub fn take(
        &mut self,
        backend: &dyn Backend,
        id: &[u8],
        may_block: bool,
    ) -> Result<CachedStatement, Failure> {
        if let Some(at) = self.kept.iter().position(|kept| kept.id == *id) {
            let mut taken = self.kept.swap_remove(at);
            taken.uses += 1;
            if taken.uses < USES_MAX && taken.is_of_epoch(backend.schema_epoch()) {
                return Ok(taken);
            }
        }
        if !may_block && StatementId::try_from(id).is_ok_and(|id| !backend.has_analysed(&id)) {
            return Err(Failure::Cql(CqlError::WouldBlock));
        }
        Ok(CachedStatement { statement: prepared(backend, id)?, uses: 0, tail: KeptTail::default() })
    }

    /// The index of a statement among those that the batch has taken so far; takes it if it is not among them. Mostly
    /// it is that of the previous entry.
    pub fn index_of(
        &mut self,
        backend: &dyn Backend,
        id: &[u8],
        may_block: bool,
        of_batch: &mut BatchStatements,
    ) -> Result<usize, Failure> {
        let BatchStatements { taken, places } = of_batch;
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

    /// Keeps the statement for the next request.
    pub fn give_back(&mut self, taken: CachedStatement) {
        if self.kept.len() >= KEPT_MAX {
            self.kept.swap_remove(0);
        }
        self.kept.push(taken);
    }
}

/// Asks the backend for the statement of a request's id; fails with UNPREPARED, so that the driver prepares it again.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// How often a statement was looked at.
        pub(super) static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn a_statement_of_a_batch_is_found_without_a_look_at_the_others() {
        const STATEMENTS: usize = 5000;
        let id = |number: usize| (number as u128).to_be_bytes();
        let mut known = BatchStatements::default();
        for number in 0..STATEMENTS {
            let statement = Arc::new(Prepared::elsewhere(id(number), "SELECT", Vec::new()));
            known.places.insert(id(number), known.taken.len());
            known.taken.push(CachedStatement { statement, uses: 0, tail: KeptTail::default() });
        }
        for number in 0..STATEMENTS {
            assert_eq!(known.find(&id(number)).unwrap().id, id(number));
        }
        assert!(known.find(&id(STATEMENTS)).is_none() && known.find(b"short").is_none());
        assert!(LOOKED_AT.get() <= 2 * STATEMENTS, "{} looks", LOOKED_AT.get());
    }
}
