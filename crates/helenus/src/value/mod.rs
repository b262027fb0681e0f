//! Values as Rust types: `value_kinds` has the enum, `number` the numbers without a Rust type, `conversion` the way from and to other
//! Rust types, `serialised` the way to and from Cassandra's serialised form.

mod conversion;
mod number;
mod serialised;
mod value_kinds;

pub use conversion::{ConversionError, FromValue};
pub use number::{Decimal, NumberError, Varint};
pub use value_kinds::Value;
