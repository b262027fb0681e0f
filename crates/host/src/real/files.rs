//! File names of the operating system: opening, creating, renaming and removing.
//!
//! Unix only (`flock`, modes). Created files have mode 0600 and folders 0700, whatever the umask. Files that are
//! created or written are never reached through a symbolic link in their place, because another user may have created
//! it. Parent folders may be links: owners use them to move folders to other disks.

use super::file::{RealFile, open_read, open_regular};
use super::locks::{lock_dir, lock_file};
use super::open_files::OpenFiles;
use super::places::Places;
use super::private::{create_dirs, link_if_own, make_dir_private, make_private, not_through_a_link};
use crate::error::{between, on};
use crate::{Disk, File};
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file system of the operating system.
pub(crate) struct RealDisk {
    files: Arc<OpenFiles>,
    places: Places,
}

impl RealDisk {
    /// Keeps at most `descriptors_max` descriptors of files that are open for reading.
    pub(crate) fn new(descriptors_max: usize) -> RealDisk {
        RealDisk { files: OpenFiles::new(descriptors_max), places: Places::default() }
    }

    fn open_to_write(
        &self,
        path: &Path,
        op: &'static str,
        options: &fs::OpenOptions,
    ) -> io::Result<fs::File> {
        self.places.check(path)?;
        let open = || not_through_a_link(options.open(path));
        self.files.with_descriptors(open).map_err(|e| on(op, path, e))
    }
}

impl Disk for RealDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        open_read(&self.files, path, || open_regular(path, 0))
    }

    fn open_own(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        open_read(&self.files, path, || not_through_a_link(open_regular(path, libc::O_NOFOLLOW)))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW);
        Ok(RealFile::to_write(self.open_to_write(path, "open for writing", &options)?, path))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        // An existing name, link or not, is an error.
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = self.open_to_write(path, "create", &options)?;
        make_private(&file).map_err(|e| on("make private", path, e))?;
        Ok(RealFile::to_write(file, path))
    }

    fn lock(&self, path: &Path, holder: &str) -> io::Result<Box<dyn Send + Sync>> {
        lock_file(path, holder)
    }

    fn lock_folder(&self, folder: &Path, name: &str, holder: &str) -> io::Result<Box<dyn Send + Sync>> {
        let file = folder.join(name);
        Ok(Box::new((lock_dir(folder, &file)?, lock_file(&file, holder)?)))
    }

    fn keep_place(&self, folder: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.places.keep(folder)
    }

    fn check_place(&self, path: &Path) -> io::Result<()> {
        self.places.check(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.places.check(from)?;
        self.places.check(to)?;
        let is_folder = fs::symlink_metadata(from).is_ok_and(|about| about.is_dir());
        let _leaving = (self.files.pin(from, is_folder), self.files.pin(to, false));
        fs::rename(from, to).map_err(|e| between("rename", from, to, e))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.places.check(to)?;
        fs::hard_link(from, to).map_err(|e| between("link", from, to, e))
    }

    fn link_if_own(&self, from: &Path, to: &Path) -> io::Result<bool> {
        link_if_own(from, to).map_err(|e| between("link", from, to, e))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.places.check(path)?;
        let _leaving = self.files.pin(path, false);
        fs::remove_file(path).map_err(|e| on("remove", path, e))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.places.check(path)?;
        fs::remove_dir(path).map_err(|e| on("remove folder", path, e))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.places.check(path)?;
        create_dirs(path).map_err(|e| on("create folder", path, e))
    }

    fn claim_dir(&self, path: &Path) -> io::Result<bool> {
        make_dir_private(path).map_err(|e| on("use folder", path, e))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let fail = |e| on("list", dir, e);
        let mut paths = Vec::new();
        for entry in self.files.with_descriptors(|| fs::read_dir(folder(dir))).map_err(fail)? {
            paths.push(dir.join(entry.map_err(fail)?.file_name()));
        }
        paths.sort();
        Ok(paths)
    }

    fn exists(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok()
    }

    fn is_dir(&self, path: &Path) -> bool {
        folder(path).is_dir()
    }

    fn is_link(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink())
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let found =
            rustix::fs::statvfs(folder(path)).map_err(|e| on("ask for the free space of", path, e.into()))?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        let about = fs::symlink_metadata(path).map_err(|e| on("look at", path, e))?;
        Ok(about.len())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.places.check(dir)?;
        self.files
            .with_descriptors(|| fs::File::open(folder(dir)))
            .and_then(|opened| opened.sync_all())
            .map_err(|e| on("sync folder", dir, e))
    }
}

/// The parent of a bare name is the empty path, which the system does not accept as a folder.
fn folder(dir: &Path) -> &Path {
    if dir.as_os_str().is_empty() { Path::new(".") } else { dir }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw_os_error;

    /// A new disk each time, so that no state is shared.
    fn disk() -> RealDisk {
        RealDisk::new(16)
    }

    #[test]
    fn bytes_written_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let file = disk().create(&path).unwrap();
        file.write_all_at(b"world", 6).unwrap();
        file.write_all_at(b"hello ", 0).unwrap();
        file.sync().unwrap();
        let mut buf = [0; 11];
        let file = disk().open(&path).unwrap();
        file.read_exact_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"hello world");
        // Just written, so in the page cache. A file system without RWF_NOWAIT may refuse, but never return wrong
        // bytes.
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
        let file = disk().create(&dir.path().join("f")).unwrap();
        let mut pages = PageBuffer::new(4 * DIRECT_PAGE_BYTES);
        let bytes: Vec<u8> = (0..4 * DIRECT_PAGE_BYTES).map(|n| (n % 251) as u8).collect();
        pages.fill(&bytes);
        file.write_direct_at(pages.bytes(), 0).unwrap();
        // Not possible directly: unaligned offset and length.
        file.write_direct_at(b"tail", bytes.len() as u64).unwrap();
        let mut all = vec![0; bytes.len() + 4];
        file.read_exact_at(&mut all, 0).unwrap();
        assert!(all.starts_with(&bytes) && all.ends_with(b"tail"));
        // Overwrite bytes that the page cache holds, and the other way round.
        pages.bytes_mut().fill(3);
        file.write_direct_at(&pages.bytes()[..DIRECT_PAGE_BYTES], DIRECT_PAGE_BYTES as u64).unwrap();
        file.read_exact_at(&mut all, 0).unwrap();
        assert!(all[DIRECT_PAGE_BYTES..2 * DIRECT_PAGE_BYTES].iter().all(|byte| *byte == 3));
        assert_eq!(all[2 * DIRECT_PAGE_BYTES..bytes.len()], bytes[2 * DIRECT_PAGE_BYTES..]);
        file.write_all_at(b"cached", 5).unwrap();
        let reader = disk().open(&dir.path().join("f")).unwrap();
        reader.read_direct_at(pages.bytes_mut(), 0).unwrap();
        assert_eq!(&pages.bytes()[5..11], b"cached");
        let error = reader.read_direct_at(pages.bytes_mut(), DIRECT_PAGE_BYTES as u64).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "the file ends before");
    }

    #[test]
    fn errors_name_the_path_and_keep_the_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("absent");
        let error = disk().open(&path).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(raw_os_error(&error), Some(2));
        assert!(error.to_string().contains("absent"), "{error}");
        let file = disk().create(&path).unwrap();
        assert_eq!(disk().create(&path).err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        let error = file.read_exact_at(&mut [0; 4], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("absent"), "{error}");
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_an_error_and_no_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        for opened in [disk().open(&path), disk().open_own(&path)] {
            let error = opened.err().unwrap().to_string();
            assert!(error.contains("key.pem") && error.contains("pipe"), "{error}");
        }
    }

    #[test]
    fn allocate_keeps_bytes_and_reads_as_zeros() {
        let dir = tempfile::tempdir().unwrap();
        let file = disk().create(&dir.path().join("segment")).unwrap();
        file.write_all_at(b"head", 0).unwrap();
        let size = 2 * crate::real::file::ZERO_FILL_BYTES as u64 + 17;
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
    fn sizes_and_free_space_are_told_without_opening_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        disk().create(&path).unwrap().write_all_at(b"hello", 0).unwrap();
        assert_eq!(disk().file_bytes(&path).unwrap(), 5);
        assert!(disk().free_bytes(dir.path()).unwrap() > 0 && disk().free_bytes(&path).unwrap() > 0);
        let absent = dir.path().join("absent");
        assert_eq!(disk().file_bytes(&absent).unwrap_err().kind(), io::ErrorKind::NotFound);
        let error = disk().free_bytes(&absent).unwrap_err();
        assert!(error.kind() == io::ErrorKind::NotFound && error.to_string().contains("absent"), "{error}");
    }

    #[test]
    fn names_are_made_moved_linked_listed_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        disk().create_dir_all(&at("x/y")).unwrap();
        assert!(disk().is_dir(&at("x/y")));
        drop(disk().create(&at("x/b")).unwrap());
        disk().hard_link(&at("x/b"), &at("x/a")).unwrap();
        disk().rename(&at("x/b"), &at("x/c")).unwrap();
        disk().sync_dir(&at("x")).unwrap();
        assert_eq!(disk().list(&at("x")).unwrap(), [at("x/a"), at("x/c"), at("x/y")]);
        assert!(disk().exists(&at("x/a")) && !disk().exists(&at("x/b")));
        disk().remove(&at("x/a")).unwrap();
        disk().remove_dir(&at("x/y")).unwrap();
        assert_eq!(disk().remove_dir(&at("x")).unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
        assert_eq!(disk().list(&at("x")).unwrap(), [at("x/c")]);
        assert!(disk().is_dir(Path::new("")) && disk().sync_dir(Path::new("")).is_ok());
    }
}
