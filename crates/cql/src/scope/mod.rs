//! What the names, terms and calls of a statement are resolved against: the schema (`names`), the receiver of a term
//! (`receiver`), and the interface of functions (`call`). `functions` and `analysis` use it.

mod call;
mod names;
mod receiver;

pub use call::{Argument, CallContext, Scalar};
pub(crate) use call::{CallSite, Fits, OPERAND_TYPES};
pub(crate) use names::{CallId, CallKind, existing_column};
pub use names::{Memo, Scope, undefined_column};
pub use receiver::Receiver;
