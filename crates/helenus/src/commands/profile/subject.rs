//! What is profiled: something that holds the rows and answers queries about them.

use super::answer::Answer;
use super::cases::Query;
use super::progress::Progress;
use super::results::Settled;
use super::rows::Partition;
use anyhow::Result;
use helenus_engine::read::Probe;
use std::time::Duration;

/// A database under the profile. One call at a time.
pub(super) trait Subject {
    /// Makes keyspace and tables where they are not there; with `anew` drops them first.
    fn make_tables(&mut self, anew: bool) -> Result<()>;

    /// Writes a row whole.
    fn load(&mut self, partition: Partition, progress: &Progress) -> Result<()>;

    /// Brings what was loaded to its lasting form, flushed and compacted, where that can be asked for.
    fn settle(&mut self) -> Result<Settled>;

    /// Puts a query. Returns how long it took; copying the answer out of where it arrived may be left out of that.
    fn ask(&mut self, partition: Partition, query: &Query, answer: &mut Answer) -> Result<Duration>;

    /// Puts a query and counts what it touches. `None` where that cannot be seen.
    fn probe(&mut self, partition: Partition, query: &Query, answer: &mut Answer) -> Result<Option<Probe>>;
}
