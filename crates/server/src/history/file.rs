//! The file of the history: a line of JSON for each sample, the oldest first, replaced whole.
//!
//! A line that cannot be read, or whose time cannot be, is left out. The file is of no value to the data, so nothing fails for its sake.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use helenus_host::Disk;

use super::sample::Sample;

/// A longer file is not read: something else must have written it.
const BYTES_MAX: u64 = 16 << 20;

/// Times that a clock can show, seconds since the epoch: to the year 4147.
const TIMES_S: Range<i64> = 0..1 << 36;

/// The file `history.jsonl` in the data directory.
pub(super) struct HistoryFile {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
}

impl HistoryFile {
    pub(super) fn new(disk: Arc<dyn Disk>, directory: PathBuf) -> HistoryFile {
        HistoryFile { disk, directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.join("history.jsonl")
    }

    /// Reads the samples; none if there is no file.
    pub(super) fn read(&self) -> Vec<Sample> {
        let read = || -> io::Result<Vec<u8>> {
            let file = self.disk.open(&self.path())?;
            let bytes = file.size()?;
            if bytes > BYTES_MAX {
                return Ok(Vec::new());
            }
            let mut text = vec![0; usize::try_from(bytes).unwrap_or_default()];
            file.read_exact_at(&mut text, 0)?;
            Ok(text)
        };
        let Ok(text) = read() else { return Vec::new() };
        let lines = text.split(|byte| *byte == b'\n');
        let samples = lines.filter_map(|line| serde_json::from_slice::<Sample>(line).ok());
        samples.filter(|sample| TIMES_S.contains(&sample.time_s)).collect()
    }

    /// Replaces the file.
    pub(super) fn write(&self, samples: &[Sample]) -> io::Result<()> {
        let mut text = Vec::new();
        for sample in samples {
            serde_json::to_writer(&mut text, sample)?;
            text.push(b'\n');
        }
        let next = self.directory.join("history.jsonl.next");
        if self.disk.exists(&next) {
            self.disk.remove(&next)?;
        }
        let file = self.disk.create(&next)?;
        file.write_all_at(&text, 0)?;
        file.sync()?;
        self.disk.rename(&next, &self.path())?;
        self.disk.sync_dir(&self.directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_back_and_damaged_lines_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = HistoryFile::new(helenus_host::real::host().disk, folder.path().to_owned());
        assert_eq!(file.read(), []);
        let sample = |time_s| Sample { time_s, data_bytes: 5, cores_busy: Some(0.5), ..Sample::default() };
        file.write(&[sample(1), sample(2)]).unwrap();
        file.write(&[sample(1), sample(2), sample(3)]).unwrap();
        assert_eq!(file.read(), [sample(1), sample(2), sample(3)]);
        let path = folder.path().join("history.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        let second = text.lines().nth(1).unwrap();
        std::fs::write(&path, text.replace(second, &second[..10])).unwrap();
        assert_eq!(file.read(), [sample(1), sample(3)]);
        for time_s in [i64::MIN, -1, 1 << 36, i64::MAX] {
            file.write(&[sample(time_s), sample(3)]).unwrap();
            assert_eq!(file.read(), [sample(3)]);
        }
    }
}
