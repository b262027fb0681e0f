//! The stores: a file each.

mod helenus;
mod lmdb;
mod map;
mod open;
mod rocks;
mod sqlite;

pub use helenus::Helenus;
pub use open::open;
