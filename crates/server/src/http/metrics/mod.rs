//! `/metrics`: the server's figures, read when somebody scrapes.
//!
//! The same counters as behind `system_views` and the admin tools, under names of two kinds: `own` and `tables` write short ones
//! of ours, `cassandra` those that dashboards for Cassandra ask for. `page` puts them together.

mod cassandra;
mod own;
mod page;
mod tables;

pub(super) use page::metrics;
