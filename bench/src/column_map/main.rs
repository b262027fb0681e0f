//! The two kinds of column map side by side, on the workloads of CASSANDRA-2843.
//!
//!     cargo run --profile optimized -p bench --bin column_map -- [--seconds 1]
//!
//! That issue found reads of wide rows slow because an answer was put together in a concurrent map, and claims: additions
//! of different names are somewhat faster in an array-backed map; 100 additions of 10 names, which must be reconciled,
//! more than 30 % faster; a read of 3,000 columns in memory, names of 8 bytes and values of 40, takes 16 ms, and about
//! half of it array-backed. Each measurement here makes a map, adds, walks it once and drops it. Medians; what came out
//! is checked.

mod read;
#[allow(dead_code, reason = "the samples of the engine's workloads, not their table")]
#[path = "../engine/timing.rs"]
mod timing;

use anyhow::{Result, ensure};
use clap::Parser;
use helenus_engine::Concurrent;
use helenus_model::column_map::{Arrays, ColumnMap, ColumnMapFactory};
use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;
use timing::Samples;

/// Times both kinds of column map.
#[derive(Parser, Clone, Copy, Debug)]
struct Options {
    /// Seconds a measurement
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
}

/// Bytes of a name and of a value in the read.
pub const NAME: usize = 8;
/// Bytes of a value.
pub const VALUE: usize = 40;
/// Additions of the first two claims.
const ADDITIONS: u64 = 100;

/// What a map holds under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    timestamp_us: i64,
    value: [u8; VALUE],
}

impl Column {
    /// A column from its bytes; other lengths than `VALUE` are filled up or cut.
    pub fn new(timestamp_us: i64, bytes: &[u8]) -> Column {
        let mut value = [0; VALUE];
        value.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Column { timestamp_us, value }
    }

    /// The later one remains; of two as late, the one with the greater value.
    fn reconcile(&self, other: Column) -> Result<Column, Infallible> {
        let order = |column: &Column| (column.timestamp_us, column.value);
        Ok(if order(self) >= order(&other) { *self } else { other })
    }
}

/// Adds a column to a map of either kind.
#[inline]
pub fn add(map: &mut impl ColumnMap<Value = Column>, name: &[u8], column: Column) {
    let Ok(_) = map.add(name, column, |column| column, Column::reconcile);
}

/// Makes a map, adds `ADDITIONS` columns, the n-th under the name that `name` gives it, and walks the map.
fn build(factory: &impl ColumnMapFactory<Column>, name: impl Fn(u64) -> u64) -> (u64, i64) {
    let mut map = factory.make();
    for number in 0..ADDITIONS {
        let name = name(number).to_be_bytes();
        add(&mut map, &name, Column::new(number as i64, &name));
    }
    map.at_or_after(&[])
        .fold((0, 0), |(count, latest), (_, column)| (count + 1, latest + column.timestamp_us))
}

fn median_us(seconds: f64, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let samples =
        Samples::repeat(Duration::try_from_secs_f64(seconds)?, |_, samples| samples.time(&mut call))?;
    Ok(samples.median_us())
}

/// One line of the table.
fn line(what: &str, (array, concurrent): (f64, f64), claim: &str) {
    let less = 100.0 * (1.0 - array / concurrent);
    println!("| {what} | {array:.2} | {concurrent:.2} | {less:.0} % | {claim} |");
}

fn additions(options: Options, what: &str, name: fn(u64) -> u64, claim: &str) -> Result<()> {
    let expected = build(&Arrays, name);
    let check = |found: (u64, i64)| {
        ensure!(black_box(found) == expected, "the two kinds differ: {found:?}, {expected:?}");
        Ok(())
    };
    let array = median_us(options.seconds, || check(build(&Arrays, name)))?;
    let concurrent = median_us(options.seconds, || check(build(&Concurrent::default(), name)))?;
    line(what, (array, concurrent), claim);
    Ok(())
}

fn main() -> Result<()> {
    let options = Options::parse();
    println!("| what | array-backed us | concurrent us | less time | CASSANDRA-2843 says |");
    println!("|---|---|---|---|---|");
    let different = "faster, but not dramatically";
    additions(options, "100 additions, 100 names in order", |n| n, different)?;
    let shuffled = |n| n * 37 % ADDITIONS;
    additions(options, "100 additions, 100 names in no order", shuffled, "(a read adds in order)")?;
    additions(options, "100 additions, 10 names, one after the other", |n| n / 10, "more than 30 % faster")?;
    additions(options, "100 additions, 10 names, round after round", |n| n % 10, "more than 30 % faster")?;
    read::run(options)
}
