//! Refused connections: each gets an ERROR in its own version of the protocol and is then closed, as at a server.
//!
//! The first message is read before the connection is closed, because closing a socket with unread input discards the answer. No limit
//! counts these connections, so few are told at a time: clients that send nothing make room for others. Who begins with TLS is closed at
//! once. The bytes of the answer are `wire`'s (`connection_refusal`).

use std::collections::VecDeque;
use std::time::Duration;

use helenus_wire::native::{REFUSED_FRONT, connection_refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// The most refused connections at once.
const TOLD_MAX: usize = 32;
/// How long the gateway waits for the first message, and again for the client to close.
const PATIENCE: Duration = Duration::from_secs(1);

/// The refused connections, the oldest first; some may have ended.
#[derive(Default)]
pub(crate) struct Refused {
    told: VecDeque<AbortHandle>,
}

impl Refused {
    /// Sends `reason` to a client in the background. Called on a runtime.
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

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_wire::native::TLS_HANDSHAKE;
    use tokio::net::TcpListener;

    /// What a refused client gets that sends these bytes first.
    async fn told(first: &[u8]) -> Vec<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        client.write_all(first).await.unwrap();
        let mut refused = Refused::default();
        refused.tell(listener.accept().await.unwrap().0, "full".to_owned());
        let mut got = Vec::new();
        let _ = client.read_to_end(&mut got).await;
        got
    }

    #[tokio::test]
    async fn a_refused_client_is_told_in_its_version_and_who_begins_with_tls_is_closed() {
        for version in [3, 4, 5] {
            let got = told(&[version, 0, 0, 7, 5, 0, 0, 0, 0]).await;
            assert_eq!(got.get(..5).unwrap(), [0x80 | version, 0, 0, 7, 0], "{version}");
            assert!(String::from_utf8_lossy(&got).contains("refused: full"));
        }
        assert!(told(&[TLS_HANDSHAKE, 3, 1, 0, 200]).await.is_empty());
    }

    #[tokio::test]
    async fn those_that_say_nothing_make_room_for_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (mut refused, mut clients) = (Refused::default(), Vec::new());
        for _ in 0..3 * TOLD_MAX {
            clients.push(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
            refused.tell(listener.accept().await.unwrap().0, "full".to_owned());
            assert!(refused.told.len() <= TOLD_MAX);
        }
        let mut rest = [0; 1];
        assert_eq!(clients[0].read(&mut rest).await.unwrap_or(0), 0, "the oldest one is closed");
    }
}
