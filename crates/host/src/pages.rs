//! Memory that begins at a page, as reads and writes past the system's page cache want it.

/// Bytes of a page: addresses, places in a file and lengths of a direct read or write are multiples of it. Devices whose
/// blocks are smaller take them too.
pub const DIRECT_PAGE_BYTES: usize = 4096;

/// Whether bytes can go past the page cache as they lie: whole pages in memory, to or from whole pages of a file.
pub fn is_direct(bytes: &[u8], offset: u64) -> bool {
    bytes.as_ptr().addr().is_multiple_of(DIRECT_PAGE_BYTES)
        && bytes.len().is_multiple_of(DIRECT_PAGE_BYTES)
        && offset.is_multiple_of(DIRECT_PAGE_BYTES as u64)
}

/// Bytes that are gathered, the first of them at the start of a page. Never grows.
pub struct PageBuffer {
    // Never longer than its capacity, so it stays where it is.
    memory: Vec<u8>,
    start: usize,
    capacity: usize,
}

impl PageBuffer {
    /// Room for so many bytes.
    pub fn new(capacity: usize) -> PageBuffer {
        let mut memory: Vec<u8> = Vec::with_capacity(capacity + DIRECT_PAGE_BYTES);
        // `usize::MAX` where an interpreter does not tell addresses: then nothing is direct.
        let start = memory.as_ptr().align_offset(DIRECT_PAGE_BYTES);
        let start = if start < DIRECT_PAGE_BYTES { start } else { 0 };
        memory.resize(start, 0);
        PageBuffer { memory, start, capacity }
    }

    /// The bytes gathered.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.memory.get(self.start..).unwrap_or(&[])
    }

    /// The same, to be written over.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.start..).unwrap_or(&mut [])
    }

    /// How many they are.
    #[inline]
    pub fn len(&self) -> usize {
        self.memory.len() - self.start
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is room for no more.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    /// Takes as many of the bytes as there is room for; returns the others.
    #[inline]
    pub fn fill<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (now, later) = bytes.split_at(bytes.len().min(self.capacity - self.len()));
        self.memory.extend_from_slice(now);
        later
    }

    /// Makes it hold so many bytes, at most its capacity, whatever they are.
    pub fn set_len(&mut self, len: usize) {
        self.memory.resize(self.start + len.min(self.capacity), 0);
    }

    /// Forgets all bytes.
    pub fn clear(&mut self) {
        self.memory.truncate(self.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_begin_at_a_page_and_stay_there_however_they_come() {
        let mut buffer = PageBuffer::new(3 * DIRECT_PAGE_BYTES);
        let bytes: Vec<u8> = (0..2 * DIRECT_PAGE_BYTES).map(|n| (n % 251) as u8).collect();
        assert!(buffer.is_empty() && is_direct(buffer.bytes(), 0));
        assert!(buffer.fill(&bytes).is_empty());
        assert!(is_direct(buffer.bytes(), 8192) && !is_direct(buffer.bytes(), 8191));
        assert_eq!(buffer.fill(&bytes).len(), DIRECT_PAGE_BYTES);
        assert!(buffer.is_full() && is_direct(buffer.bytes(), 0));
        assert_eq!(buffer.bytes()[..bytes.len()], bytes);
        assert!(!is_direct(&buffer.bytes()[1..], 0) && !is_direct(&buffer.bytes()[..100], 0));
        buffer.clear();
        buffer.set_len(usize::MAX);
        assert!(buffer.is_full());
    }
}
