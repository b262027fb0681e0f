//! Random schemas and statements from a seed: the same seed, the same statements.
//!
//! Values come from small sets, so that statements meet each other's rows. A tenth of the statements is spoilt on
//! purpose; many more are invalid by chance, since clauses are drawn without looking at each other.

mod alter;
mod carried;
mod condition;
mod draw;
mod index;
mod json;
mod kind;
mod schema;
mod select;
mod spoil;
mod statement;
mod terms;
mod write;

pub use carried::carried;
pub use draw::Draw;
pub use schema::{GeneratedTable, table};
pub use statement::statement;
pub use terms::Written;
pub use write::write;
