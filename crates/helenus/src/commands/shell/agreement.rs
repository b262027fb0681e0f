//! Waiting until all nodes of a cluster have the same schema, as cqlsh's driver does after a change of it.

use super::session::Session;
use anyhow::Result;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long nodes may take to agree (the driver's `max_schema_agreement_wait`).
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// What is said where they do not agree, in cqlsh's words.
pub const MISMATCH: &str = "Warning: schema version mismatch detected; check the schema versions of your nodes in system.local \
                            and system.peers.";

/// Waits until the server and its peers say the same version of the schema; whether they do in the end. Ctrl-C ends the wait.
pub fn agree(session: &mut Session) -> bool {
    let begun = Instant::now();
    loop {
        // Peers that do not say theirs are down or new; a node that cannot answer this now may be able to later.
        if versions(session).is_ok_and(|versions| versions.len() < 2) {
            return true;
        }
        if begun.elapsed() >= PATIENCE || session.interrupt.take() {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

fn versions(session: &mut Session) -> Result<BTreeSet<Vec<u8>>> {
    let own = session.rows("SELECT schema_version FROM system.local WHERE key = 'local'")?;
    let peers = session.rows("SELECT schema_version FROM system.peers")?;
    Ok(own.into_iter().chain(peers).filter_map(|row| row.into_iter().next().flatten()).collect())
}
