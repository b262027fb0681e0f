//! The path of the admin socket, and its access check: only the server's owner (and root) may use it.
//!
//! The path is `DIR/admin.sock`. If that is too long for a socket, or there is no directory, it is a file in a private
//! folder: `$XDG_RUNTIME_DIR/helenus`, or `/tmp/helenus-<uid>`, which is used only if it is the user's with mode 0700.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, chmod, lstat, mkdir, unlink};
use rustix::io::Errno;
use rustix::process::geteuid;

/// The longest path of a Unix socket: `sun_path` less its zero byte.
const PATH_BYTES_MAX: usize = 107;

/// Why there is no admin socket, or no answer from it.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// A file or folder operation failed.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The folder belongs to another user, or others can write to it.
    #[error("{} is not a folder of yours with mode 0700; remove it, or set XDG_RUNTIME_DIR", path.display())]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// No server answers.
    #[error("no server answers at {}: {source}; start one with helenus serve, or give its --data or --socket", path.display())]
    NoServer {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The reply is not an answer.
    #[error("{} answered with something else than an answer: {problem}", path.display())]
    NotAnAnswer {
        /// The socket.
        path: PathBuf,
        /// What is wrong with the reply.
        problem: String,
    },
}

impl AdminError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> AdminError {
        let path = path.to_owned();
        move |source| AdminError::Io { action, path, source }
    }
}

/// The socket of the server of a directory. Server and tools get the same path however the directory is named, as long
/// as it exists.
pub fn socket_for_data(directory: &Path) -> PathBuf {
    let inside = directory.join("admin.sock");
    if inside.as_os_str().len() <= PATH_BYTES_MAX {
        return inside;
    }
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let number = fnv(absolute.as_os_str().as_encoded_bytes());
    runtime_folder().join(format!("{number:016x}.sock"))
}

/// The socket of a server without a directory.
pub fn socket_for_memory(port: u16) -> PathBuf {
    runtime_folder().join(format!("memory-{port}.sock"))
}

fn runtime_folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => Path::new(&folder).join("helenus"),
        None => PathBuf::from(format!("/tmp/helenus-{}", geteuid().as_raw())),
    }
}

/// FNV-1a, for a short name of a long path that is the same in every version of Helenus.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// Binds the socket for its owner alone. A socket file that a killed server left is replaced. The caller holds the
/// directory's lock, or the port, so no other server uses it.
pub(super) fn bind(path: &Path) -> Result<(UnixListener, FileIdentity), AdminError> {
    if let Some(folder) = path.parent().filter(|folder| **folder == runtime_folder()) {
        own(folder)?;
    }
    match lstat(path) {
        Err(Errno::NOENT) => {}
        Ok(found) if found.st_mode & 0o170_000 == 0o140_000 => {
            unlink(path).map_err(|error| AdminError::io("remove", path)(error.into()))?;
        }
        Ok(_) => return Err(AdminError::io("bind", path)(std::io::ErrorKind::AlreadyExists.into())),
        Err(error) => return Err(AdminError::io("look at", path)(error.into())),
    }
    // The kernel lists a socket by the path of its binding; tools find a server by an absolute one.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let is_short = absolute.as_os_str().len() <= PATH_BYTES_MAX;
    let listener =
        UnixListener::bind(if is_short { &absolute } else { path }).map_err(AdminError::io("bind", path))?;
    // Until here the umask decides the mode; `may_use` checks each connection whatever the mode is.
    chmod(path, Mode::RUSR | Mode::WUSR).map_err(|error| AdminError::io("chmod", path)(error.into()))?;
    let file = lstat(path).map_err(|error| AdminError::io("look at", path)(error.into()))?;
    Ok((listener, FileIdentity::of(&file)))
}

/// Which file stands at a path: its device and its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn of(file: &rustix::fs::Stat) -> FileIdentity {
        FileIdentity { device: file.st_dev, inode: file.st_ino }
    }
}

/// Removes the socket, unless something else stands at its path now.
pub(super) fn remove_socket(path: &Path, file: FileIdentity) {
    if lstat(path).is_ok_and(|found| FileIdentity::of(&found) == file) {
        let _may_be_gone = unlink(path);
    }
}

/// Creates the folder, or checks that it is private.
fn own(folder: &Path) -> Result<(), AdminError> {
    match mkdir(folder, Mode::RWXU) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => check_ours(folder),
        Err(error) => Err(AdminError::io("make", folder)(error.into())),
    }
}

/// Checks the folder before a tool connects to a socket in it: in a shared place, another user might answer.
pub(super) fn check_folder(socket: &Path) -> Result<(), AdminError> {
    match socket.parent() {
        Some(folder) if *folder == runtime_folder() && lstat(folder).is_ok() => check_ours(folder),
        _ => Ok(()),
    }
}

fn check_ours(folder: &Path) -> Result<(), AdminError> {
    let found = lstat(folder).map_err(|error| AdminError::io("look at", folder)(error.into()))?;
    let is_folder = found.st_mode & 0o170_000 == 0o040_000;
    let is_private = found.st_mode & 0o077 == 0;
    if is_folder && is_private && found.st_uid == geteuid().as_raw() {
        Ok(())
    } else {
        Err(AdminError::NotOurs { path: folder.to_owned() })
    }
}

/// Whether the user at the other end may use the socket: the server's user, or root.
pub(super) fn may_use(uid: u32) -> bool {
    uid == geteuid().as_raw() || uid == 0
}
