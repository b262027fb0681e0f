//! Plans: typed statements that can run any number of times with different values. One file or folder for each kind.

pub(crate) mod access;
mod analysed;
pub(crate) mod batch;
pub(crate) mod conditional;
pub(crate) mod ddl;
pub(crate) mod describe;
mod execution;
pub(crate) mod explain;
pub(crate) mod modify;
pub(crate) mod paging_state;
pub(crate) mod select;
mod subject;
pub(crate) mod timeout;
mod validity;

pub(crate) use analysed::{Analysed, Plan, analyse};
pub(crate) use execution::Execution;
pub(crate) use paging_state::check_paging_state;
pub(crate) use subject::subject;
