//! The interface to a profiled database: it holds the rows and answers queries about them.

use super::answer::Answer;
use super::cases::Query;
use super::progress::Progress;
use super::results::Settled;
use super::rows::Partition;
use anyhow::Result;
use helenus_engine::read::Probe;
use std::time::Duration;

/// A profiled database. One call at a time.
pub(super) trait Subject {
    /// Creates keyspace and tables if they do not exist; with `anew` drops them first.
    fn make_tables(&mut self, anew: bool) -> Result<()>;

    /// Writes a complete row.
    fn load(&mut self, partition: Partition, progress: &Progress) -> Result<()>;

    /// Flushes and compacts the loaded data, if the subject can do that.
    fn settle(&mut self) -> Result<Settled>;

    /// Runs a query. Returns the time it took, which may exclude copying the answer out of the receive buffer.
    fn ask(&mut self, partition: Partition, query: &Query, answer: &mut Answer) -> Result<Duration>;

    /// Runs a query with a probe. `None` if the subject has no probe.
    fn probe(&mut self, partition: Partition, query: &Query, answer: &mut Answer) -> Result<Option<Probe>>;
}
