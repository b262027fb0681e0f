//! Reads files from start to end in large pieces past the system's page cache: for compaction, which reads everything
//! once.
//!
//! In the page cache its data would displace data that reads need. The buffers are reused, because memory that is new
//! to a process costs the system more than the read itself.

use helenus_host::{DIRECT_PAGE_BYTES, File, PageBuffer};
use std::io;
use std::sync::Arc;

/// Size of a piece in bytes.
const PIECE_BYTES: usize = 256 * 1024;
/// Number of files that are read in pieces at the same time. Others are read in the usual way.
const FILES_MAX: usize = 64;

/// The current piece of each file.
#[derive(Default)]
pub struct ReadAhead {
    pieces: Vec<Piece>,
}

struct Piece {
    file: Arc<dyn File>,
    start: u64,
    bytes: PageBuffer,
}

impl std::fmt::Debug for ReadAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReadAhead of {} files", self.pieces.len())
    }
}

impl ReadAhead {
    /// Fills `out` from `offset` of the file, which has this size. The range must be within the file.
    pub(crate) fn read(
        &mut self,
        (file, size): (&Arc<dyn File>, u64),
        mut offset: u64,
        mut out: &mut [u8],
    ) -> io::Result<()> {
        let Some(piece) = self.piece(file, size) else { return file.read_exact_at(out, offset) };
        while !out.is_empty() {
            let at = offset.checked_sub(piece.start).and_then(|at| usize::try_from(at).ok());
            let here = at.and_then(|at| piece.bytes.bytes().get(at..)).unwrap_or(&[]);
            if here.is_empty() {
                piece.load(size, offset)?;
                continue;
            }
            let len = here.len().min(out.len());
            let (now, later) = out.split_at_mut(len);
            now.copy_from_slice(here.split_at(len).0);
            out = later;
            offset += len as u64;
        }
        Ok(())
    }

    fn piece(&mut self, file: &Arc<dyn File>, size: u64) -> Option<&mut Piece> {
        let found = self.pieces.iter().position(|piece| Arc::ptr_eq(&piece.file, file));
        let index = match found {
            Some(index) => index,
            None if self.pieces.len() < FILES_MAX => {
                let bytes = usize::try_from(size).map_or(PIECE_BYTES, |size| size.min(PIECE_BYTES));
                self.pieces.push(Piece { file: file.clone(), start: 0, bytes: PageBuffer::new(bytes) });
                self.pieces.len() - 1
            }
            None => return None,
        };
        self.pieces.get_mut(index)
    }
}

impl Piece {
    /// Reads the piece that begins with the page of `offset`, which must be before the file's end.
    fn load(&mut self, size: u64, offset: u64) -> io::Result<()> {
        self.start = offset - offset % DIRECT_PAGE_BYTES as u64;
        self.bytes.set_len(usize::try_from(size - self.start).unwrap_or(usize::MAX));
        let read = self.file.read_direct_at(self.bytes.bytes_mut(), self.start);
        if read.is_err() {
            self.bytes.clear();
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trie::test_file::MemoryFile;

    #[test]
    fn pieces_give_what_the_files_hold_wherever_they_are_asked() {
        let sizes = [1_usize, 4095, 70_000, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 777];
        let content = |len: usize, seed: usize| -> Vec<u8> {
            (0..len).map(|i| ((i * 31 + seed * 7) % 251) as u8).collect()
        };
        let files: Vec<_> = sizes
            .iter()
            .enumerate()
            .map(|(seed, len)| {
                let file: Arc<dyn File> = MemoryFile::empty();
                file.write_all_at(&content(*len, seed), 0).unwrap();
                file
            })
            .collect();
        let mut ahead = ReadAhead::default();
        // Goes forward through each file in turn, in steps that cross pieces, and jumps back.
        for round in 0..4_000_usize {
            let which = round % sizes.len();
            let bytes = content(sizes[which], which);
            let start = (round * 1_733) % bytes.len();
            let mut out = vec![0; (round * 97 % 20_000).min(bytes.len() - start)];
            ahead.read((&files[which], bytes.len() as u64), start as u64, &mut out).unwrap();
            assert_eq!(out, bytes[start..start + out.len()]);
        }
    }

    #[test]
    fn more_files_than_it_has_pieces_for_are_read_too_and_a_file_that_is_shorter_is_an_error() {
        let file = || -> Arc<dyn File> {
            let file = MemoryFile::empty();
            file.write_all_at(&[7; 100], 0).unwrap();
            file
        };
        let mut ahead = ReadAhead::default();
        for _ in 0..2 * FILES_MAX as u64 {
            let mut out = [0; 10];
            ahead.read((&file(), 100), 90, &mut out).unwrap();
            assert_eq!(out, [7; 10]);
        }
        let (mut fresh, file) = (ReadAhead::default(), file());
        assert!(fresh.read((&file, 200), 0, &mut [0; 150]).is_err());
        assert!(fresh.read((&file, 200), 0, &mut [0; 50]).is_err(), "nothing of a failed piece is taken");
    }
}
