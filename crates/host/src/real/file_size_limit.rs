//! Survives the limit of a file's size (`ulimit -f`, `RLIMIT_FSIZE`).

#![expect(unsafe_code, reason = "a call of the system; it says why it is sound")]

/// Ignores SIGXFSZ, which the kernel sends for a write beyond the limit and which ends a process that does not expect it.
/// The write then fails with `ErrorKind::FileTooLarge`, and is treated as one on a full disk.
///
/// Not for libraries: what happens on a signal belongs to the whole process.
pub fn survive_file_size_limit() {
    // SAFETY: no code of ours runs on the signal, as it is ignored. The call cannot fail for this signal.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
