//! Roles that go with a move: their passwords as hashes, what they may do with what is moved, and who is a member of whom.
//!
//! `role` is a role of either side, which `here` and `there` read. `wanted` compares both sides and says which statements make the
//! target's the same. `send` runs them: at the start of a move, and once more before the cut (`at_cut`), so that what was changed
//! meanwhile goes too. Hashes are in statements alone: never in the state, a log or an answer.

mod at_cut;
mod here;
mod role;
mod send;
mod there;
mod wanted;

pub(crate) use at_cut::CutRoles;
pub(crate) use here::not_moved;
pub(crate) use send::{plan, send};
pub(crate) use there::{Shown, setting};
