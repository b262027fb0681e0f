//! Files of the operating system: positioned reads and writes, without a shared offset.
//!
//! Unix only (`FileExt`, `flock`). What only Linux has (`RWF_NOWAIT`) or some systems lack (`fallocate`) falls back to
//! an answer that is right and slower.

use super::locks::lock_file;
use crate::error::{between, on};
use crate::{Disk, File, is_direct};
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Bytes of one write while zero-filling: large enough that the call costs nothing beside the copy.
const ZERO_FILL_BYTES: usize = 256 * 1024;

/// The file system of the operating system.
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        open(path, "open", fs::OpenOptions::new().read(true))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        open(path, "open for writing", fs::OpenOptions::new().read(true).write(true))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        open(path, "create", fs::OpenOptions::new().read(true).write(true).create_new(true))
    }

    fn lock(&self, path: &Path, holder: &str) -> io::Result<Box<dyn Send + Sync>> {
        lock_file(path, holder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(|e| between("rename", from, to, e))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to).map_err(|e| between("link", from, to, e))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path).map_err(|e| on("remove", path, e))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path).map_err(|e| on("remove folder", path, e))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path).map_err(|e| on("create folder", path, e))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let fail = |e| on("list", dir, e);
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder(dir)).map_err(fail)? {
            paths.push(dir.join(entry.map_err(fail)?.file_name()));
        }
        paths.sort();
        Ok(paths)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn is_dir(&self, path: &Path) -> bool {
        folder(path).is_dir()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(folder(dir))
            .and_then(|opened| opened.sync_all())
            .map_err(|e| on("sync folder", dir, e))
    }
}

/// The parent of a bare name is the empty path, which the system does not know as a folder.
fn folder(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}

fn open(path: &Path, op: &'static str, options: &fs::OpenOptions) -> io::Result<Arc<dyn File>> {
    let file = options.open(path).map_err(|e| on(op, path, e))?;
    Ok(Arc::new(RealFile {
        file,
        path: path.to_path_buf(),
        knows_nowait: AtomicBool::new(cfg!(target_os = "linux")),
        direct: OnceLock::new(),
    }))
}

struct RealFile {
    file: fs::File,
    path: PathBuf,
    /// Cleared at the first refusal, since a file system that cannot read without waiting (NFS, FUSE) never can.
    knows_nowait: AtomicBool,
    /// The same file past the page cache, opened when it is first wanted; `None` where the file system has no such way.
    direct: OnceLock<Option<fs::File>>,
}

impl RealFile {
    /// The file past the page cache, if these bytes and the file system allow it.
    fn direct(&self, bytes: &[u8], offset: u64) -> Option<&fs::File> {
        if bytes.is_empty() || !is_direct(bytes, offset) {
            return None;
        }
        self.direct.get_or_init(|| open_direct(&self.file)).as_ref()
    }

    fn reserve(&self, from: u64, to: u64) -> io::Result<()> {
        reserve_blocks(&self.file, from, to)?;
        // Reserved blocks are marked unwritten, and the first sync after writing to one must change metadata. Written
        // zeros take that cost here, and are the whole reservation where fallocate is unknown.
        let zeros = vec![0; ZERO_FILL_BYTES];
        let mut at = from;
        while at < to {
            let len = usize::try_from(to - at).map_or(ZERO_FILL_BYTES, |left| left.min(ZERO_FILL_BYTES));
            self.file.write_all_at(zeros.get(..len).unwrap_or(&zeros), at)?;
            at += len as u64;
        }
        self.file.sync_data()
    }
}

impl File for RealFile {
    fn size(&self) -> io::Result<u64> {
        self.file.metadata().map(|about| about.len()).map_err(|e| on("ask the size of", &self.path, e))
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buf, offset).map_err(|e| on("read", &self.path, e))
    }

    fn try_read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<bool> {
        if !self.knows_nowait.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match read_nowait(&self.file, buf, offset) {
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
        self.file.write_all_at(buf, offset).map_err(|e| on("write", &self.path, e))
    }

    fn read_direct_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        match self.direct(buf, offset).map(|file| file.read_exact_at(buf, offset)) {
            Some(Ok(())) => Ok(()),
            // Whatever was wrong: the other way says it, if it is not of this one alone.
            Some(Err(_)) | None => self.read_exact_at(buf, offset),
        }
    }

    fn write_direct_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        match self.direct(buf, offset).map(|file| file.write_all_at(buf, offset)) {
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
            // Give the blocks back; the reservation's error is the one to report, whatever this answers.
            let _ = self.file.set_len(old);
            on("allocate", &self.path, e)
        })
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size).map_err(|e| on("set the size of", &self.path, e))
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data().map_err(|e| on("sync", &self.path, e))
    }
}

/// Opens a file once more, past the page cache. `None` where the system or the file system cannot.
#[cfg(target_os = "linux")]
fn open_direct(file: &fs::File) -> Option<fs::File> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    // By its descriptor: the name may be another file's by now.
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

/// Reads what is in the page cache. `Unsupported` where the system or the file system cannot say.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw_os_error;

    #[test]
    fn bytes_written_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let file = RealDisk.create(&path).unwrap();
        file.write_all_at(b"world", 6).unwrap();
        file.write_all_at(b"hello ", 0).unwrap();
        file.sync().unwrap();
        let mut buf = [0; 11];
        let file = RealDisk.open(&path).unwrap();
        file.read_exact_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"hello world");
        // Just written, so in the page cache; a file system without RWF_NOWAIT may say no, but never wrong bytes.
        let mut buf = [0; 5];
        if file.try_read_exact_at(&mut buf, 6).unwrap() {
            assert_eq!(&buf, b"world");
        }
        assert!(!file.try_read_exact_at(&mut buf, 8).unwrap(), "short");
        assert!(!file.try_read_exact_at(&mut buf, u64::MAX).unwrap());
        assert_eq!(file.size().unwrap(), 11);
    }

    #[test]
    fn direct_and_other_reads_and_writes_see_the_same_bytes() {
        use crate::{DIRECT_PAGE_BYTES, PageBuffer};
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk.create(&dir.path().join("f")).unwrap();
        let mut pages = PageBuffer::new(4 * DIRECT_PAGE_BYTES);
        let bytes: Vec<u8> = (0..4 * DIRECT_PAGE_BYTES).map(|n| (n % 251) as u8).collect();
        pages.fill(&bytes);
        file.write_direct_at(pages.bytes(), 0).unwrap();
        // Not as a device takes them: an odd place and an odd length.
        file.write_direct_at(b"tail", bytes.len() as u64).unwrap();
        let mut all = vec![0; bytes.len() + 4];
        file.read_exact_at(&mut all, 0).unwrap();
        assert!(all.starts_with(&bytes) && all.ends_with(b"tail"));
        // Over what the page cache holds now, and back.
        pages.bytes_mut().fill(3);
        file.write_direct_at(&pages.bytes()[..DIRECT_PAGE_BYTES], DIRECT_PAGE_BYTES as u64).unwrap();
        file.read_exact_at(&mut all, 0).unwrap();
        assert!(all[DIRECT_PAGE_BYTES..2 * DIRECT_PAGE_BYTES].iter().all(|byte| *byte == 3));
        assert_eq!(all[2 * DIRECT_PAGE_BYTES..bytes.len()], bytes[2 * DIRECT_PAGE_BYTES..]);
        file.write_all_at(b"cached", 5).unwrap();
        let reader = RealDisk.open(&dir.path().join("f")).unwrap();
        reader.read_direct_at(pages.bytes_mut(), 0).unwrap();
        assert_eq!(&pages.bytes()[5..11], b"cached");
        let error = reader.read_direct_at(pages.bytes_mut(), DIRECT_PAGE_BYTES as u64).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "the file ends before");
    }

    #[test]
    fn errors_name_the_path_and_keep_the_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("absent");
        let error = RealDisk.open(&path).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(raw_os_error(&error), Some(2));
        assert!(error.to_string().contains("absent"), "{error}");
        let file = RealDisk.create(&path).unwrap();
        assert_eq!(RealDisk.create(&path).err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        let error = file.read_exact_at(&mut [0; 4], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("absent"), "{error}");
    }

    #[test]
    fn allocate_keeps_bytes_and_reads_as_zeros() {
        let dir = tempfile::tempdir().unwrap();
        let file = RealDisk.create(&dir.path().join("segment")).unwrap();
        file.write_all_at(b"head", 0).unwrap();
        let size = 2 * ZERO_FILL_BYTES as u64 + 17;
        file.allocate(size).unwrap();
        assert_eq!(file.size().unwrap(), size);
        let mut all = vec![1; usize::try_from(size).unwrap()];
        file.read_exact_at(&mut all, 0).unwrap();
        assert_eq!(&all[..4], b"head");
        assert!(all[4..].iter().all(|b| *b == 0));
        file.allocate(10).unwrap();
        assert_eq!(file.size().unwrap(), size);
        file.set_size(3).unwrap();
        assert_eq!(file.size().unwrap(), 3);
        let error = file.allocate(1 << 62).unwrap_err();
        assert!(error.to_string().contains("segment"), "{error}");
        assert_eq!(file.size().unwrap(), 3, "a refused reservation leaves the length");
    }

    #[test]
    fn names_are_made_moved_linked_listed_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        RealDisk.create_dir_all(&at("x/y")).unwrap();
        assert!(RealDisk.is_dir(&at("x/y")));
        drop(RealDisk.create(&at("x/b")).unwrap());
        RealDisk.hard_link(&at("x/b"), &at("x/a")).unwrap();
        RealDisk.rename(&at("x/b"), &at("x/c")).unwrap();
        RealDisk.sync_dir(&at("x")).unwrap();
        assert_eq!(RealDisk.list(&at("x")).unwrap(), [at("x/a"), at("x/c"), at("x/y")]);
        assert!(RealDisk.exists(&at("x/a")) && !RealDisk.exists(&at("x/b")));
        RealDisk.remove(&at("x/a")).unwrap();
        RealDisk.remove_dir(&at("x/y")).unwrap();
        assert_eq!(RealDisk.remove_dir(&at("x")).unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
        assert_eq!(RealDisk.list(&at("x")).unwrap(), [at("x/c")]);
        assert!(RealDisk.is_dir(Path::new("")) && RealDisk.sync_dir(Path::new("")).is_ok());
    }
}
