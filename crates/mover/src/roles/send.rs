//! Makes the roles at the target as they are here.

use super::role::Roles;
use super::wanted::{Wanted, wanted};
use super::{here, there};
use crate::context::Context;
use crate::error::MoveError;
use crate::messages::MoveOrder;
use helenus_cluster::Cluster;
use helenus_cql::LocalBackend;
use helenus_wire::native::Consistency;
use std::collections::BTreeSet;

/// Both sides' roles as they were, and what makes them the same.
pub(super) struct Compared {
    pub(super) here: Roles,
    pub(super) there: Roles,
    pub(super) wanted: Wanted,
}

/// Compares the roles of both sides. `tables`: what is moved; `made`: the roles that the move has made.
async fn compare(
    backend: &LocalBackend,
    cluster: &Cluster,
    tables: &BTreeSet<(String, String)>,
    made: &BTreeSet<String>,
) -> Result<Compared, MoveError> {
    let (here, there) = (here::read(backend)?, there::read(cluster).await?);
    let facts = there::facts(cluster).await?;
    let wanted = wanted((&here, &there), made, tables, &facts);
    Ok(Compared { here, there, wanted })
}

/// What a move of these tables would do with roles.
///
/// # Errors
/// The target does not answer.
pub(crate) async fn plan(
    backend: &LocalBackend,
    cluster: &Cluster,
    tables: &BTreeSet<(String, String)>,
    order: &MoveOrder,
) -> Result<Wanted, MoveError> {
    let problem =
        |text: String| Ok(Wanted { problems: vec![format!("--roles: {text}")], ..Wanted::default() });
    if order.login.is_none() {
        return problem("the target makes roles for a superuser alone: give --username".to_owned());
    }
    match compare(backend, cluster, tables, &BTreeSet::new()).await {
        Ok(compared) => Ok(compared.wanted),
        Err(MoveError::Refused(reasons)) => problem(reasons.join("; ")),
        Err(error) => Err(error),
    }
}

/// Compares the roles of a move.
pub(super) async fn compare_of(context: &Context) -> Result<Compared, MoveError> {
    let (tables, made) = {
        let state = context.state.lock();
        let tables = state.tables.iter().map(|table| (table.keyspace.clone(), table.table.clone()));
        (tables.collect(), state.roles_made.clone())
    };
    compare(&context.backend, &context.target.cluster, &tables, &made).await
}

/// Makes the roles at the target as they are here, as far as that goes.
///
/// # Errors
/// The target refuses a statement; the move stops.
pub(crate) async fn send(context: &Context) -> Result<(), MoveError> {
    let compared = compare_of(context).await?;
    run(context, &compared).await
}

/// Runs the statements.
pub(super) async fn run(context: &Context, compared: &Compared) -> Result<(), MoveError> {
    let Compared { here, wanted, .. } = compared;
    if !wanted.problems.is_empty() {
        return Err(MoveError::Refused(wanted.problems.clone()));
    }
    // First, so that after a crash the move knows its roles.
    context.state.lock().roles_made.clone_from(&wanted.made);
    context.save()?;
    for step in &wanted.steps {
        let done = context.target.run(&step.text, Consistency::LocalQuorum).await;
        done.map_err(|error| match error {
            MoveError::Target(error) => {
                // A message may quote the statement.
                let error = error.to_string().replace(&step.text, &step.shown);
                MoveError::Refused(vec![format!("{error}; in {}", step.shown)])
            }
            other => other,
        })?;
    }
    context.state.lock().roles_made.retain(|name| here.contains_key(name));
    context.save()
}
