//! Drawn statements of CQL 2 and 3, at once and prepared.

use crate::data_calls::Called;
use crate::server::{Draw, Resource, Server, TABLES};
use helenus_wire::thrift::{Compression, ConsistencyLevel, Method, args};

const ONE: ConsistencyLevel = ConsistencyLevel::One;

/// Runs a drawn statement. Returns the call's name, its needs, and its answer.
pub fn statement_call(server: &mut Server, draw: &mut Draw) -> Called {
    let table = TABLES[draw.below(TABLES.len())];
    let is_cql3 = draw.below(2) == 0;
    let (permission, text) = match draw.below(4) {
        0 => ("SELECT", format!("SELECT * FROM {table}")),
        1 => ("MODIFY", format!("TRUNCATE {table}")),
        2 if is_cql3 => ("MODIFY", format!("INSERT INTO {table} (k, c, v) VALUES (0x01, 0x02, 0x03)")),
        2 => ("MODIFY", format!("INSERT INTO {table} (k, '0102') VALUES ('01', '03')")),
        _ if is_cql3 => ("MODIFY", format!("DELETE FROM {table} WHERE k = 0x01")),
        _ => ("MODIFY", format!("DELETE FROM {table} WHERE k = '01'")),
    };
    let (query, compression) = (text.as_bytes(), Compression::None);
    let is_prepared = draw.below(2) == 0;
    let (method, answer) = match (is_prepared, is_cql3) {
        (false, true) => {
            let asked = args::Cql3Query { query, compression, consistency: ONE };
            (Method::ExecuteCql3Query, server.call(Method::ExecuteCql3Query, &asked))
        }
        (false, false) => {
            let asked = args::CqlQuery { query, compression };
            (Method::ExecuteCqlQuery, server.call(Method::ExecuteCqlQuery, &asked))
        }
        // Nothing is needed to prepare; what counts are the rights when it is executed.
        (true, true) => {
            let item_id = prepared(server, Method::PrepareCql3Query, query);
            let asked = args::PreparedCql3 { item_id, values: Vec::new(), consistency: ONE };
            (Method::ExecutePreparedCql3Query, server.call(Method::ExecutePreparedCql3Query, &asked))
        }
        (true, false) => {
            let item_id = prepared(server, Method::PrepareCqlQuery, query);
            let asked = args::PreparedCql { item_id, values: Vec::new() };
            (Method::ExecutePreparedCqlQuery, server.call(Method::ExecutePreparedCqlQuery, &asked))
        }
    };
    (format!("{method:?} {text}"), vec![(permission, Resource::Table(table))], answer)
}

/// Prepares a statement. Returns its number.
fn prepared(server: &mut Server, method: Method, query: &[u8]) -> i32 {
    let asked = args::CqlQuery { query, compression: Compression::None };
    let reply = server.call_for_reply(method, &asked).unwrap();
    // The result is field 0, a struct, whose field 1 is the number, an i32.
    let mark = [12, 0, 0, 8, 0, 1];
    let at = reply.windows(mark.len()).position(|bytes| bytes == mark).expect("a result") + mark.len();
    i32::from_be_bytes(reply[at..at + 4].try_into().unwrap())
}
