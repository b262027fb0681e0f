//! Aggregate functions (`AggregateFcts`).

use super::decimal::{Arithmetic, Decimal, Rounding};
use super::steps;
use crate::budget::RequestBudget;
use crate::cost;
use crate::error::{CqlError, Result};
use helenus_model::types::CqlType;
use num_bigint::BigInt;
use std::cmp::Ordering;

/// An aggregate function of a type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Aggregate {
    /// `count(*)`
    CountRows,
    /// `count(x)`: counts values that are not null.
    Count(CqlType),
    /// `min(x)`
    Min(CqlType),
    /// `max(x)`
    Max(CqlType),
    /// `sum(x)`
    Sum(CqlType),
    /// `avg(x)`
    Avg(CqlType),
}

impl Aggregate {
    /// Type of the argument, if there is one.
    pub(crate) fn argument(&self) -> Option<&CqlType> {
        match self {
            Aggregate::CountRows => None,
            Aggregate::Count(ty)
            | Aggregate::Min(ty)
            | Aggregate::Max(ty)
            | Aggregate::Sum(ty)
            | Aggregate::Avg(ty) => Some(ty),
        }
    }

    /// Type of the result.
    pub(crate) fn return_type(&self) -> CqlType {
        match self {
            Aggregate::CountRows | Aggregate::Count(_) => CqlType::BigInt,
            Aggregate::Min(ty) | Aggregate::Max(ty) | Aggregate::Sum(ty) | Aggregate::Avg(ty) => ty.clone(),
        }
    }

    /// Its name, with its keyspace.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Aggregate::CountRows => "system.count_rows",
            Aggregate::Count(_) => "system.count",
            Aggregate::Min(_) => "system.min",
            Aggregate::Max(_) => "system.max",
            Aggregate::Sum(_) => "system.sum",
            Aggregate::Avg(_) => "system.avg",
        }
    }

    /// The name of its result column, for the name of its argument.
    pub(crate) fn column_name(&self, argument: &str) -> String {
        match self {
            Aggregate::CountRows => "count".to_owned(),
            other => format!("{}({argument})", other.name()),
        }
    }
}

/// The state of an aggregate.
#[derive(Debug)]
pub(crate) struct Fold {
    function: Aggregate,
    count: u64,
    best: Option<Vec<u8>>,
    sum: Sum,
}

#[derive(Debug)]
enum Sum {
    Whole(BigInt),
    /// With a compensation for rounding errors (Kahan), as in Cassandra.
    Real {
        sum: f64,
        compensation: f64,
        simple: f64,
    },
    Decimal(Decimal),
    /// The average so far. Each number moves it by their difference, divided and rounded, as in Cassandra.
    Average(Decimal),
    /// Failed: the scales of the decimals are too far apart for a sum.
    Failed(&'static str),
}

impl Fold {
    /// The initial state.
    pub(crate) fn new(function: Aggregate) -> Fold {
        let sum = match function.argument() {
            Some(CqlType::Float | CqlType::Double) => Sum::Real { sum: 0.0, compensation: 0.0, simple: 0.0 },
            Some(CqlType::Decimal) if matches!(function, Aggregate::Avg(_)) => Sum::Average(Decimal::ZERO),
            Some(CqlType::Decimal) => Sum::Decimal(Decimal::ZERO),
            _ => Sum::Whole(BigInt::ZERO),
        };
        Fold { function, count: 0, best: None, sum }
    }

    /// Adds the value of a row; `count(*)` counts the row.
    ///
    /// # Errors
    /// The request has taken too long; the numbers are too long.
    pub(crate) fn add(&mut self, value: Option<&[u8]>, work: &RequestBudget<'_>) -> Result<()> {
        let value = match (&self.function, value) {
            (Aggregate::CountRows, _) => &[][..],
            (_, None) => return Ok(()),
            // An empty number is ignored; other functions count and compare empty values like any other.
            (Aggregate::Sum(_) | Aggregate::Avg(_), Some([])) => return Ok(()),
            (_, Some(value)) => value,
        };
        self.count += 1;
        work.operation(self.steps(value), self.function.name())?;
        match &self.function {
            Aggregate::CountRows | Aggregate::Count(_) => {}
            Aggregate::Min(ty) => self.keep(value, ty.clone(), Ordering::Less),
            Aggregate::Max(ty) => self.keep(value, ty.clone(), Ordering::Greater),
            Aggregate::Sum(ty) | Aggregate::Avg(ty) => self.sum.add(ty, value, self.count),
        }
        Ok(())
    }

    /// The steps of adding a value (`crate::cost`).
    fn steps(&self, value: &[u8]) -> usize {
        match (&self.function, &self.best) {
            (Aggregate::CountRows | Aggregate::Count(_), _) => 0,
            (Aggregate::Min(ty) | Aggregate::Max(ty), best) => {
                cost::comparison(ty, value, best.as_deref().unwrap_or_default())
            }
            (Aggregate::Sum(_) | Aggregate::Avg(_), _) => match &self.sum {
                Sum::Whole(_) | Sum::Real { .. } | Sum::Failed(_) => value.len() / 256,
                Sum::Decimal(sum) => steps::sum(sum, value),
                // A difference, a quotient and a sum.
                Sum::Average(average) => steps::sum(average, value).saturating_mul(3),
            },
        }
    }

    fn keep(&mut self, value: &[u8], ty: CqlType, if_is: Ordering) {
        let better = self.best.as_ref().is_none_or(|best| ty.compare(value, best) == if_is);
        if better {
            let best = self.best.get_or_insert_default();
            best.clear();
            best.extend_from_slice(value);
        }
    }

    /// The bytes of a value that it keeps.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.best.as_ref().map_or(0, Vec::len)
    }

    /// The result.
    ///
    /// # Errors
    /// A sum that is outside the range of its type.
    pub(crate) fn result(&self) -> Result<Option<Vec<u8>>> {
        match &self.function {
            Aggregate::CountRows | Aggregate::Count(_) => {
                Ok(Some((self.count as i64).to_be_bytes().to_vec()))
            }
            Aggregate::Min(_) | Aggregate::Max(_) => Ok(self.best.clone()),
            Aggregate::Sum(ty) => self.sum.total(ty).map(Some),
            Aggregate::Avg(ty) => self.sum.average(ty, self.count).map(Some),
        }
    }
}

impl Sum {
    fn add(&mut self, ty: &CqlType, value: &[u8], count: u64) {
        match self {
            Sum::Whole(sum) => *sum += BigInt::from_signed_bytes_be(value),
            Sum::Decimal(sum) => match sum.plus(&Decimal::from_bytes(value)) {
                Ok(next) => *sum = next,
                Err(problem) => *self = Sum::Failed(problem),
            },
            Sum::Average(average) => match moved(average, &Decimal::from_bytes(value), count) {
                Ok(next) => *average = next,
                Err(problem) => *self = Sum::Failed(problem),
            },
            Sum::Failed(_) => {}
            Sum::Real { sum, compensation, simple } => {
                let real = match ty {
                    CqlType::Float => f64::from(f32::from_be_bytes(value.try_into().unwrap_or_default())),
                    _ => f64::from_be_bytes(value.try_into().unwrap_or_default()),
                };
                *simple += real;
                let corrected = real - *compensation;
                let next = *sum + corrected;
                *compensation = (next - *sum) - corrected;
                *sum = next;
            }
        }
    }

    fn real(sum: f64, compensation: f64, simple: f64) -> f64 {
        let exact = sum - compensation;
        if exact.is_nan() && simple.is_infinite() { simple } else { exact }
    }

    fn total(&self, ty: &CqlType) -> Result<Vec<u8>> {
        match self {
            Sum::Whole(sum) => whole(ty, sum),
            Sum::Decimal(sum) | Sum::Average(sum) => Ok(sum.to_bytes()),
            Sum::Failed(problem) => Err(failed(problem)),
            Sum::Real { sum, compensation, simple } => Ok(real(ty, Self::real(*sum, *compensation, *simple))),
        }
    }

    fn average(&self, ty: &CqlType, count: u64) -> Result<Vec<u8>> {
        let divisor = count.max(1);
        match self {
            Sum::Whole(sum) => whole(ty, &(sum / BigInt::from(divisor))),
            Sum::Decimal(average) | Sum::Average(average) => Ok(average.to_bytes()),
            Sum::Failed(problem) => Err(failed(problem)),
            Sum::Real { sum, compensation, simple } => {
                Ok(real(ty, Self::real(*sum, *compensation, *simple) / divisor as f64))
            }
        }
    }
}

/// The average of `count` numbers, where `value` is the last and `average` that of the others.
fn moved(average: &Decimal, value: &Decimal, count: u64) -> Arithmetic<Decimal> {
    let distance = value.minus(average)?;
    let count = Decimal { unscaled: BigInt::from(count), scale: 0 };
    average.plus(&distance.quotient(&count, distance.scale, Rounding::HalfEven)?)
}

fn failed(problem: &str) -> CqlError {
    CqlError::Invalid(format!("the decimals are too far apart for one sum: {problem}"))
}

fn real(ty: &CqlType, value: f64) -> Vec<u8> {
    match ty {
        CqlType::Float => (value as f32).to_be_bytes().to_vec(),
        _ => value.to_be_bytes().to_vec(),
    }
}

/// A whole number in the bytes of a type. It wraps around if it does not fit, as in Java.
fn whole(ty: &CqlType, value: &BigInt) -> Result<Vec<u8>> {
    let length = match ty {
        CqlType::Varint => return Ok(value.to_signed_bytes_be()),
        CqlType::TinyInt => 1,
        CqlType::SmallInt => 2,
        CqlType::Int => 4,
        CqlType::BigInt | CqlType::Counter => 8,
        other => return Err(CqlError::Invalid(format!("{other} has no sum"))),
    };
    let bytes = value.to_signed_bytes_be();
    let sign = if bytes.first().is_some_and(|first| first & 0x80 != 0) { 0xFF } else { 0 };
    let mut wide = vec![sign; length];
    wide.extend_from_slice(&bytes);
    Ok(wide.split_off(wide.len() - length))
}
