//! Conditional statements: IF of INSERT, UPDATE, DELETE and of batches.
//!
//! `condition` is the typed IF clause; `evaluate` evaluates it on a row that was read. `request` collects the conditions
//! of a statement or batch, computes which rows they need, and decides whether they are met. `result` is the answer.
//! Rules, texts and results are those of `CQL3CasRequest`, `ColumnCondition` and
//! `ModificationStatement.buildCasResultSet`. Locking, reading and writing are the same as for every write that reads
//! first (`plan/modify/read_before_write.rs`).

mod condition;
mod evaluate;
mod request;
mod result;

pub(crate) use condition::Conditions;
pub(crate) use request::{CasRequest, Verdict, check_together, without_deleted_rows};
pub(crate) use result::AnswerLimit;
