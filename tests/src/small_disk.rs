//! File systems that are small enough to fill up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system of its own, unmounted when dropped.
pub struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Mounts a file system of `mib` MiB. `None` if this user may not mount.
    ///
    /// # Panics
    /// The folder cannot be created.
    pub fn mount(at: &Path, mib: u32) -> Option<Self> {
        fs::create_dir_all(at).expect("a folder");
        let size = format!("size={mib}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self { at: at.to_owned() })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Unmounts lazily, because the server may still have files open.
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}
