//! The bytes of a file as pages, which copies share until one of them is written.
//!
//! A page holds its bytes up to the last one that was ever written. The rest of it, and pages never written, are
//! zeroes that take no memory. So a preallocated log segment costs nothing, and a file of 40 bytes about 40. No page
//! holds bytes beyond the file's size, so truncating and extending again yields zeroes.

use std::sync::Arc;

/// Bytes of a page. The first write after a sync of a tracked file copies a whole page (about 5 us), so it is not
/// larger.
pub(crate) const PAGE_BYTES: usize = 64 * 1024;

/// The largest file. It limits the page table if an offset is wildly wrong (2^24 entries of 8 bytes).
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 40;

/// A file's bytes. Cloning copies the page table only.
#[derive(Clone, Default)]
pub(crate) struct Pages {
    size: u64,
    /// May be shorter than the size requires: missing pages are zeroes.
    table: Vec<Option<Arc<Vec<u8>>>>,
}

impl Pages {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buf` from `offset`; returns false and reads nothing if the file ends before.
    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> bool {
        let inside = offset.checked_add(buf.len() as u64).is_some_and(|end| end <= self.size);
        if inside {
            self.read_padded(buf, offset);
        }
        inside
    }

    /// Fills `buf` from `offset`, with zeroes after the end.
    pub(crate) fn read_padded(&self, mut buf: &mut [u8], mut offset: u64) {
        while !buf.is_empty() {
            let (index, within) = split(offset);
            let (part, rest) = buf.split_at_mut(buf.len().min(PAGE_BYTES - within));
            let bytes = self.page(index).and_then(|page| page.get(within..)).unwrap_or_default();
            let held = bytes.len().min(part.len());
            part[..held].copy_from_slice(&bytes[..held]);
            part[held..].fill(0);
            offset += part.len() as u64;
            buf = rest;
        }
    }

    /// Writes `buf` at `offset`, extending the file. The caller keeps the end within [`FILE_BYTES_MAX`].
    pub(crate) fn write(&mut self, mut buf: &[u8], mut offset: u64) {
        if buf.is_empty() {
            return;
        }
        let end = offset + buf.len() as u64;
        assert!(end <= FILE_BYTES_MAX, "a file in memory of {end} bytes");
        let (last, _) = split(end - 1);
        if self.table.len() <= last {
            self.table.resize(last + 1, None);
        }
        while !buf.is_empty() {
            let (index, within) = split(offset);
            let (part, rest) = buf.split_at(buf.len().min(PAGE_BYTES - within));
            let page = Arc::make_mut(self.table[index].get_or_insert_default());
            grow(page, within + part.len(), index > 0);
            page[within..within + part.len()].copy_from_slice(part);
            offset += part.len() as u64;
            buf = rest;
        }
        self.size = self.size.max(end);
    }

    /// Truncates, or extends with zeroes.
    pub(crate) fn set_size(&mut self, size: u64) {
        if size < self.size {
            let (index, within) = split(size);
            self.table.truncate(index + usize::from(within > 0));
            if let Some(Some(page)) = self.table.get_mut(index)
                && page.len() > within
            {
                Arc::make_mut(page).truncate(within);
            }
        }
        self.size = size;
    }

    /// The blocks of `block_bytes` (a divisor of the page) that differ from `other`, by number, ascending.
    pub(crate) fn differing_blocks(&self, other: &Pages, block_bytes: usize) -> Vec<u64> {
        let mut differing = Vec::new();
        let blocks_per_page = PAGE_BYTES / block_bytes;
        for index in 0..self.table.len().max(other.table.len()) {
            let (mine, theirs) = (self.page(index), other.page(index));
            if std::ptr::eq(
                mine.map_or(&raw const EMPTY, Arc::as_ptr),
                theirs.map_or(&raw const EMPTY, Arc::as_ptr),
            ) {
                continue;
            }
            for block in 0..blocks_per_page {
                let range = block * block_bytes..(block + 1) * block_bytes;
                if !equal_padded(part(mine, &range), part(theirs, &range)) {
                    differing.push((index * blocks_per_page + block) as u64);
                }
            }
        }
        differing
    }

    /// Copies one block from `other`, as far as it lies within this file's size.
    pub(crate) fn copy_block(&mut self, other: &Pages, block: u64, block_bytes: usize) {
        let offset = block * block_bytes as u64;
        let inside =
            usize::try_from(self.size.saturating_sub(offset)).map_or(block_bytes, |n| n.min(block_bytes));
        let mut bytes = vec![0; inside];
        other.read_padded(&mut bytes, offset);
        self.write(&bytes, offset);
    }

    fn page(&self, index: usize) -> Option<&Arc<Vec<u8>>> {
        self.table.get(index)?.as_ref()
    }
}

static EMPTY: Vec<u8> = Vec::new();

/// The page and the offset within it. An offset to be written is below [`FILE_BYTES_MAX`].
fn split(offset: u64) -> (usize, usize) {
    let page_bytes = PAGE_BYTES as u64;
    // An index beyond usize (32-bit machines) is beyond every table too.
    (usize::try_from(offset / page_bytes).unwrap_or(usize::MAX), (offset % page_bytes) as usize)
}

/// Makes `page` at least `len` long. The first page of a file grows by doubling, for small files; later pages are
/// allocated whole. `Vec` by itself would reserve up to two pages.
fn grow(page: &mut Vec<u8>, len: usize, whole: bool) {
    if page.len() >= len {
        return;
    }
    if page.capacity() < len {
        let capacity = if whole { PAGE_BYTES } else { (page.capacity() * 2).max(len).min(PAGE_BYTES) };
        page.reserve_exact(capacity - page.len());
    }
    page.resize(len, 0);
}

fn part<'a>(page: Option<&'a Arc<Vec<u8>>>, range: &std::ops::Range<usize>) -> &'a [u8] {
    let bytes = page.map_or(&[][..], |page| page.as_slice());
    bytes.get(range.start..range.end.min(bytes.len())).unwrap_or_default()
}

fn equal_padded(a: &[u8], b: &[u8]) -> bool {
    let common = a.len().min(b.len());
    a[..common] == b[..common] && a[common..].iter().chain(&b[common..]).all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pages: &Pages) -> Vec<u8> {
        let mut bytes = vec![9; usize::try_from(pages.size()).unwrap()];
        assert!(pages.read(&mut bytes, 0));
        bytes
    }

    #[test]
    fn reads_and_writes_agree_with_a_plain_vector() {
        let mut random = 7_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(random >> 33).unwrap() % below
        };
        let (mut pages, mut model) = (Pages::default(), Vec::new());
        for round in 0..400_u32 {
            let at = next(3 * PAGE_BYTES);
            if next(5) == 0 {
                pages.set_size(at as u64);
                model.resize(at, 0);
            } else {
                let bytes = vec![u8::try_from(round % 251).unwrap() + 1; next(PAGE_BYTES + 100) + 1];
                pages.write(&bytes, at as u64);
                model.resize(model.len().max(at + bytes.len()), 0);
                model[at..at + bytes.len()].copy_from_slice(&bytes);
            }
            assert!(all(&pages) == model, "round {round}");
            assert!(pages.table.iter().flatten().all(|page| page.capacity() <= PAGE_BYTES));
        }
    }

    #[test]
    fn a_read_beyond_the_end_is_refused() {
        let mut pages = Pages::default();
        pages.write(b"abc", 0);
        assert!(!pages.read(&mut [0; 4], 0) && !pages.read(&mut [0; 1], u64::MAX));
        assert!(pages.read(&mut [], 3) && !pages.read(&mut [], 4));
    }

    #[test]
    fn an_extended_file_takes_no_memory_and_a_copy_shares_its_pages() {
        let mut pages = Pages::default();
        pages.set_size(1 << 30);
        assert!(pages.table.is_empty());
        pages.write(b"x", 5);
        let copy = pages.clone();
        assert!(Arc::ptr_eq(pages.table[0].as_ref().unwrap(), copy.table[0].as_ref().unwrap()));
        pages.write(b"y", 5);
        let mut byte = [0];
        assert!(copy.read(&mut byte, 5));
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn differing_blocks_are_found_and_copied() {
        let mut old = Pages::default();
        old.write(&[1; 5000], 0);
        let mut new = old.clone();
        assert!(new.differing_blocks(&old, 512).is_empty());
        new.write(&[2], 600);
        new.write(&[0; 4], 8192);
        new.write(&[3], PAGE_BYTES as u64 * 2);
        assert_eq!(new.differing_blocks(&old, 512), [1, 256]);
        assert_eq!(old.differing_blocks(&new, 4096), [0, 32]);
        old.copy_block(&new, 1, 512);
        old.copy_block(&new, 256, 512);
        assert_eq!(old.size(), 5000, "a block behind the end is left out");
        assert_eq!(all(&old)[600], 2);
    }
}
