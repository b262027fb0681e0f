//! Refused connections: each gets an ERROR in its own protocol version and is then closed.
//!
//! The client's first message is read before the connection is closed, because closing a socket with unread input
//! discards the answer. The number of connections being answered is bounded. Clients that send nothing make room for
//! others, and are closed without an answer, as `ConnectionLimitHandler` in Cassandra closes all; so are clients that begin with TLS. The
//! bytes of the answer are `wire`'s (`connection_refusal`).

use std::collections::VecDeque;
use std::time::Duration;

use helenus_wire::native::{REFUSED_FRONT, connection_refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// The most refused connections at once: no budget counts their file descriptors.
const TOLD_MAX: usize = 32;
/// How long the server waits for the first message, and again for the client to close.
const PATIENCE: Duration = Duration::from_secs(1);

/// The refused connections, the oldest first; some may have ended.
#[derive(Default)]
pub(super) struct Refused {
    told: VecDeque<AbortHandle>,
}

impl Refused {
    /// Sends `reason` to a client in the background. Must be called on a runtime.
    pub fn tell(&mut self, stream: TcpStream, reason: String) {
        self.told.retain(|told| !told.is_finished());
        if self.told.len() >= TOLD_MAX
            && let Some(oldest) = self.told.pop_front()
        {
            oldest.abort();
        }
        let telling = tokio::spawn(async move {
            // An error here means that the client has left.
            let _told = tell(stream, reason).await;
        });
        self.told.push_back(telling.abort_handle());
    }
}

async fn tell(mut stream: TcpStream, reason: String) -> std::io::Result<()> {
    let mut front = [0; REFUSED_FRONT];
    let front = match timeout(PATIENCE, stream.read_exact(&mut front)).await {
        Ok(read) => {
            read?;
            Some(front)
        }
        Err(_says_nothing) => None,
    };
    let Some(out) = connection_refusal(front, &reason) else { return Ok(()) };
    timeout(PATIENCE, async {
        stream.write_all(&out).await?;
        stream.shutdown().await?;
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        Ok(())
    })
    .await
    .unwrap_or(Ok(()))
}
