//! Writes: columns and deletions as changes of partitions, logged and applied as any statement's.

mod batch;
mod calls;
mod cas;
mod changes;

pub(crate) use changes::{Change, RowChanges};
