//! Where the pieces of a file's chunks are, as far as reads have found it.

use super::pieces::Pieces;
use crate::block::{Beside, BlockCache};
use helenus_host::prefetch_lines;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Chunks side by side, whose memory comes when the first of them is asked for.
const GROUP: usize = 64;
/// Chunks without pieces, where none had any, after which a file is taken for another program's.
const IN_VAIN: u32 = 64;

type Group = [Known; GROUP];

/// In place of a number: one had.
const NOT_IN_VAIN: u32 = u32::MAX;

/// What is known of a chunk.
pub(super) struct Known {
    /// Its pieces.
    pub(super) pieces: OnceLock<Pieces>,
    /// The miss by which a part of it was read last; 0 if none was.
    pub(super) missed: AtomicU32,
}

/// The chunks of a file.
pub(super) struct KnownPieces {
    groups: Box<[OnceLock<Option<Box<Group>>>]>,
    cache: Arc<dyn BlockCache>,
    reserved: AtomicU64,
    /// Chunks that were looked into, as long as none had pieces.
    in_vain: AtomicU32,
}

impl KnownPieces {
    /// Of so many chunks, 0 if they have no pieces.
    pub(super) fn of(chunks: u64, cache: Arc<dyn BlockCache>) -> KnownPieces {
        let groups = (0..chunks.div_ceil(GROUP as u64)).map(|_| OnceLock::new()).collect();
        KnownPieces { groups, cache, reserved: AtomicU64::new(0), in_vain: AtomicU32::new(0) }
    }

    /// Asks for what is known of a chunk, before it is looked whether the chunk is kept.
    #[inline]
    pub(super) fn prefetch(&self, number: u64) {
        let number = number as usize;
        if let Some(Some(group)) = self.groups.get(number / GROUP).and_then(OnceLock::get)
            && let Some(known) = group.get(number % GROUP)
        {
            prefetch_lines(known, 1);
        }
    }

    /// What is known of a chunk; `None` where nothing is kept of it.
    pub(super) fn of_chunk(&self, number: u64) -> Option<&Known> {
        let number = usize::try_from(number).ok()?;
        if (IN_VAIN..NOT_IN_VAIN).contains(&self.in_vain.load(Ordering::Relaxed)) {
            return None;
        }
        let group = self.groups.get(number / GROUP)?.get_or_init(|| {
            let bytes = size_of::<Group>() as u64;
            self.cache.reserve(Beside::Pieces, bytes).then(|| {
                self.reserved.fetch_add(bytes, Ordering::Relaxed);
                Box::new([const { Known { pieces: OnceLock::new(), missed: AtomicU32::new(0) } }; GROUP])
            })
        });
        group.as_ref()?.get(number % GROUP)
    }

    /// A chunk was looked into.
    pub(super) fn found(&self, pieces: &Pieces) {
        if pieces.are_several() {
            self.in_vain.store(NOT_IN_VAIN, Ordering::Relaxed);
        } else {
            let add = |in_vain: u32| (in_vain != NOT_IN_VAIN).then(|| in_vain + 1);
            let _ = self.in_vain.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }
}

impl Drop for KnownPieces {
    fn drop(&mut self) {
        self.cache.release(Beside::Pieces, self.reserved.load(Ordering::Relaxed));
    }
}
