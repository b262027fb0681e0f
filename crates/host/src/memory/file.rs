//! An open file of the disk in memory.

use super::disk::Shared;
use super::inode::InodeInUse;
use super::watch::Call;
use crate::File;
use crate::error::on;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) struct MemoryFile {
    pub(crate) shared: Arc<Shared>,
    pub(crate) held: Arc<InodeInUse>,
    /// The path by which it was opened, for messages and faults.
    pub(crate) path: PathBuf,
    pub(crate) writable: bool,
}

impl MemoryFile {
    fn sync_inode(&self) {
        if self.held.inode.sync() {
            self.shared.tree.write().commit();
        }
    }

    fn may_write(&self, call: Call) -> io::Result<()> {
        if !self.writable {
            return Err(ErrorKind::PermissionDenied.into());
        }
        self.shared.call(call, &self.path)
    }

    fn write(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.may_write(Call::Write).inspect_err(|_| {
            // A failing write writes some of its bytes.
            if self.writable
                && let Some(watch) = &self.shared.watch
            {
                let some = watch.chance().below(buf.len() as u64 + 1);
                let some = usize::try_from(some).unwrap_or_default();
                let _ = self.held.write(&buf[..some], offset);
            }
        })?;
        self.held.write(buf, offset)
    }
}

impl File for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.held.inode.size())
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let read = self.shared.call(Call::Read, &self.path).and_then(|()| {
            if self.held.inode.read(buf, offset) { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
        });
        read.map_err(|e| on("read", &self.path, e))
    }

    fn try_read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<bool> {
        if let Some(watch) = &self.shared.watch {
            if watch.cold_read() {
                return Ok(false);
            }
            watch.call(Call::Read, &self.path).map_err(|e| on("read", &self.path, e))?;
        }
        Ok(self.held.inode.read(buf, offset))
    }

    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.write(buf, offset).map_err(|e| on("write", &self.path, e))
    }

    fn allocate(&self, size: u64) -> io::Result<()> {
        let grown = self.may_write(Call::Allocate).and_then(|()| self.held.grow(size));
        grown.map_err(|e| on("allocate", &self.path, e))?;
        self.sync_inode();
        Ok(())
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        let set = self.may_write(Call::SetSize).and_then(|()| self.held.set_size(size));
        set.map_err(|e| on("set the size of", &self.path, e))
    }

    fn sync(&self) -> io::Result<()> {
        let inode = &self.held.inode;
        let done = self.shared.make_durable(
            Call::Sync,
            &self.path,
            || self.sync_inode(),
            |chance| inode.fail_sync(chance),
        );
        done.map_err(|e| on("sync", &self.path, e))
    }
}
