//! `helenus stress run FILE.toml`: runs a user's own statements with generated values.
//!
//! `file` parses the file, `value` generates values of a column's type from numbers, `work` makes the requests. Every
//! error in a file is reported with its line and a correction.

mod error;
mod file;
mod value;
mod work;

pub use error::FileError;
pub(super) use file::File;
