//! The server's end of `helenus pull`: requests and answers as JSON on the admin socket.

use helenus_mover::{PullRequest, Puller};
use helenus_server::admin::FurtherVerbs;
use std::sync::Arc;

/// The name by which the admin socket knows it.
pub const TOOL: &str = "pull";

struct PullVerbs(Arc<Puller>);

/// The puller's answers to requests of tools.
pub fn verbs(puller: &Arc<Puller>) -> Arc<dyn FurtherVerbs> {
    Arc::new(PullVerbs(Arc::clone(puller)))
}

impl FurtherVerbs for PullVerbs {
    fn answer(&self, request: &str) -> Result<String, String> {
        let request: PullRequest =
            serde_json::from_str(request).map_err(|error| format!("not a request: {error}"))?;
        let answer = self.0.answer(&request).map_err(|error| error.to_string())?;
        serde_json::to_string(&answer).map_err(|error| error.to_string())
    }
}
