//! Distributes elements (rows and markers) that are not in order to ascending runs: each goes to the first run that it
//! can follow.
//!
//! A partition that is in order is one run. The first run of each partition goes to the first new SSTable, the second
//! run to the second, and so on. The partition is read again for each run, and distributed in the same way, so only the
//! last position of each run is kept.

/// The last position of each run of a partition so far.
#[derive(Default)]
pub(super) struct Runs {
    ends: Vec<Vec<u8>>,
}

impl Runs {
    /// Begins a partition.
    pub(super) fn clear(&mut self) {
        self.ends.clear();
    }

    /// The number of runs.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// The number of the run to which an element at this ordered clustering position goes.
    pub(super) fn assign(&mut self, key: &[u8]) -> usize {
        let run = self.ends.iter().take_while(|end| end.as_slice() >= key).count();
        match self.ends.get_mut(run) {
            Some(end) => {
                end.clear();
                end.extend_from_slice(key);
            }
            None => self.ends.push(key.to_vec()),
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_ascends_and_order_needs_one_run() {
        let mut runs = Runs::default();
        let dealt: Vec<usize> = [1, 2, 9, 3, 3, 4, 10].iter().map(|key| runs.assign(&[*key])).collect();
        assert_eq!(dealt, [0, 0, 0, 1, 2, 1, 0]);
        runs.clear();
        assert!([1, 2, 3].iter().all(|key| runs.assign(&[*key]) == 0));
        assert_eq!(runs.count(), 1);
    }
}
