//! Page-aligned buffers, as direct I/O (past the kernel's page cache) requires.

/// Alignment of addresses, file offsets and lengths of direct reads and writes. Devices with smaller blocks accept it
/// too.
pub const DIRECT_PAGE_BYTES: usize = 4096;

/// Whether direct I/O is possible for these bytes: page-aligned in memory and in the file, and whole pages.
pub fn is_direct(bytes: &[u8], offset: u64) -> bool {
    bytes.as_ptr().addr().is_multiple_of(DIRECT_PAGE_BYTES)
        && bytes.len().is_multiple_of(DIRECT_PAGE_BYTES)
        && offset.is_multiple_of(DIRECT_PAGE_BYTES as u64)
}

/// Collects bytes, of which the first is page-aligned. Never grows.
pub struct PageBuffer {
    // Never longer than its capacity, so its address does not change.
    memory: Vec<u8>,
    start: usize,
    capacity: usize,
}

impl PageBuffer {
    /// A buffer for `capacity` bytes.
    pub fn new(capacity: usize) -> PageBuffer {
        let mut memory: Vec<u8> = Vec::with_capacity(capacity + DIRECT_PAGE_BYTES);
        // `usize::MAX` under an interpreter that hides addresses: then nothing is direct.
        let start = memory.as_ptr().align_offset(DIRECT_PAGE_BYTES);
        let start = if start < DIRECT_PAGE_BYTES { start } else { 0 };
        memory.resize(start, 0);
        PageBuffer { memory, start, capacity }
    }

    /// The collected bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.memory.get(self.start..).unwrap_or(&[])
    }

    /// The same, writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.get_mut(self.start..).unwrap_or(&mut [])
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.memory.len() - self.start
    }

    /// Whether the buffer has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the buffer is full.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    /// Appends as many of the bytes as fit; returns the others.
    #[inline]
    pub fn fill<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (now, later) = bytes.split_at(bytes.len().min(self.capacity - self.len()));
        self.memory.extend_from_slice(now);
        later
    }

    /// Sets the number of bytes, limited to the capacity; new bytes are zeroes.
    pub fn set_len(&mut self, len: usize) {
        self.memory.resize(self.start + len.min(self.capacity), 0);
    }

    /// Removes all bytes.
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
