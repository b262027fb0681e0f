//! How far the clocks of the target's nodes are from this server's. Who serves next stamps by its own clock.

use crate::attempts::Attempts;
use crate::error::MoveError;
use helenus_cluster::{Cluster, ClusterError, Connection, Extras};
use helenus_engine::Database;
use helenus_wire::native::{Query, QueryParameters, Request};
use std::time::Duration;

/// The greatest differences that the clocks of the connected nodes may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// Of one that is behind this server's.
    pub(crate) behind: Duration,
    /// Of one that is ahead of it.
    pub(crate) ahead: Duration,
}

impl Clocks {
    /// Asks every connected node for the time, again and again. One whose connections are lost meanwhile does not count.
    ///
    /// # Errors
    /// A node does not answer and keeps its connection.
    pub(crate) async fn of(cluster: &Cluster, database: &Database) -> Result<Clocks, MoveError> {
        let mut clocks = Clocks::default();
        for node in &cluster.topology().nodes {
            let mut attempts = Attempts::new();
            while let Some(connection) = node.connection() {
                match time_at(&connection, database).await {
                    Ok((here_us, there_ms)) => {
                        clocks.note(here_us, there_ms);
                        break;
                    }
                    Err(error) => tokio::time::sleep(attempts.after(error)?).await,
                }
            }
        }
        Ok(clocks)
    }

    /// A node gave this time at some moment between these two here, and cut off its microseconds.
    fn note(&mut self, (before_us, after_us): (i64, i64), there_ms: i64) {
        let (least_us, most_us) =
            (there_ms.saturating_mul(1000), there_ms.saturating_add(1).saturating_mul(1000));
        let time = |us: i64| Duration::from_micros(u64::try_from(us).unwrap_or(0));
        self.behind = self.behind.max(time(after_us.saturating_sub(least_us)));
        self.ahead = self.ahead.max(time(most_us.saturating_sub(before_us)));
    }
}

/// The time of a node, milliseconds, and that here before and after the question, microseconds.
async fn time_at(connection: &Connection, database: &Database) -> Result<((i64, i64), i64), ClusterError> {
    let text = "SELECT toUnixTimestamp(now()) FROM system.local";
    let query = Query { query: text, parameters: QueryParameters::default() };
    let before_us = database.wall_us();
    let answer = connection.call(&Request::Query(query), &Extras::default()).await;
    let after_us = database.wall_us();
    let answer = answer?;
    let rows = answer.rows()?;
    let mut cells =
        rows.iter().flatten().filter_map(|row| row.cells().next().flatten()?.first_chunk().copied());
    let there_ms = cells.next().map(i64::from_be_bytes);
    let there_ms =
        there_ms.ok_or_else(|| ClusterError::Invalid("a node does not tell the time".to_owned()))?;
    Ok(((before_us, after_us), there_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted_target::{Answer, ScriptedMove};
    use helenus_wire::native::{ErrorCode, ErrorMessage};

    #[tokio::test]
    async fn a_node_that_does_not_tell_the_time_at_once_is_asked_again() {
        let mut failures = vec![ErrorCode::Overloaded, ErrorCode::Server];
        let of = ScriptedMove::new(&[], move |asked| {
            let code = asked.text.contains("toUnixTimestamp").then(|| failures.pop()).flatten()?;
            Some(Answer::Error(ErrorMessage::plain(code, "not now")))
        });
        let of = of.await;
        let clocks = Clocks::of(&of.context.target.cluster, of.context.database()).await.unwrap();
        assert!(clocks.ahead < Duration::from_secs(60) && clocks.ahead > Duration::ZERO);
    }

    #[test]
    fn a_difference_is_never_taken_for_less_than_it_may_be() {
        let mut clocks = Clocks::default();
        clocks.note((5_000_000, 5_003_000), 5_001);
        assert_eq!(clocks, Clocks { behind: Duration::from_millis(2), ahead: Duration::from_millis(2) });
        clocks.note((5_000_000, 5_003_000), 4_900);
        assert_eq!(clocks.behind, Duration::from_millis(103));
        clocks.note((5_000_000, 5_003_000), 6_000);
        assert_eq!(clocks.ahead, Duration::from_millis(1_001));
    }
}
