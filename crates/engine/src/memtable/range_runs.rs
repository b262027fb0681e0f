//! The range deletions of a partition: a short list of sorted runs, of which readers see the list of their moment.
//!
//! A run is a sorted array of points. A point is a place between rows and the deletion that covers the rows after it, up
//! to the next point of the run. The deletion that covers a row is the strongest of all runs. A write adds one run of
//! its own ranges in front of the list; from time to time (`tiers`) it merges the first runs into one instead, which
//! drops what a stronger range covers. So n range deletions take `n log n` memory and work in any order, and a list has
//! `log n` runs.
//!
//! Runs never change and stay in the arena. A list is a chain: a run leads to the older ones. So a reader that has
//! loaded its first run sees a fixed list, whatever the writer does.
//!
//! The references in this file are to the arena of the memtable and live as long as it does. They are written `'static`
//! inside and leave the file with the life of the partition or of a cursor that keeps the memtable.

use super::arena::Arena;
use super::tiers::merged_count;
use super::work;
use helenus_model::cell::Span;
use helenus_model::deletion::DeletionTime;
use helenus_model::mutation::RangeBound;
use helenus_model::packed::{self, put_value};
use std::cmp::Ordering;

/// A place between rows: the bound of a range.
pub(super) struct Place {
    /// The bound's ordered key.
    key: &'static [u8],
    /// The bound's prefix, as packed values.
    prefix: &'static [u8],
    /// Number of values in the prefix.
    count: usize,
    /// Whether the place lies before the rows with the prefix, or after them.
    pub(super) before: bool,
}

/// A place where the covering deletion of a run changes.
#[derive(Clone, Copy)]
pub(super) struct Point {
    place: &'static Place,
    /// The deletion that covers the rows after the place; that of a run's last point is live.
    covering: DeletionTime,
}

/// A sorted run, at the front of a list.
pub(super) struct Run {
    points: &'static [Point],
    older: Option<&'static Run>,
}

impl Place {
    /// Copies a bound into the arena.
    pub(super) fn new(arena: &Arena, key: &[u8], bound: &RangeBound<'_>) -> &'static Place {
        let mut bytes = key.to_vec();
        bound.values().for_each(|value| put_value(&mut bytes, value));
        // SAFETY: see the head of this file about lives.
        let (key, prefix) = unsafe { slice_in(arena, &bytes) }.split_at(key.len());
        let place = Place { key, prefix, count: bound.count, before: bound.before };
        // SAFETY: as above.
        unsafe { arena.place(place).as_ref() }
    }

    /// Its ordered key.
    pub(super) fn key(&self) -> &[u8] {
        self.key
    }

    /// The bound's prefix: the spans refer to the returned bytes.
    pub(super) fn prefix(&self, spans: &mut Vec<Span>) -> &[u8] {
        spans.clear();
        let mut at = 0;
        for _ in 0..self.count {
            let Ok(value) = packed::get_value(self.prefix, &mut at) else { break };
            let len = value.map_or(0, <[u8]>::len);
            spans.push(if value.is_some() { helenus_model::row::span(at - len, len) } else { Span::NULL });
        }
        self.prefix
    }
}

impl Point {
    pub(super) fn new(place: &'static Place, covering: DeletionTime) -> Point {
        Point { place, covering }
    }
}

/// Copies values into the arena.
///
/// # Safety
/// The caller lets the reference leave with no longer life than the arena's.
unsafe fn slice_in<T: Copy>(arena: &Arena, values: &[T]) -> &'static [T] {
    let to = arena.allocate(size_of_val(values)).cast::<T>();
    // SAFETY: just allocated for these values, aligned to 8 as every allocation, and handed to nobody else; written
    // before the reference is made and never after.
    unsafe {
        to.copy_from_nonoverlapping(std::ptr::NonNull::from(values).cast(), values.len());
        std::slice::from_raw_parts(to.as_ptr(), values.len())
    }
}

impl Run {
    /// The list `older` with one more run of these points in front, of which the first runs may be merged.
    pub(super) fn add(arena: &Arena, points: &[Point], older: Option<&Run>) -> &'static Run {
        let mut older = older.map(Run::as_static);
        let runs = || std::iter::successors(older, |run| run.older);
        let sizes = std::iter::once(points.len()).chain(runs().map(|run| run.points.len()));
        let merged_runs = merged_count(1, sizes) - 1;
        // SAFETY: see the head of this file about lives.
        let points = unsafe {
            if merged_runs == 0 {
                slice_in(arena, points)
            } else {
                let merged = merge(points, runs().take(merged_runs).map(|run| run.points));
                older = runs().nth(merged_runs);
                slice_in(arena, &merged)
            }
        };
        // SAFETY: as above.
        unsafe { arena.place(Run { points, older }).as_ref() }
    }

    /// The run as its list holds it: in the arena.
    fn as_static(&self) -> &'static Run {
        // SAFETY: a run is made in `add` only, in the arena; see the head of this file about lives.
        unsafe { &*std::ptr::from_ref(self) }
    }

    /// The strongest deletion that covers the rows right before a key.
    #[cfg(all(test, loom))]
    pub(super) fn covering_before(&self, key: &[u8]) -> DeletionTime {
        let mut walk = RangeWalk::default();
        walk.restart(self, key);
        walk.covering()
    }
}

/// The points of several runs, the newest first, as those of one. Two at a time: the newest runs are the smallest, so
/// each step costs about as much as all before it together.
fn merge<'a>(newest: &[Point], older: impl Iterator<Item = &'a [Point]>) -> Vec<Point> {
    let mut merged = newest.to_vec();
    for points in older {
        let runs = vec![RunWalk { points: &merged, at: 0 }, RunWalk { points, at: 0 }];
        let mut walk = RangeWalk { runs };
        let mut both: Vec<Point> = Vec::new();
        let mut covering = DeletionTime::LIVE;
        while let Some(point) = walk.next::<false>() {
            let after = walk.pass::<false>(point);
            if after != covering {
                both.push(Point { place: point.place, covering: after });
                covering = after;
            }
        }
        merged = both;
    }
    merged
}

/// A walk over the points of a list's runs, in either direction.
#[derive(Default)]
pub(super) struct RangeWalk<'a> {
    /// The newest run first. Runs whose points have all been passed cover nothing more and are left out.
    runs: Vec<RunWalk<'a>>,
}

struct RunWalk<'a> {
    points: &'a [Point],
    /// Number of points before the position.
    at: usize,
}

impl RunWalk<'_> {
    /// The deletion of this run that covers the rows around the position.
    fn covering(&self) -> DeletionTime {
        self.at
            .checked_sub(1)
            .and_then(|last| self.points.get(last))
            .map_or(DeletionTime::LIVE, |p| p.covering)
    }

    /// The next point in the direction of the walk.
    fn next<const REVERSED: bool>(&self) -> Option<&Point> {
        let at = if REVERSED { self.at.checked_sub(1)? } else { self.at };
        self.points.get(at)
    }
}

impl<'a> RangeWalk<'a> {
    /// Begins again right before a key.
    pub(super) fn restart(&mut self, newest: &'a Run, key: &[u8]) {
        self.runs.clear();
        let runs = std::iter::successors(Some(newest), |run| run.older);
        self.runs.extend(runs.map(|run| {
            work::add(run.points.len().checked_ilog2().unwrap_or_default() as usize + 1);
            RunWalk { points: run.points, at: run.points.partition_point(|point| point.place.key < key) }
        }));
    }

    /// The strongest deletion that covers the rows around the position.
    pub(super) fn covering(&self) -> DeletionTime {
        self.runs.iter().map(RunWalk::covering).fold(DeletionTime::LIVE, DeletionTime::max)
    }

    /// The nearest point in the direction of the walk. Of several at one place that of the oldest run: it keeps its
    /// bytes, as a row keeps its first clustering.
    pub(super) fn next<const REVERSED: bool>(&self) -> Option<Point> {
        let mut found: Option<&Point> = None;
        for point in self.runs.iter().filter_map(RunWalk::next::<REVERSED>) {
            work::add(1);
            let farther = if REVERSED { Ordering::Less } else { Ordering::Greater };
            if found.is_none_or(|found| point.place.key.cmp(found.place.key) != farther) {
                found = Some(point);
            }
        }
        found.copied()
    }

    /// Moves past a point that `next` has returned. Returns the strongest deletion beyond it.
    pub(super) fn pass<const REVERSED: bool>(&mut self, point: Point) -> DeletionTime {
        let mut covering = DeletionTime::LIVE;
        let mut is_passed = false;
        for run in &mut self.runs {
            if run.next::<REVERSED>().is_some_and(|next| next.place.key == point.place.key) {
                run.at = if REVERSED { run.at - 1 } else { run.at + 1 };
                is_passed |= run.next::<REVERSED>().is_none();
            }
            covering = covering.max(run.covering());
        }
        if is_passed {
            self.runs.retain(|run| run.next::<REVERSED>().is_some());
        }
        covering
    }
}

impl Point {
    /// Its place, which lives as long as the arena.
    pub(super) fn place(self) -> &'static Place {
        self.place
    }
}
