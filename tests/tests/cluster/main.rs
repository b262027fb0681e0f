//! What concerns a cluster, on three real nodes of Cassandra that all parts share: the gateway in front of it, and
//! tables that move there.
//!
//! Starting the nodes takes most of the time. While working on a part, leave them running, and name the parts that are wanted:
//!
//!     tests/tools/cluster.sh start 3 /tmp/ring --port 9142
//!     HELENUS_RING=/tmp/ring HELENUS_PARTS=move_cut,rpc cargo test -p end-to-end --test cluster -- --nocapture
//!
//! `rpc` and `rpc_definitions` are content with one node, which `HELENUS_NODE=HOST:PORT` names.

mod both;
mod drivers_cut;
mod gateway;
mod gateway_statements;
mod missed_events;
mod move_counters;
mod move_cut;
mod move_data;
mod move_vectors;
mod moving;
mod ring;
mod rpc;
mod rpc_conditions;
mod rpc_definitions;
mod verify_and_pull;

use std::time::Instant;

use ring::Ring;

type Part = (&'static str, fn(&Ring));

const PARTS: [Part; 11] = [
    ("move_data", move_data::passes),
    ("move_vectors", move_vectors::passes),
    ("verify_and_pull", verify_and_pull::passes),
    ("move_counters", move_counters::passes),
    ("move_cut", move_cut::passes),
    ("rpc", rpc::passes),
    ("rpc_definitions", rpc_definitions::passes),
    ("missed_events", missed_events::passes),
    ("drivers_cut", drivers_cut::passes),
    ("gateway_statements", gateway_statements::passes),
    ("gateway", gateway::passes),
];

#[test]
fn a_cluster_takes_tables_and_is_served_by_a_gateway() {
    let wanted = std::env::var("HELENUS_PARTS").ok();
    let is_wanted =
        |name: &str| wanted.as_deref().is_none_or(|wanted| wanted.split(',').any(|one| one == name));
    for name in wanted.iter().flat_map(|wanted| wanted.split(',')) {
        assert!(PARTS.iter().any(|(part, _)| *part == name), "HELENUS_PARTS: there is no part {name}");
    }
    let ring = Ring::start();
    for (name, passes) in PARTS.into_iter().filter(|(name, _)| is_wanted(name)) {
        let began = Instant::now();
        passes(&ring);
        println!("{name}: {:.1} s", began.elapsed().as_secs_f64());
    }
}
