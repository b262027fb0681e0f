//! Access as far as analysis knows it: what each kind of statement needs, and statements about roles and permissions.
//!
//! `needs` names what a statement needs, `resource` the objects of permissions. `statement` is the owned form of a
//! statement about roles or permissions. `local::access` checks needs and runs these statements.

mod needs;
mod resource;
mod statement;

pub(crate) use needs::{Need, Wanted, has_masks, needs};
pub(crate) use resource::Resource;
pub(crate) use statement::{
    AccessStatement, Limits, PermissionChange, PermissionList, RoleChange, RoleOptions, resource_of,
};
