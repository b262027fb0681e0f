//! The attempts of one request that reads of a cluster: a failure that passes is answered by asking again, for a bounded time.

use helenus_cluster::{Cluster, ClusterError, OwnedAnswer};
use helenus_wire::native::{Consistency, Value};
use std::time::Duration;
use tokio::time::Instant;

/// How long a request is tried again after its first failure: a node may be away for a minute or two, as while it is started anew.
const PATIENCE: Duration = Duration::from_secs(180);
/// The first and the longest pause between two attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The attempts of one request.
pub(crate) struct Attempts {
    /// When the first of them failed.
    first_failed: Option<Instant>,
    pause: Duration,
}

impl Attempts {
    /// None is made yet.
    pub(crate) fn new() -> Attempts {
        Attempts { first_failed: None, pause: PAUSES.0 }
    }

    /// The pause before the next attempt.
    ///
    /// # Errors
    /// This failure, if it does not pass, or if all attempts have failed for `PATIENCE`.
    pub(crate) fn after(&mut self, error: ClusterError) -> Result<Duration, ClusterError> {
        let now = tokio::time::Instant::now();
        let first_failed = *self.first_failed.get_or_insert(now);
        if now.duration_since(first_failed) >= PATIENCE || !error.may_repeat(true) {
            return Err(error);
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSES.1);
        Ok(pause)
    }
}

/// The answer to a statement that reads, which any node may be asked for.
///
/// # Errors
/// A failure that does not pass, or that has not passed at several attempts.
pub(crate) async fn ask(
    cluster: &Cluster,
    text: &str,
    values: &[Value<'_>],
    consistency: Consistency,
) -> Result<OwnedAnswer, ClusterError> {
    let mut attempts = Attempts::new();
    loop {
        match cluster.query(text, values, consistency).await {
            Ok(answer) => return Ok(answer),
            Err(error) => tokio::time::sleep(attempts.after(error)?).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted_target::{Answer, ScriptedMove};
    use helenus_wire::native::{ErrorCode, ErrorMessage};

    #[tokio::test(start_paused = true)]
    async fn a_request_is_given_up_after_minutes_without_a_success() {
        let away = || ClusterError::NoNode { reason: None };
        let (mut attempts, begun) = (Attempts::new(), tokio::time::Instant::now());
        while let Ok(pause) = attempts.after(away()) {
            tokio::time::advance(pause).await;
        }
        let took = begun.elapsed();
        assert!(took >= PATIENCE && took < PATIENCE + PAUSES.1, "{took:?}");
        assert!(Attempts::new().after(ClusterError::Invalid("damaged".to_owned())).is_err());
    }

    #[tokio::test]
    async fn a_node_that_cannot_read_permissions_is_asked_again_and_one_that_refuses_is_not() {
        let error = |code, text: &str| Some(Answer::Error(ErrorMessage::plain(code, text)));
        let unread =
            "Unable to perform authorization of permissions: Cannot achieve consistency level LOCAL_ONE";
        let mut answers = vec![
            error(
                ErrorCode::Unauthorized,
                "User u has no SELECT permission on <table ks.t> or any of its parents",
            ),
            None,
            error(ErrorCode::Overloaded, "too much"),
            error(ErrorCode::Unauthorized, unread),
        ];
        let of = ScriptedMove::new(&[], move |asked| {
            asked.text.contains("ks.t").then(|| answers.pop().flatten()).flatten()
        });
        let (of, text) = (of.await, "SELECT a FROM ks.t");
        let cluster = &of.context.target.cluster;
        ask(cluster, text, &[], Consistency::One).await.unwrap();
        let refused = ask(cluster, text, &[], Consistency::One).await.unwrap_err();
        assert!(refused.to_string().contains("no SELECT permission"), "{refused}");
    }
}
