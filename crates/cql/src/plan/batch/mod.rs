//! BATCH: its analysis (`prepared`), what is warned of or refused for its size (`limits`), and that size as Cassandra counts
//! it (`size`). Batches of the protocol and of text alike.

mod limits;
mod prepared;
mod size;

pub use limits::BatchLimits;
pub(crate) use prepared::{BatchPlan, check_kinds};
