//! The server's end of `helenus move`: requests and answers as JSON on the admin socket.

use helenus_mover::{MoveRequest, Mover};
use helenus_server::admin::FurtherVerbs;
use std::sync::Arc;

/// The name by which the admin socket knows it.
pub const TOOL: &str = "move";

struct MoveVerbs(Arc<Mover>);

/// The mover's answers to requests of tools.
pub fn verbs(mover: &Arc<Mover>) -> Arc<dyn FurtherVerbs> {
    Arc::new(MoveVerbs(Arc::clone(mover)))
}

impl FurtherVerbs for MoveVerbs {
    fn answer(&self, request: &str) -> Result<String, String> {
        let request: MoveRequest =
            serde_json::from_str(request).map_err(|error| format!("not a request: {error}"))?;
        let answer = self.0.answer(&request).map_err(|error| error.to_string())?;
        serde_json::to_string(&answer).map_err(|error| error.to_string())
    }
}
