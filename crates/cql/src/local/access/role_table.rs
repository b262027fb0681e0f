//! `system_views.role_limits`: the roles with sessions, their limits, and what they use now.

use crate::request::{RoleFigures, RoleUses};
use crate::virtual_table::{VirtualContext, VirtualRows, VirtualTable, virtual_definition};
use helenus_model::schema::Table;
use helenus_model::types::CqlType;
use std::sync::Arc;

struct RoleLimitsTable {
    table: Arc<Table>,
    uses: Arc<RoleUses>,
}

/// The table.
pub(in crate::local) fn role_limits_table(uses: Arc<RoleUses>) -> Arc<dyn VirtualTable> {
    let columns = [
        ("role", CqlType::Text),
        ("connections", CqlType::BigInt),
        ("connections_max", CqlType::BigInt),
        ("memory", CqlType::BigInt),
        ("memory_max", CqlType::BigInt),
        ("refused", CqlType::BigInt),
        ("request_bytes", CqlType::BigInt),
        ("request_bytes_max", CqlType::BigInt),
        ("requests", CqlType::BigInt),
        ("requests_max", CqlType::BigInt),
        ("statement_timeout_ms", CqlType::BigInt),
    ];
    let comment = "roles with sessions, their limits (OPTIONS) and what they use";
    let table = virtual_definition(("system_views", "role_limits"), comment, (1, 0), &columns);
    Arc::new(RoleLimitsTable { table, uses })
}

impl VirtualTable for RoleLimitsTable {
    fn table(&self) -> &Arc<Table> {
        &self.table
    }

    fn rows(&self, _cx: &VirtualContext<'_>, rows: &mut VirtualRows) {
        for figures in self.uses.figures() {
            let RoleFigures { role, limits, connections, requests, request_bytes, memory, refused } = figures;
            let timeout =
                limits.statement_timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
            let numbers = [
                ("connections", Some(connections)),
                ("connections_max", limits.connections_max),
                // Without a limit nothing is counted.
                ("memory", limits.memory_max.map(|_| memory)),
                ("memory_max", limits.memory_max),
                ("refused", Some(refused)),
                ("request_bytes", limits.request_bytes_max.map(|_| request_bytes)),
                ("request_bytes_max", limits.request_bytes_max),
                ("requests", limits.requests_max.map(|_| requests)),
                ("requests_max", limits.requests_max),
                ("statement_timeout_ms", timeout),
            ];
            let mut row = vec![("role", role.as_bytes().to_vec())];
            let long = |value: u64| i64::try_from(value).unwrap_or(i64::MAX).to_be_bytes().to_vec();
            row.extend(numbers.into_iter().filter_map(|(name, value)| Some((name, long(value?)))));
            rows.row(&row);
        }
    }
}
