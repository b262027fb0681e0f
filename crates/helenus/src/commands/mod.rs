//! The commands of the binary. Each is thin: it reads its flags, calls a library, and prints.

pub mod admin;
pub mod serve;
pub mod stress;
