//! Counts calls of the disk, never time: the work of an operation grows with what it is about, not with the square of it,
//! and the work of one acknowledgement, snapshot or write not with the number of the others.
//!
//! One test for each list of the engine that grows with consumers, segments and snapshots. Each runs an operation beside
//! a list of some length and of twice as many.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use helenus_engine::{CheckedName, Snapshots};
use helenus_host::sim::{Call, Machine, Survives};
use support::table_of;
use support::world::{Form, WATCHED, World};

const CALLS: [Call; 15] = [
    Call::Open,
    Call::Create,
    Call::Read,
    Call::Write,
    Call::Allocate,
    Call::SetSize,
    Call::Sync,
    Call::SyncDir,
    Call::Rename,
    Call::Link,
    Call::Remove,
    Call::RemoveDir,
    Call::CreateDir,
    Call::List,
    Call::Lock,
];

fn calls(machine: &Machine) -> u64 {
    CALLS.into_iter().map(|call| machine.calls(call)).sum()
}

/// The calls of some work.
fn counted(world: &mut World, work: impl FnOnce(&mut World)) -> u64 {
    let before = calls(&world.machine);
    work(world);
    calls(&world.machine) - before
}

/// Whether a cost stays the same, or grows as the list does.
#[derive(Clone, Copy, Debug)]
enum Growth {
    Constant,
    Linear,
}

/// Compares the cost beside a list of `n` with that beside one of `2 * n`.
fn assert_grows(growth: Growth, n: usize, mut cost: impl FnMut(usize) -> u64) {
    let (one, two) = (cost(n), cost(2 * n));
    // Half as much again for what is drawn, and some calls for what happens now and then.
    let most = match growth {
        Growth::Constant => one + one / 2,
        Growth::Linear => 2 * one + one / 2,
    };
    assert!(two <= most + 10, "{growth:?}: {one} calls beside {n}, {two} beside {}", 2 * n);
}

fn form(seed: u64) -> Form {
    Form {
        segment_bytes: 16 << 10,
        memtable_bytes: 512 << 20,
        value_bytes: (900, 1000),
        kept_bytes: 1 << 30,
        ..Form::drawn(seed)
    }
}

/// A world whose consumers keep so many segments.
fn kept(segments: usize) -> World {
    let mut world = World::new(form(1));
    world.leave("c2").unwrap();
    for _ in 0..segments / 5 {
        world.load(WATCHED, 5, "changes");
        world.database.flush_all().unwrap();
    }
    let bytes = world.database.changes().kept_log_bytes();
    assert!(bytes as usize >= (segments - 5) * world.form.segment_bytes as usize, "{bytes} bytes are kept");
    world
}

#[test]
fn one_acknowledgement_does_not_grow_with_the_other_consumers() {
    assert_grows(Growth::Constant, 30, |consumers| {
        let mut world = World::new(form(1));
        let now = world.database.changes().now().unwrap();
        for consumer in 0..consumers {
            let name = format!("c{consumer}");
            world.database.changes().acknowledge(("ks", WATCHED), &name, (now, String::new())).unwrap();
        }
        counted(&mut world, |world| {
            world.database.changes().acknowledge(("ks", WATCHED), "c1", (now, String::new())).unwrap();
        })
    });
}

#[test]
fn a_flush_does_not_grow_with_the_segments_that_are_kept() {
    assert_grows(Growth::Constant, 20, |segments| {
        let mut world = kept(segments);
        world.put("t", 100);
        counted(&mut world, |world| {
            world.database.flush(table_of(&world.database, "t").id).unwrap();
        })
    });
}

#[test]
fn a_write_does_not_grow_with_the_segments_that_are_kept() {
    assert_grows(Growth::Constant, 20, |segments| {
        let mut world = kept(segments);
        counted(&mut world, |world| world.put("t", 100))
    });
}

#[test]
fn a_consumer_that_catches_up_reads_each_segment_once() {
    assert_grows(Growth::Linear, 20, |segments| {
        let mut world = kept(segments);
        counted(&mut world, |world| world.acknowledge("c1", usize::MAX).unwrap())
    });
}

#[test]
fn kept_segments_are_released_one_after_the_other() {
    assert_grows(Growth::Linear, 20, |segments| {
        let mut world = kept(segments);
        counted(&mut world, |world| world.leave("c1").unwrap())
    });
}

#[test]
fn a_start_opens_each_segment_of_the_log_and_each_kept_one_some_times() {
    // Five segments each time are not flushed.
    for is_kept in [false, true] {
        assert_grows(Growth::Linear, 10, |segments| {
            let mut world = if is_kept { kept(segments) } else { World::new(form(2)) };
            let rows = segments * 16;
            // Both tables are filled, so that no flush of one alone frees the log.
            (0..rows).for_each(|row| world.put(["t", "u"][row % 2], 1000));
            let machine = world.machine.crash_image(Survives::EverythingWritten);
            let next = World::open(&world, machine, "a start");
            let cost = calls(&next.machine);
            next.end();
            world.end();
            cost
        });
    }
}

#[test]
fn the_removal_of_segments_grows_with_them_alone() {
    assert_grows(Growth::Linear, 10, |segments| {
        let mut world = World::new(form(3));
        world.leave("c1").unwrap();
        world.leave("c2").unwrap();
        (0..segments * 16).for_each(|row| world.put(["t", "u"][row % 2], 1000));
        counted(&mut world, |world| {
            world.database.flush_all().unwrap();
        })
    });
}

#[test]
fn one_snapshot_does_not_grow_with_the_others_and_their_list_grows_with_them() {
    let with = |snapshots: usize| {
        let mut world = World::new(form(4));
        world.put("t", 100);
        for number in 0..snapshots {
            let name = CheckedName::new("snapshot", &format!("s{number}")).unwrap();
            let t = table_of(&world.database, "t");
            Snapshots::of(&world.database).take(&[t], &name, true).unwrap();
        }
        world
    };
    assert_grows(Growth::Constant, 10, |snapshots| {
        let mut world = with(snapshots);
        counted(&mut world, |world| world.snapshot("another", &["t"]).unwrap())
    });
    assert_grows(Growth::Linear, 10, |snapshots| {
        let mut world = with(snapshots);
        counted(&mut world, |world| {
            assert_eq!(Snapshots::of(&world.database).all().unwrap().len(), snapshots);
        })
    });
    assert_grows(Growth::Constant, 10, |snapshots| {
        let mut world = with(snapshots);
        let all = Snapshots::of(&world.database).all().unwrap();
        counted(&mut world, |world| Snapshots::of(&world.database).remove(&all[0]).unwrap())
    });
}
