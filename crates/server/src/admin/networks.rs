//! The requests about groups of networks: nodetool's verbs for `system_auth.cidr_groups`.

use std::net::IpAddr;

use helenus_cql::{CidrCounts, CqlError, LocalBackend};

use super::answer::{AdminAnswer, CidrStats};
use super::request::AdminRequest;

/// Runs a request about groups of networks.
///
/// # Errors
/// It is refused; the text says why.
pub(super) fn networks(backend: &LocalBackend, request: &AdminRequest) -> Result<AdminAnswer, String> {
    let text = |error: CqlError| error.to_string();
    match request {
        AdminRequest::CidrGroups { group: None } => {
            backend.list_cidr_groups().map(AdminAnswer::Names).map_err(text)
        }
        AdminRequest::CidrGroups { group: Some(group) } => {
            backend.cidrs_of_group(group).map(AdminAnswer::Names).map_err(text)
        }
        AdminRequest::UpdateCidrGroup { group, cidrs } => {
            backend.update_cidr_group(group, cidrs).map(|()| AdminAnswer::Done).map_err(text)
        }
        AdminRequest::DropCidrGroup { group } => {
            backend.drop_cidr_group(group).map(|()| AdminAnswer::Done).map_err(text)
        }
        AdminRequest::CidrGroupsOfAddress { address } => {
            let parsed: IpAddr = address.parse().map_err(|_| format!("Invalid IP {address}"))?;
            backend.cidr_groups_of_address(parsed).map(AdminAnswer::Names).map_err(text)
        }
        AdminRequest::ReloadCidrGroups => {
            backend.reload_cidr_groups().map(|()| AdminAnswer::Done).map_err(text)
        }
        AdminRequest::InvalidateCidrPermissions { role } => {
            backend.invalidate_cidr_permissions(role.as_deref()).map(AdminAnswer::Was).map_err(text)
        }
        AdminRequest::CidrFilteringStats => {
            let CidrCounts { accepted, rejected, reloads } = backend.cidr_counts();
            Ok(AdminAnswer::CidrStats(CidrStats { accepted, rejected, reloads }))
        }
        _ => Err("this is no request about networks".to_owned()),
    }
}
