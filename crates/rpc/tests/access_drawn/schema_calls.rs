//! Drawn calls that change the schema.

use crate::data_calls::Called;
use crate::server::{Draw, KEYSPACE, OTHER, Resource, Server, TABLES};
use helenus_wire::thrift::{CfDef, KsDef, Map, Method, args};

/// A definition that each of the tables has.
fn definition(table: &'static str) -> CfDef<'static> {
    let mut definition = CfDef::named(KEYSPACE, table);
    definition.comparator_type = Some("BytesType".into());
    definition.key_validation_class = Some("BytesType".into());
    definition.default_validation_class = Some("BytesType".into());
    definition
}

fn keyspace() -> args::WithKsDef<'static> {
    let ks_def = KsDef {
        name: OTHER.into(),
        strategy_class: "org.apache.cassandra.locator.SimpleStrategy".into(),
        strategy_options: Some(Map(vec![("replication_factor".into(), "1".into())])),
        replication_factor: None,
        cf_defs: Vec::new(),
        durable_writes: None,
    };
    args::WithKsDef { ks_def }
}

/// Makes a drawn call, and makes again what it has dropped. Returns its name, its needs, and its answer.
pub fn schema_call(server: &mut Server, draw: &mut Draw) -> Called {
    let table = TABLES[draw.below(TABLES.len())];
    let (method, need, answer) = match draw.below(6) {
        0 => {
            let answer =
                server.call(Method::SystemDropColumnFamily, &args::OfColumnFamily { column_family: table });
            if answer.is_ok() {
                server.forget(&Resource::Table(table));
            }
            (Method::SystemDropColumnFamily, ("DROP", Resource::Table(table)), answer)
        }
        1 => {
            server.own(&format!("DROP TABLE {KEYSPACE}.{table}"));
            server.forget(&Resource::Table(table));
            let answer =
                server.call(Method::SystemAddColumnFamily, &args::WithCfDef { cf_def: definition(table) });
            // Who creates a table is granted everything on it: taken back, by dropping it.
            if answer.is_ok() {
                server.own(&format!("DROP TABLE {KEYSPACE}.{table}"));
            }
            (Method::SystemAddColumnFamily, ("CREATE", Resource::AllTables(KEYSPACE)), answer)
        }
        2 => {
            let answer =
                server.call(Method::SystemUpdateColumnFamily, &args::WithCfDef { cf_def: definition(table) });
            (Method::SystemUpdateColumnFamily, ("ALTER", Resource::Table(table)), answer)
        }
        3 => {
            server.own(&format!("DROP KEYSPACE {OTHER}"));
            server.forget(&Resource::Keyspace(OTHER));
            let answer = server.call(Method::SystemAddKeyspace, &keyspace());
            if answer.is_ok() {
                server.own(&format!("DROP KEYSPACE {OTHER}"));
            }
            (Method::SystemAddKeyspace, ("CREATE", Resource::AllKeyspaces), answer)
        }
        4 => {
            let answer = server.call(Method::SystemUpdateKeyspace, &keyspace());
            (Method::SystemUpdateKeyspace, ("ALTER", Resource::Keyspace(OTHER)), answer)
        }
        _ => {
            let answer = server.call(Method::SystemDropKeyspace, &args::OfKeyspace { keyspace: OTHER });
            if answer.is_ok() {
                server.forget(&Resource::Keyspace(OTHER));
            }
            (Method::SystemDropKeyspace, ("DROP", Resource::Keyspace(OTHER)), answer)
        }
    };
    server.make_other();
    server.make(table);
    (format!("{method:?} {table}"), vec![need], answer)
}
