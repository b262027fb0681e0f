//! The bodies of answers: their bytes are on the memory account until the client has taken them.
//!
//! hyper copies what it is given into a buffer of its own, so it gets little at a time.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use helenus_host::account::{Charge, Share};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::Semaphore;

/// The bytes that are given to hyper at a time.
const SLICE_BYTES: usize = 16 << 10;
/// A text of at most this length needs no room.
const UNCHARGED_BYTES: usize = 4 << 10;

/// A text with what is held for it. As the owner of `Bytes` it is dropped once the client has taken them.
struct Owner<T> {
    text: String,
    _held: T,
}

impl<T> AsRef<[u8]> for Owner<T> {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// The bytes of a text; `held` is dropped when the client has taken all of them, or has gone.
pub(super) fn bytes_with<T: Send + 'static>(text: String, held: T) -> Bytes {
    Bytes::from_owner(Owner { text, _held: held })
}

/// Takes the next slice of a piece.
pub(super) fn next_slice(piece: &mut Bytes) -> Option<Bytes> {
    (!piece.is_empty()).then(|| piece.split_to(piece.len().min(SLICE_BYTES)))
}

/// A body that is complete.
pub(super) struct TextBody {
    rest: Bytes,
}

impl TextBody {
    /// A body of this text; `None` if there is no memory for a text that waits for its client.
    pub fn new(text: String) -> Option<TextBody> {
        if text.capacity() <= UNCHARGED_BYTES {
            return Some(TextBody { rest: Bytes::from(text) });
        }
        let charge = Charge::try_take(Share::Answers, text.capacity() as u64)?;
        Some(TextBody { rest: bytes_with(text, charge) })
    }

    /// A body of the server's figures, which are wanted most when there is no memory: then a few clients at a time get theirs
    /// beyond it, those for whom there is one of the `spare` places. `None`: they are taken.
    pub fn of_figures(text: String, spare: &Arc<Semaphore>) -> Option<TextBody> {
        let bytes = text.capacity() as u64;
        let rest = match Charge::try_take(Share::Answers, bytes) {
            Some(charge) => bytes_with(text, charge),
            None => {
                let place = Arc::clone(spare).try_acquire_owned().ok()?;
                bytes_with(text, (Charge::force(Share::Answers, bytes), place))
            }
        };
        Some(TextBody { rest })
    }

    /// A body of a text that is never long.
    pub fn of_static(text: &'static str) -> TextBody {
        TextBody { rest: Bytes::from_static(text.as_bytes()) }
    }
}

impl Body for TextBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(next_slice(&mut self.rest).map(|slice| Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_for_a_text_is_held_until_its_last_slice_is_taken() {
        let held = Arc::new(());
        let text = "x".repeat(3 * SLICE_BYTES + 1);
        let mut piece = bytes_with(text.clone(), Arc::clone(&held));
        let mut slices: Vec<Bytes> = std::iter::from_fn(|| next_slice(&mut piece)).collect();
        assert_eq!((slices.concat(), slices.len()), (text.into_bytes(), 4));
        drop(piece);
        while slices.pop().is_some() && !slices.is_empty() {
            assert_eq!(Arc::strong_count(&held), 2);
        }
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
