//! Conditional statements: IF of INSERT, UPDATE, DELETE and of batches.
//!
//! `condition` is what stands behind IF, typed; `holds` asks it of a row that was read; `request` brings the conditions of a
//! statement or batch together, says what is to be read for them and whether they hold; `result` is the answer to those
//! that do not. Rules, texts and results are those of `CQL3CasRequest`, `ColumnCondition` and
//! `ModificationStatement.buildCasResultSet`. What is read and written in between is the way of every write that reads
//! first (`plan/modify/prior.rs`).

mod condition;
mod holds;
mod request;
mod result;

pub(crate) use condition::Conditions;
pub(crate) use request::{CasRequest, Verdict, check_together, without_deleted_rows};
