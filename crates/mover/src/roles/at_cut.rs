//! Roles at a cut: from then on the target checks logins, so every role that logs in here must be there.

use super::role::Roles;
use super::send::{compare_of, run};
use super::{here, there};
use crate::context::Context;
use crate::error::MoveError;
use helenus_cql::backend::Backend;
use std::collections::BTreeSet;

/// The roles as they were sent.
pub(crate) struct CutRoles {
    here: Roles,
    /// What whoever cuts should know.
    pub(crate) notes: Vec<String>,
}

impl CutRoles {
    /// Sends what has changed since the start, if the move has roles, and checks that whoever logs in here can do so there, and can do no
    /// more there because the target checks less. `None`: the move has no roles, and nobody logs in. `accepts`: roles may lose their
    /// limits. `is_dry_run`: nothing is sent.
    ///
    /// # Errors
    /// Roles are missing there, or it checks less; the target does not answer.
    pub(crate) async fn make_ready(
        context: &Context,
        (accepts, is_dry_run): (bool, bool),
    ) -> Result<Option<CutRoles>, MoveError> {
        let has_logins = context.backend.authenticator().is_some();
        let (moves_roles, login) = {
            let state = context.state.lock();
            (state.order.roles, state.order.login.as_ref().map(|(user, _)| user.clone()))
        };
        if !moves_roles && !has_logins {
            return Ok(None);
        }
        let (here, can_log_in, mut notes) = if moves_roles {
            let compared = compare_of(context).await?;
            if !is_dry_run {
                run(context, &compared).await?;
            }
            let there = compared.there.iter().filter(|(_, role)| role.can_login);
            let names = there.map(|(name, _)| name.clone()).chain(compared.wanted.made.iter().cloned());
            (compared.here, names.collect(), compared.wanted.notes)
        } else {
            let here = here::read(&context.backend)?;
            (here, there::that_log_in(&context.target.cluster).await?, Vec::new())
        };
        if has_logins {
            let missing = missing(&here, &can_log_in);
            if !missing.is_empty() {
                let seen_by = login.map_or(String::new(), |user| {
                    format!(". If they are there, GRANT DESCRIBE ON ALL ROLES TO {user}, so that the move sees them")
                });
                return Err(MoveError::NotCut(vec![format!(
                    "after the cut the target checks logins, and these roles cannot log in there: {}. Make them there, or abort and start \
                     the move with --roles{seen_by}",
                    missing.join(", ")
                )]));
            }
            let mut lost = lost_checks(context, &here, login.as_deref()).await?;
            let limited = if accepts { Vec::new() } else { here::limited_by_options(&context.backend)? };
            lost.extend(lost_limits(&limited));
            if !lost.is_empty() {
                return Err(MoveError::NotCut(lost));
            }
            if !context.backend.checks_permissions()
                && there::checks_permissions(&context.target.cluster, login.as_deref()).await?
            {
                notes.push(
                    "the target checks permissions and this server does not (authorizer): GRANT there what the roles need".to_owned(),
                );
            }
        }
        Ok(Some(CutRoles { here, notes }))
    }

    /// Checks, while clients wait, that no role has changed since.
    ///
    /// # Errors
    /// One has.
    pub(crate) fn check(&self, context: &Context) -> Result<(), MoveError> {
        if here::read(&context.backend)? == self.here {
            return Ok(());
        }
        Err(MoveError::NotCut(vec!["roles or permissions were changed at this moment; try again".to_owned()]))
    }
}

/// What this server checks of roles and the target is not known to check, a text each: after the cut they could do more than before.
async fn lost_checks(context: &Context, here: &Roles, login: Option<&str>) -> Result<Vec<String>, MoveError> {
    let (backend, cluster) = (&context.backend, &context.target.cluster);
    let mut lost = Vec::new();
    let to_see = login.map_or(String::new(), |user| {
        format!(" If it is set there, GRANT SELECT ON TABLE system_views.settings TO {user}, so that the move sees it")
    });
    if backend.checks_permissions() && !there::checks_permissions(cluster, login).await? {
        lost.push(format!(
            "this server checks permissions and the target is not known to: after the cut each role could read and drop everything there. Set \
             authorizer: CassandraAuthorizer at its nodes, and GRANT there what the roles need.{to_see}"
        ));
    }
    let limited = here.iter().filter(|(_, role)| !role.datacenters.is_empty()).map(|(name, _)| name.as_str());
    let limited: Vec<&str> = limited.collect();
    if backend.limits_datacenters() && !limited.is_empty() && !there::limits_datacenters(cluster).await? {
        lost.push(format!(
            "roles are limited to data centers here, and the target is not known to limit them: {}. Set network_authorizer: \
             CassandraNetworkAuthorizer at its nodes, or ALTER ROLE .. WITH ACCESS TO ALL DATACENTERS here.{to_see}",
            limited.join(", ")
        ));
    }
    Ok(lost)
}

/// That the limits of these roles end with the cut; `None` if there are none.
fn lost_limits(limited: &[String]) -> Option<String> {
    (!limited.is_empty()).then(|| {
        format!(
            "these roles have limits here (OPTIONS), and no node has limits like them: {}. After the cut each could use all that there is. \
             ALTER ROLE .. WITH OPTIONS = {{..}} without them here, or cut with --accept-differences",
            limited.join(", ")
        )
    })
}

/// The roles that log in here and not there. The role of a new cluster may be left out there.
fn missing<'h>(here: &'h Roles, can_log_in: &BTreeSet<String>) -> Vec<&'h str> {
    let logs_in = here.iter().filter(|(_, role)| role.can_login).map(|(name, _)| name.as_str());
    logs_in.filter(|name| *name != super::wanted::DEFAULT_ROLE && !can_log_in.contains(*name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_that_ends_the_limits_of_roles_names_them() {
        assert_eq!(lost_limits(&[]), None);
        let named = lost_limits(&["app".to_owned(), "batch jobs".to_owned()]).unwrap();
        assert!(named.contains("app, batch jobs") && named.contains("--accept-differences"), "{named}");
    }
}
