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

/// Keeps the memory of this process, with keys, passwords and data, out of core dumps, and away from other processes of the same
/// user. Not for libraries: it holds for the whole process.
///
/// Both are needed: a size of zero forbids files, and does not count where the system hands a dump to a program
/// (`core(5)`, a pipe in `core_pattern`); a process that is not dumpable gives none to either (`PR_SET_DUMPABLE(2const)`).
pub fn leave_no_core_dump() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    // Without the right to it the process goes on: the limit may have been lowered already.
    let _may_be_refused = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    #[cfg(target_os = "linux")]
    let _may_be_refused =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Gives a new file the mode 0600. It was created with at most that, but a umask may have removed permissions.
pub(super) fn make_private(file: &fs::File) -> io::Result<()> {
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

/// Links a file that this user alone can change, and gives it mode 0600; `false` if it is not one. It has one name, because by another
/// one in a folder of somebody else it might still be opened, and its folder is this user's too.
///
/// The link is made first and judged then: what `from` names may be replaced at any time, what `to` names may not.
pub(super) fn link_if_own(from: &Path, to: &Path) -> io::Result<bool> {
    let folder = from.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !is_own(&fs::metadata(folder)?) {
        return Ok(false);
    }
    fs::hard_link(from, to)?;
    let taken = take_link(to);
    if !matches!(taken, Ok(true)) {
        fs::remove_file(to)?;
    }
    taken
}

/// Makes a file private that has just got this second name, if it is this user's alone.
fn take_link(link: &Path) -> io::Result<bool> {
    let about = fs::symlink_metadata(link)?;
    let is_ours = about.is_file() && is_own(&about) && about.nlink() == 2;
    if is_ours {
        fs::set_permissions(link, fs::Permissions::from_mode(0o600))?;
    }
    Ok(is_ours)
}

/// Whether this user alone may change a file or folder.
fn is_own(about: &fs::Metadata) -> bool {
    about.uid() == geteuid().as_raw() && about.mode() & WRITTEN_BY_OTHERS == 0
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    /// Every combination of what may be wrong with a file and its folder, and the one in which nothing is.
    #[test]
    fn only_a_file_that_its_user_alone_can_change_is_linked() {
        let place = tempfile::tempdir().unwrap();
        let (from_dir, to_dir) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir(&to_dir).unwrap();
        let owners: &[Option<u32>] = if geteuid().is_root() { &[None, Some(65_534)] } else { &[None] };
        let mut linked = 0;
        for (number, (owner, folder_owner)) in
            owners.iter().flat_map(|file| owners.iter().map(move |folder| (file, folder))).enumerate()
        {
            for mode in [0o600, 0o644, 0o640, 0o660, 0o646, 0o666, 0o620, 0o602] {
                for folder_mode in [0o700, 0o755, 0o770, 0o777, 0o1777] {
                    for is_named_twice in [false, true] {
                        let _may_be_new = fs::remove_dir_all(&from_dir);
                        fs::create_dir(&from_dir).unwrap();
                        let (from, to) = (from_dir.join("x"), to_dir.join("x"));
                        fs::write(&from, "bytes").unwrap();
                        fs::set_permissions(&from, fs::Permissions::from_mode(mode)).unwrap();
                        if is_named_twice {
                            fs::hard_link(&from, from_dir.join("y")).unwrap();
                        }
                        chown(&from, *owner, None).unwrap();
                        fs::set_permissions(&from_dir, fs::Permissions::from_mode(folder_mode)).unwrap();
                        chown(&from_dir, *folder_owner, None).unwrap();
                        let is_own = owner.is_none()
                            && folder_owner.is_none()
                            && (mode | folder_mode) & 0o022 == 0
                            && !is_named_twice;
                        let what = format!("{number} {mode:o} {folder_mode:o} {is_named_twice}");
                        assert_eq!(link_if_own(&from, &to).unwrap(), is_own, "{what}");
                        assert_eq!(to.exists(), is_own, "{what}");
                        if is_own {
                            assert_eq!(fs::metadata(&to).unwrap().mode() & 0o777, 0o600, "{what}");
                            fs::remove_file(&to).unwrap();
                            linked += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(linked, 6, "three modes of a file by two of its folder");
    }

    #[test]
    fn a_symbolic_link_is_not_linked() {
        let place = tempfile::tempdir().unwrap();
        let (file, link, to) =
            (place.path().join("file"), place.path().join("link"), place.path().join("to"));
        fs::write(&file, "bytes").unwrap();
        symlink(&file, &link).unwrap();
        assert!(!link_if_own(&link, &to).unwrap());
        assert!(fs::symlink_metadata(&to).is_err(), "nothing is left");
    }
}
