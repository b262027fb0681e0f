//! `/metrics`: the server's metrics, read at each scrape.
//!
//! The counters are those of `system_views` and the admin tools, under two kinds of names: `own` and `tables` write the
//! short ones of Helenus, `cassandra` those that dashboards for Cassandra use. `page` puts them together.

mod cassandra;
mod own;
mod page;
mod tables;

pub(super) use page::metrics;
