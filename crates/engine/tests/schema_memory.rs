//! The schema's tables are on the memory account: a change that has no memory is refused and leaves nothing, a smaller
//! schema has memory again, and a start takes whatever was there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{Database, DdlError, Error};
use helenus_host::account::{Split, metrics, set_limits};
use helenus_host::memory;
use helenus_model::schema::Schema;
use helenus_model::types::{CqlType, UserType};
use std::sync::Arc;
use std::time::Duration;
use support::*;

const MIB: u64 = 1 << 20;

fn schema_bytes() -> u64 {
    metrics().shares.iter().find(|of| of.share.name() == "schema").unwrap().used
}

/// Adds tables of these numbers to the keyspace, in one change.
fn add(database: &Database, numbers: std::ops::Range<u128>) -> Result<(), DdlError<()>> {
    let change = |schema: &Schema, _| {
        let mut next = schema.clone();
        let mut keyspace = (**next.keyspaces.get("ks").unwrap()).clone();
        for number in numbers {
            let table = table(&format!("t{number}"), number + 100, false);
            keyspace.tables.insert(table.name.clone(), Arc::new(table));
        }
        next.keyspaces.insert("ks".into(), Arc::new(keyspace));
        Ok(next)
    };
    database.change_schema::<()>(change).map(|(_, ticket)| ticket.wait().unwrap())
}

fn drop_all_but(database: &Database, kept: usize) {
    let change = |schema: &Schema, _| {
        let mut next = schema.clone();
        let mut keyspace = (**next.keyspaces.get("ks").unwrap()).clone();
        keyspace.tables = keyspace.tables.into_iter().take(kept).collect();
        next.keyspaces.insert("ks".into(), Arc::new(keyspace));
        Ok(next)
    };
    database.change_schema::<()>(change).unwrap().1.wait().unwrap();
}

/// The tests of this program share the process's memory account.
static ALONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

#[test]
fn a_schema_that_has_no_memory_is_refused_and_a_start_takes_what_was_there() {
    let _alone = ALONE.lock();
    set_limits(Split { shared: 8 * MIB, one_more: 4 * MIB }, Duration::from_secs(3600));
    let host = memory::host();
    let database = open(&host);
    create(&database, vec![table("t", 7, false)]);
    let least = schema_bytes();
    let mut count = 0;
    let refused = loop {
        match add(&database, count..count + 20) {
            Ok(()) => count += 20,
            Err(refused) => break refused,
        }
    };
    assert!(count > 100, "{count} tables are refused in 12 MiB");
    let DdlError::Engine(Error::SchemaTooLarge { bytes, limit }) = refused else { panic!("{refused:?}") };
    assert_eq!(limit, 6 * MIB);
    assert!(bytes > limit && schema_bytes() <= limit, "{bytes}, {} of {limit}", schema_bytes());
    assert_eq!(database.schema().keyspaces["ks"].tables.len() as u128, count + 1, "nothing of it is there");
    // One that is smaller than what is left, then none: the memory of dropped tables is there again.
    drop_all_but(&database, 5);
    assert!(schema_bytes() < least + MIB / 4, "{} of {least}", schema_bytes());
    add(&database, 1000..1100).unwrap();
    database.close().unwrap();
    drop(database);
    // A start with less memory opens all that is there, and refuses more.
    set_limits(Split { shared: MIB, one_more: MIB }, Duration::from_secs(3600));
    let database = open(&host);
    assert_eq!(database.schema().keyspaces["ks"].tables.len(), 105);
    assert!(schema_bytes() > MIB);
    assert!(add(&database, 2000..2001).is_err());
    database.close().unwrap();
}

/// Adds a table whose comment, or whose column's type, is long.
fn add_long(database: &Database, number: u128, (comment, names): (usize, usize)) -> Result<(), DdlError<()>> {
    let change = |schema: &Schema, _| {
        let mut next = schema.clone();
        let mut keyspace = (**next.keyspaces.get("ks").unwrap()).clone();
        let mut table = table(&format!("t{number}"), number + 100, false);
        table.options.comment = "c".repeat(comment);
        // Each field is of a type with as many: the names are in memory once, and described a hundred times.
        let of_fields = |name: &str, ty: CqlType| {
            let fields = (0..100).map(|at| (Arc::from(format!("{at:0>names$}")), ty.clone())).collect();
            UserType { keyspace: "ks".into(), name: name.into(), fields, frozen: true }
        };
        let inner = Arc::new(of_fields("inner", CqlType::Int));
        let outer = of_fields("outer", CqlType::Udt(Arc::clone(&inner)));
        if names > 0 {
            table.regulars[0].ty = CqlType::Udt(Arc::new(outer));
        }
        keyspace.tables.insert(table.name.clone(), Arc::new(table));
        next.keyspaces.insert("ks".into(), Arc::new(keyspace));
        Ok(next)
    };
    database.change_schema::<()>(change).map(|(_, ticket)| ticket.wait().unwrap())
}

/// A type of 10,000 fields is described by each answer and each file, however little of it is in memory.
#[test]
fn texts_and_types_count_as_long_as_they_are_written() {
    let _alone = ALONE.lock();
    set_limits(Split { shared: 8 * MIB, one_more: 4 * MIB }, Duration::from_secs(3600));
    let host = memory::host();
    let database = open(&host);
    create(&database, vec![table("t", 7, false)]);
    for of in [(500_000, 0), (0, 100)] {
        let least = schema_bytes();
        let refused = (0..20).find_map(|number| add_long(&database, number, of).err());
        assert!(
            matches!(refused, Some(DdlError::Engine(Error::SchemaTooLarge { .. }))),
            "{of:?}: {refused:?}"
        );
        assert!(schema_bytes() > least + 2 * MIB, "{of:?}: {}", schema_bytes());
        drop_all_but(&database, 1);
        assert!(schema_bytes() <= least, "{of:?}: what is dropped does not count");
    }
    database.close().unwrap();
}

/// A start under a lower limit counts the texts that are there for no more than schemas may have, so what is dropped then may be more than
/// what was counted for it.
#[test]
fn what_is_dropped_after_a_start_under_a_lower_limit_leaves_the_rest_counted() {
    let _alone = ALONE.lock();
    set_limits(Split { shared: 64 * MIB, one_more: 4 * MIB }, Duration::from_secs(3600));
    let host = memory::host();
    let database = open(&host);
    create(&database, vec![table("t", 7, false)]);
    (0..6).for_each(|number| add_long(&database, number, (500_000, 0)).unwrap());
    database.close().unwrap();
    drop(database);
    set_limits(Split { shared: 4 * MIB, one_more: 4 * MIB }, Duration::from_secs(3600));
    let database = open(&host);
    drop_all_but(&database, 3);
    let counted = schema_bytes();
    database.close().unwrap();
    drop(database);
    let database = open(&host);
    assert_eq!(counted, schema_bytes(), "as a start counts what is left");
    assert!(add_long(&database, 100, (500_000, 0)).is_err());
    drop_all_but(&database, 1);
    add_long(&database, 100, (100_000, 0)).unwrap();
    database.close().unwrap();
}
