//! The masks of columns at a cut: the target has those of this server, and masks by them.

use crate::context::Context;
use crate::error::MoveError;
use crate::masks::{Mask, differences, of_table, there};
use crate::roles::{Shown, setting};
use helenus_model::schema::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

/// The masks of the tables of a move, as they were compared before the cut.
pub(crate) struct CutMasks(Vec<(Arc<Table>, BTreeMap<String, Mask>)>);

impl CutMasks {
    /// Checks that the target has the masks that this server has, and that each of its nodes masks by them. Called as the last thing before
    /// the pause, so that a mask which was changed there before is seen.
    ///
    /// # Errors
    /// It has not, or a node is not known to, or is down; the target does not answer.
    pub(crate) async fn make_ready(context: &Context) -> Result<CutMasks, MoveError> {
        let compared = CutMasks(of_move(context));
        let cluster = &context.target.cluster;
        let keyspaces: BTreeSet<String> =
            compared.0.iter().map(|(table, _)| table.keyspace.to_string()).collect();
        let mut reasons = Vec::new();
        for keyspace in keyspaces {
            let there = there(cluster, (&keyspace, None)).await?;
            let of_keyspace = compared.0.iter().filter(|(table, _)| *table.keyspace == *keyspace);
            reasons.extend(of_keyspace.flat_map(|(table, _)| differences(table, &there)));
        }
        let are_some = compared.0.iter().any(|(_, masks)| !masks.is_empty());
        if are_some && reasons.is_empty() && context.backend.checks_permissions() {
            let shown = setting(cluster, "dynamic_data_masking_enabled").await;
            reasons.extend(shown.iter().filter_map(|(node, shown)| not_masking(*node, shown)));
        }
        if reasons.is_empty() { Ok(compared) } else { Err(MoveError::NotCut(reasons)) }
    }

    /// Checks, while clients wait, that no mask has changed since.
    ///
    /// # Errors
    /// One has.
    pub(crate) fn check(&self, context: &Context) -> Result<(), MoveError> {
        let now = of_move(context);
        if now.iter().map(|(_, masks)| masks).eq(self.0.iter().map(|(_, masks)| masks)) {
            return Ok(());
        }
        Err(MoveError::NotCut(vec!["masks of columns were changed at this moment; try again".to_owned()]))
    }
}

/// Why clients of a node of the target may see what is masked; `None` if it masks.
fn not_masking(node: SocketAddr, shown: &Shown) -> Option<String> {
    let why = match shown {
        Shown::Value(value) if value == "true" => return None,
        Shown::Value(value) => format!(
            "the node {node} of the target does not mask them (dynamic_data_masking_enabled: {value}): set dynamic_data_masking_enabled \
             at each of its nodes"
        ),
        Shown::Nothing => format!(
            "the node {node} of the target is not known to mask them: set dynamic_data_masking_enabled at each of its nodes; if it is set, \
             GRANT SELECT ON TABLE system_views.settings there to the role of the move"
        ),
        Shown::Silent(reason) => format!(
            "the node {node} of the target does not say whether it masks them ({reason}): start it, or remove it from its cluster, and try \
             again"
        ),
    };
    Some(format!("columns are masked here, and {why}"))
}

/// The tables of the move that are here, with their masks.
fn of_move(context: &Context) -> Vec<(Arc<Table>, BTreeMap<String, Mask>)> {
    let schema = context.database().schema();
    let state = context.state.lock();
    let tables = state.tables.iter().filter_map(|of| schema.table(&of.keyspace, &of.table));
    tables.map(|table| (Arc::clone(table), of_table(table))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_that_is_not_known_to_mask_is_named() {
        let node = SocketAddr::from(([10, 0, 0, 7], 9042));
        assert_eq!(not_masking(node, &Shown::Value("true".to_owned())), None);
        for shown in
            [Shown::Value("false".to_owned()), Shown::Nothing, Shown::Silent("it is down".to_owned())]
        {
            let line = not_masking(node, &shown).unwrap();
            assert!(line.contains("10.0.0.7:9042"), "{line}");
        }
    }
}
