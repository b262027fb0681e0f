//! A table's storage: the immutable set of its sources (`view`), and the one writer of that set (`store`; `replace` for
//! compactions).

mod flush;
mod replace;
mod store;
mod view;

pub(crate) use replace::Replaced;
pub use store::TableStore;
pub use view::{Unreadable, View};
