//! A table's storage: the immutable set of its sources (`view`), and the one writer of that set (`store`).

mod flush;
mod store;
mod view;

pub use store::TableStore;
pub use view::View;
