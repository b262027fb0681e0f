//! The answers that a request may have. A connection is shared, so a node that answers one request with another kind of result may have
//! changed what the requests of others mean: above all SET_KEYSPACE, where nobody has asked for another keyspace.
//!
//! Called for each answer by the task that reads the connection, which ends it where this module refuses the answer.

use helenus_wire::native::{Opcode, Reader, Request};

use crate::Answer;

/// The results that the sender of a statement has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asks {
    /// Those of any statement that leaves the keyspace in use.
    #[default]
    Statement,
    /// Rows: of a SELECT.
    Rows,
    /// Nothing, or rows that say whether a condition was met: of a write.
    Write,
    /// Another keyspace to be in use: of USE.
    Keyspace,
}

/// The kinds of RESULT.
const VOID: i32 = 1;
const ROWS: i32 = 2;
const SET_KEYSPACE: i32 = 3;
const PREPARED: i32 = 4;
const SCHEMA_CHANGE: i32 = 5;

/// What a request is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    request: Opcode,
    asks: Asks,
}

impl Expected {
    /// Of a request with this opcode.
    pub fn of(request: Opcode, asks: Asks) -> Expected {
        Expected { request, asks }
    }

    /// What is wrong with an answer that nothing has asked for; `None` if it was asked for. A result that is damaged is left to whoever
    /// decodes it.
    pub fn objection(&self, answer: &Answer<'_>) -> Option<String> {
        let is_statement = matches!(self.request, Opcode::Query | Opcode::Execute | Opcode::Batch);
        let is_asked_for = match (answer.opcode, self.request) {
            (Opcode::Error, _) => true,
            (Opcode::Result, Opcode::Prepare) => result_kind(answer).is_none_or(|kind| kind == PREPARED),
            (Opcode::Result, _) if is_statement => result_kind(answer).is_none_or(|kind| match self.asks {
                Asks::Statement => matches!(kind, VOID | ROWS | SCHEMA_CHANGE),
                Asks::Rows => kind == ROWS,
                Asks::Write => matches!(kind, VOID | ROWS),
                Asks::Keyspace => kind == SET_KEYSPACE,
            }),
            (Opcode::Supported, Opcode::Options) | (Opcode::Ready, Opcode::Register) => true,
            _ => false,
        };
        if is_asked_for {
            return None;
        }
        let result = match (answer.opcode, result_kind(answer)) {
            (Opcode::Result, Some(VOID)) => "no result".to_owned(),
            (Opcode::Result, Some(ROWS)) => "rows".to_owned(),
            (Opcode::Result, Some(SET_KEYSPACE)) => "another keyspace in use".to_owned(),
            (Opcode::Result, Some(PREPARED)) => "a prepared statement".to_owned(),
            (Opcode::Result, Some(SCHEMA_CHANGE)) => "a change of the schema".to_owned(),
            (Opcode::Result, kind) => format!("a result of kind {kind:?}"),
            (other, _) => other.to_string(),
        };
        Some(format!("the node answered {} with {result}, which it did not ask for", self.request))
    }
}

/// The opcode of a request.
pub(super) fn opcode_of(request: &Request<'_>) -> Opcode {
    match request {
        Request::Query(_) => Opcode::Query,
        Request::Execute(_) => Opcode::Execute,
        Request::Batch(_) => Opcode::Batch,
        Request::Prepare(_) => Opcode::Prepare,
        Request::Options => Opcode::Options,
        Request::Register(_) => Opcode::Register,
        Request::Startup(_) => Opcode::Startup,
        Request::AuthResponse(_) => Opcode::AuthResponse,
    }
}

fn result_kind(answer: &Answer<'_>) -> Option<i32> {
    Reader::new(answer.message().ok()?).int().ok()
}
