//! `listcidrgroups`, `updatecidrgroup`, `dropcidrgroup`, `getcidrgroupsofip`, `reloadcidrgroupscache`,
//! `invalidatecidrpermissionscache`, `cidrfilteringstats`.

use super::requests::{Server, unexpected};
use anyhow::{Result, bail};
use helenus_server::admin::{AdminAnswer, AdminRequest};
use std::io::{Write, stdout};

/// The names of the count metrics (`CIDRFilteringMetricsCountsTable`).
const ACCEPTED: &str = "Number of CIDR accesses accepted from CIDR group - ";
const REJECTED: &str = "Number of CIDR accesses rejected from CIDR group - ";
const RELOADS: &str = "CIDR groups cache reload count";

/// Prints names under a title, and nothing if there are none (`NodeProbe.printSet`).
fn names(server: &Server, title: &str, request: &AdminRequest) -> Result<()> {
    let AdminAnswer::Names(names) = server.request(request)? else { return unexpected() };
    if server.json {
        return server.print_json(&names);
    }
    if names.is_empty() {
        return Ok(());
    }
    let mut out = stdout().lock();
    let width = names.iter().map(String::len).chain([title.len() + 2]).max().unwrap_or_default();
    writeln!(out, "{:<width$}", format!("{title}: "))?;
    for name in names {
        writeln!(out, "{name:<width$}")?;
    }
    Ok(())
}

/// `listcidrgroups`
///
/// # Errors
/// No server answers.
pub fn listcidrgroups(server: &Server, group: Option<&str>) -> Result<()> {
    let title = if group.is_some() { "CIDRs" } else { "CIDR Groups" };
    names(server, title, &AdminRequest::CidrGroups { group: group.map(str::to_owned) })
}

/// `getcidrgroupsofip`
///
/// # Errors
/// No server answers; the server does not check networks.
pub fn getcidrgroupsofip(server: &Server, address: &str) -> Result<()> {
    names(server, "CIDR Groups", &AdminRequest::CidrGroupsOfAddress { address: address.to_owned() })
}

/// `updatecidrgroup`
///
/// # Errors
/// No server answers; one is not a network.
pub fn updatecidrgroup(server: &Server, group: &str, cidrs: &[&str]) -> Result<()> {
    if cidrs.is_empty() {
        bail!("updatecidrgroup command requires a cidr group name and atleast one CIDR");
    }
    let cidrs = cidrs.iter().map(|cidr| (*cidr).to_owned()).collect();
    super::maintenance::done(server, &AdminRequest::UpdateCidrGroup { group: group.to_owned(), cidrs })
}

/// Runs a request and prints what was done.
fn told(server: &Server, request: &AdminRequest, text: &str) -> Result<()> {
    let AdminAnswer::Done = server.request(request)? else { return unexpected() };
    if server.json {
        return server.print_json(&serde_json::json!({ "done": true }));
    }
    writeln!(stdout(), "{text}")?;
    Ok(())
}

/// `dropcidrgroup`
///
/// # Errors
/// No server answers; there is no such group.
pub fn dropcidrgroup(server: &Server, group: &str) -> Result<()> {
    let request = AdminRequest::DropCidrGroup { group: group.to_owned() };
    told(server, &request, &format!("Deleted CIDR group {group}"))
}

/// `reloadcidrgroupscache`
///
/// # Errors
/// No server answers; the server does not check networks.
pub fn reloadcidrgroupscache(server: &Server) -> Result<()> {
    told(server, &AdminRequest::ReloadCidrGroups, "Reloaded CIDR groups cache")
}

/// `invalidatecidrpermissionscache`
///
/// # Errors
/// No server answers; the server does not check networks.
pub fn invalidatecidrpermissionscache(server: &Server, roles: &[&str]) -> Result<()> {
    let forget = |role: Option<&str>| -> Result<bool> {
        let request = AdminRequest::InvalidateCidrPermissions { role: role.map(str::to_owned) };
        match server.request(&request)? {
            AdminAnswer::Was(found) => Ok(found),
            _ => unexpected(),
        }
    };
    let mut out = stdout().lock();
    if roles.is_empty() {
        forget(None)?;
        writeln!(out, "Invalidated CIDR permissions cache")?;
    }
    for role in roles {
        match forget(Some(role))? {
            true => writeln!(out, "Invalidated the role {role} from CIDR permissions cache")?,
            false => {
                writeln!(out, "Not found role {role} in CIDR permissions cache, nothing to invalidate")?;
            }
        }
    }
    Ok(())
}

/// `cidrfilteringstats`, without Cassandra's table of latencies.
///
/// # Errors
/// No server answers.
pub fn cidrfilteringstats(server: &Server) -> Result<()> {
    let AdminAnswer::CidrStats(stats) = server.request(&AdminRequest::CidrFilteringStats)? else {
        return unexpected();
    };
    if server.json {
        return server.print_json(&stats);
    }
    let of = |prefix: &'static str, (group, count): (&String, &u64)| (format!("{prefix}{group}"), *count);
    let mut rows: Vec<(String, u64)> = stats.accepted.iter().map(|row| of(ACCEPTED, row)).collect();
    rows.extend(stats.rejected.iter().map(|row| of(REJECTED, row)));
    rows.push((RELOADS.to_owned(), stats.reloads));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut out = stdout().lock();
    writeln!(out, "cidr_filtering_metrics_counts: ")?;
    writeln!(out, "{:<width$} value", "name")?;
    for (name, count) in rows {
        writeln!(out, "{name:<width$} {count}")?;
    }
    writeln!(out)?;
    Ok(())
}
