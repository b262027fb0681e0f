//! Compares every cell of the tables of a move on both sides, while both are written to.
//!
//! `job` goes through the ranges of tokens of the back-fill and finds rows that seem to differ. `confirm` reads such a row again on both
//! sides, once the tail has sent all changes up to then, and compares it unless it was changed meanwhile: so a change under way is no
//! difference. `repair` sends what this server holds of the differing rows again, deletions too. `control` starts and stops it all.

mod confirm;
mod control;
mod job;
mod repair;

pub(crate) use control::Verification;
