//! What concerns a cluster, on three real nodes of Cassandra that all parts share: the gateway in front of it, and
//! tables that move there.
//!
//! Starting the nodes takes most of the time. While working on a part, leave them running:
//!
//!     tests/tools/cluster.sh start 3 /tmp/ring --port 9142
//!     HELENUS_RING=/tmp/ring cargo test -p end-to-end --test cluster

mod drivers_cut;
mod gateway;
mod missed_events;
mod move_counters;
mod move_cut;
mod move_data;
mod moving;
mod ring;
mod rpc;
mod verify_and_pull;

use ring::Ring;

#[test]
fn a_cluster_takes_tables_and_is_served_by_a_gateway() {
    let ring = Ring::start();
    move_data::passes(&ring);
    verify_and_pull::passes(&ring);
    move_counters::passes(&ring);
    move_cut::passes(&ring);
    rpc::passes(&ring);
    missed_events::passes(&ring);
    drivers_cut::passes(&ring);
    gateway::passes(&ring);
}
