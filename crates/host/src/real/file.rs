//! Files of the operating system: positioned reads and writes, without a shared offset.
//!
//! Unix only (`FileExt`). Calls that only Linux has (`RWF_NOWAIT`) or some systems lack (`fallocate`) fall back to a
//! correct but slower way.

use super::open_files::{OpenFiles, Opened};
use crate::error::on;
use crate::{File, is_direct};
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Size of a write that fills with zeroes: large enough that the system call costs little beside the copy.
pub(super) const ZERO_FILL_BYTES: usize = 256 * 1024;

/// Opens a file for reading by calling `open`.
pub(super) fn open_read(
    files: &Arc<OpenFiles>,
    path: &Path,
    open: impl Fn() -> io::Result<fs::File>,
) -> io::Result<Arc<dyn File>> {
    let opened = files.open(path, open).map_err(|e| on("open", path, e))?;
    Ok(RealFile::of(Source::Read(opened), path))
}

/// Opens a file for reading. A pipe is refused: opening it would wait for a writer, perhaps for ever.
pub(super) fn open_regular(path: &Path, flags: i32) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    // Without effect on files.
    let opened = options.read(true).custom_flags(flags | libc::O_NONBLOCK).open(path)?;
    match opened.metadata()?.file_type().is_fifo() {
        true => Err(io::Error::other("it is a pipe, and no file")),
        false => Ok(opened),
    }
}

/// The descriptor that reads and writes use.
enum Source {
    /// One of a bounded number of descriptors.
    Read(Opened),
    /// A descriptor of its own while the file is open, and a second one for direct I/O, opened at its first use;
    /// `None` if the file system does not support direct I/O.
    Write(fs::File, OnceLock<Option<fs::File>>),
}

pub(super) struct RealFile {
    source: Source,
    path: PathBuf,
    /// Whether reads without waiting may work. Cleared at the first refusal, because a file system that lacks them
    /// (NFS, FUSE) always does.
    knows_nowait: AtomicBool,
}

impl RealFile {
    /// A file that is opened for writing.
    pub(super) fn to_write(file: fs::File, path: &Path) -> Arc<dyn File> {
        RealFile::of(Source::Write(file, OnceLock::new()), path)
    }

    fn of(source: Source, path: &Path) -> Arc<dyn File> {
        let knows_nowait = AtomicBool::new(cfg!(target_os = "linux"));
        Arc::new(RealFile { source, path: path.to_path_buf(), knows_nowait })
    }

    #[inline]
    fn with<T>(&self, act: impl FnOnce(&fs::File) -> io::Result<T>) -> io::Result<T> {
        match &self.source {
            Source::Read(opened) => opened.with(act),
            Source::Write(file, _) => act(file),
        }
    }

    /// Calls `act` with the descriptor for direct I/O, if the bytes and the file system allow that.
    fn with_direct<T>(&self, is_direct: bool, act: impl FnOnce(&fs::File) -> T) -> Option<T> {
        if !is_direct {
            return None;
        }
        match &self.source {
            Source::Read(opened) => opened.with_direct(open_direct, act),
            Source::Write(file, direct) => direct.get_or_init(|| open_direct(file)).as_ref().map(act),
        }
    }

    fn reserve(&self, from: u64, to: u64) -> io::Result<()> {
        self.with(|file| reserve_in(file, from, to))
    }
}

fn reserve_in(file: &fs::File, from: u64, to: u64) -> io::Result<()> {
    reserve_blocks(file, from, to)?;
    // Reserved blocks are marked unwritten, and the first sync after writing to one must change metadata. Writing
    // zeroes takes that cost here, and is the whole reservation if fallocate is not supported.
    let zeros = vec![0; ZERO_FILL_BYTES];
    let mut at = from;
    while at < to {
        let len = usize::try_from(to - at).map_or(ZERO_FILL_BYTES, |left| left.min(ZERO_FILL_BYTES));
        file.write_all_at(zeros.get(..len).unwrap_or(&zeros), at)?;
        at += len as u64;
    }
    file.sync_data()
}

impl File for RealFile {
    fn size(&self) -> io::Result<u64> {
        self.with(|file| file.metadata())
            .map(|about| about.len())
            .map_err(|e| on("ask the size of", &self.path, e))
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.with(|file| file.read_exact_at(buf, offset)).map_err(|e| on("read", &self.path, e))
    }

    fn try_read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<bool> {
        if !self.knows_nowait.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let read = match &self.source {
            // A file that must be opened first may wait for the device.
            Source::Read(opened) => match opened.if_open(|file| read_nowait(file, buf, offset)) {
                Some(read) => read,
                None => return Ok(false),
            },
            Source::Write(file, _) => read_nowait(file, buf, offset),
        };
        match read {
            Ok(read) => Ok(read == buf.len()),
            Err(e) => match e.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
                io::ErrorKind::Unsupported => {
                    self.knows_nowait.store(false, Ordering::Relaxed);
                    Ok(false)
                }
                _ => Err(on("read", &self.path, e)),
            },
        }
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.with(|file| file.write_all_at(buf, offset)).map_err(|e| on("write", &self.path, e))
    }

    fn read_direct_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let allowed = !buf.is_empty() && is_direct(buf, offset);
        match self.with_direct(allowed, |file| file.read_exact_at(buf, offset)) {
            Some(Ok(())) => Ok(()),
            // The ordinary read reports the error, unless only the direct read fails.
            Some(Err(_)) | None => self.read_exact_at(buf, offset),
        }
    }

    fn write_direct_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let allowed = !buf.is_empty() && is_direct(buf, offset);
        match self.with_direct(allowed, |file| file.write_all_at(buf, offset)) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => self.write_all_at(buf, offset),
        }
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        let old = self.size()?;
        if old >= size {
            return Ok(());
        }
        self.reserve(old, size).map_err(|e| {
            // Free the blocks again; the reservation's error is reported, whatever this returns.
            let _ = self.with(|file| file.set_len(old));
            on("allocate", &self.path, e)
        })
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.with(|file| file.set_len(size)).map_err(|e| on("set the size of", &self.path, e))
    }

    fn sync(&self) -> io::Result<()> {
        self.with(fs::File::sync_data).map_err(|e| on("sync", &self.path, e))
    }
}

/// Opens a file a second time for direct I/O. `None` if the system or the file system does not support it.
#[cfg(target_os = "linux")]
fn open_direct(file: &fs::File) -> Option<fs::File> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    // By its descriptor, because the name may belong to another file by now.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let open = |writes: bool| {
        fs::OpenOptions::new().read(true).write(writes).custom_flags(libc::O_DIRECT).open(&path)
    };
    open(true).or_else(|_| open(false)).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_: &fs::File) -> Option<fs::File> {
    None
}

/// Reads bytes that are in the page cache. `Unsupported` if the system or the file system cannot do that.
#[cfg(target_os = "linux")]
fn read_nowait(file: &fs::File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    if i64::try_from(offset).is_err() {
        return Ok(0); // u64::MAX would mean the file's own offset
    }
    match preadv2(file, &mut [io::IoSliceMut::new(buf)], offset, ReadWriteFlags::NOWAIT) {
        Err(Errno::NOSYS | Errno::OPNOTSUPP) => Err(io::ErrorKind::Unsupported.into()),
        other => Ok(other?),
    }
}

#[cfg(not(target_os = "linux"))]
fn read_nowait(_: &fs::File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn reserve_blocks(file: &fs::File, from: u64, to: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::{Errno, retry_on_intr};
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), from, to - from)) {
        Err(Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve_blocks(_: &fs::File, _: u64, _: u64) -> io::Result<()> {
    Ok(())
}
