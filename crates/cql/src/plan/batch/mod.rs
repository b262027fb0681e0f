//! BATCH, of the protocol and of CQL text: its analysis (`prepared`), its limits and warnings (`limits`), and its size
//! as Cassandra counts it (`size`).

mod limits;
mod prepared;
mod size;

pub use limits::BatchLimits;
pub(crate) use prepared::{BatchPlan, check_kinds};
