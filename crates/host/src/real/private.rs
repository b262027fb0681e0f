//! Makes files and folders accessible to their owner only, whatever the umask, and checks who owns a folder.

use rustix::fs::Mode;
use rustix::process::geteuid;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// The permissions of group and others.
const GROUP_AND_OTHERS: u32 = 0o077;
/// The sticky bit, as on /tmp, where users cannot remove each other's files. A newly mounted tmpfs has it as well.
const STICKY: u32 = 0o1000;
/// Folders that all users of a machine share, whoever owns them.
const OF_THE_MACHINE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// The permissions that let others than the owner create names in a folder.
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// Makes files that this process creates from now on accessible to their owner only, even without a `Disk`. Not for
/// libraries: the umask belongs to the whole process.
pub fn keep_files_private() {
    let _what_it_was = rustix::process::umask(Mode::from_raw_mode(GROUP_AND_OTHERS));
}

/// Gives a new file the mode 0600. It was created with at most that, but a umask may have removed permissions.
pub(super) fn make_private(file: &fs::File) -> io::Result<()> {
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

/// Explains the error of a path whose last component is a symbolic link and must not be.
pub(super) fn not_through_a_link<T>(opened: io::Result<T>) -> io::Result<T> {
    opened.map_err(|error| match error.raw_os_error() {
        Some(number) if number == rustix::io::Errno::LOOP.raw_os_error() => {
            io::Error::other("it is a symbolic link, which may lead to a file of somebody else; remove it")
        }
        _ => error,
    })
}

/// Creates a folder and its missing parents, each with mode 0700. Existing ones are not changed.
pub(super) fn create_dirs(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    let create = || fs::DirBuilder::new().mode(0o700).create(path);
    let created = match create() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_dirs(path.parent().unwrap_or(Path::new("")))?;
            create()
        }
        created => created,
    };
    match created {
        Ok(()) => {}
        // It existed, or was created by another process meanwhile.
        Err(_) if path.is_dir() => return Ok(()),
        Err(error) => return Err(error),
    }
    // The umask may have removed permissions of the owner as well.
    if fs::symlink_metadata(path)?.mode() & 0o777 != 0o700 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Removes the permissions of others from a folder: `true` if they had any.
///
/// # Errors
/// A folder of another user into which others may put files, or one that the whole machine shares.
pub(super) fn make_dir_private(path: &Path) -> io::Result<bool> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let about = fs::metadata(path)?;
    let (mode, owner) = (about.mode() & 0o7777, about.uid());
    let is_shared = mode & STICKY != 0 && is_of_the_machine(path);
    let is_ours = owner == geteuid().as_raw() && !is_shared;
    if is_ours && mode & GROUP_AND_OTHERS != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & !GROUP_AND_OTHERS & !STICKY))?;
        return Ok(true);
    }
    if !is_ours && mode & WRITTEN_BY_OTHERS != 0 {
        let text = format!(
            "it belongs to user {owner} and others may put files into it (mode {mode:04o}); give a folder of the server's \
             own user with mode 0700, or one that is not there yet"
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(false)
}

fn is_of_the_machine(path: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|path| OF_THE_MACHINE.iter().any(|shared| path == Path::new(shared)))
}
