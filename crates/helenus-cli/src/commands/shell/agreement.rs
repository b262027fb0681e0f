//! Waits until all nodes of a cluster have the same schema version, as cqlsh's driver does after a schema change.

use super::session::Session;
use anyhow::Result;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Maximum time until the nodes agree (the driver's `max_schema_agreement_wait`).
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two queries.
const PAUSE: Duration = Duration::from_millis(200);

/// The warning if they do not agree, in cqlsh's words.
pub const MISMATCH: &str = "Warning: schema version mismatch detected; check the schema versions of your nodes in system.local \
                            and system.peers.";

/// Waits until the server and its peers report the same schema version. Returns whether they do. Ctrl-C ends the wait.
pub fn agree(session: &mut Session) -> bool {
    let begun = Instant::now();
    loop {
        // Peers that report no version are down or new, and do not count. An error is retried, because the node may
        // recover.
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
