//! The file offsets of a file's chunks, in 4.5 bytes for each chunk instead of 8: every sixteenth chunk has a full
//! offset, and every chunk has its distance from there.

const GROUP: usize = 16;

/// Ascending offsets. A group of sixteen chunks must span less than 4 GiB, which chunks up to 256 MiB do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Offsets {
    anchors: Vec<u64>,
    distances: Vec<u32>,
}

impl Offsets {
    pub(super) fn with_capacity(count: usize) -> Offsets {
        Offsets { anchors: Vec::with_capacity(count.div_ceil(GROUP)), distances: Vec::with_capacity(count) }
    }

    pub(super) fn len(&self) -> usize {
        self.distances.len()
    }

    /// Adds the next offset; false if it is not greater than the last one or too far from the first of its group.
    #[must_use]
    pub(super) fn push(&mut self, offset: u64) -> bool {
        if self.distances.len().is_multiple_of(GROUP) {
            if self.len().checked_sub(1).and_then(|last| self.get(last)).is_some_and(|last| last >= offset) {
                return false;
            }
            self.anchors.push(offset);
            self.distances.push(0);
            return true;
        }
        let anchor = self.anchors.last().copied().unwrap_or(0);
        let Some(distance) = offset.checked_sub(anchor).and_then(|d| u32::try_from(d).ok()) else {
            return false;
        };
        if self.distances.last().is_some_and(|last| *last >= distance) {
            return false;
        }
        self.distances.push(distance);
        true
    }

    pub(super) fn get(&self, index: usize) -> Option<u64> {
        let distance = self.distances.get(index)?;
        Some(self.anchors.get(index / GROUP)? + u64::from(*distance))
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.anchors.capacity() * 8 + self.distances.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_come_back_and_only_ascending_ones_are_taken() {
        let mut offsets = Offsets::default();
        for index in 0..1000_u64 {
            assert!(offsets.push(index * index * 1000 + index));
        }
        for index in 0..1000_u64 {
            assert_eq!(offsets.get(index as usize), Some(index * index * 1000 + index));
        }
        assert_eq!(offsets.get(1000), None);
        assert!(!offsets.push(5));
        assert!(!offsets.push(offsets.get(999).unwrap()));
        assert!(!offsets.push(u64::MAX));
    }
}
