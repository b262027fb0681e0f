//! Writes: converts columns and deletions to changes of partitions, which are logged and applied like those of
//! statements.

mod batch;
mod calls;
mod cas;
mod changes;

pub(crate) use changes::{Change, RowChanges};
