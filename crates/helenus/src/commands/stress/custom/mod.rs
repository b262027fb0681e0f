//! `helenus stress run FILE.toml`: a user's own statements with generated values.
//!
//! `file` is the file as it is written, `value` makes values of a column's type from numbers, `work` the requests. Whatever is
//! wrong with a file is said with its line and with what to write instead.

mod error;
mod file;
mod value;
mod work;

pub use error::FileError;
pub(super) use file::File;
