//! `+ - * / %` and the minus sign (`OperationFcts`).

use super::decimal::Arithmetic;
use super::number::{NUMBERS, Number};
use super::time;
use crate::syntax::ast::ArithmeticOperator as Operator;
use helenus_model::types::{CqlType, Duration, add_duration, to_cql_literal};
use num_bigint::BigInt;
use std::ops::{Add, Div, Mul, Rem, Sub};

/// The name of an operator's function.
pub(crate) fn function_name(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "_add",
        Operator::Subtract => "_substract",
        Operator::Multiply => "_multiply",
        Operator::Divide => "_divide",
        Operator::Modulo => "_modulo",
    }
}

/// The name of the function of the minus sign.
pub(crate) const NEGATION: &str = "_negate";

/// The operator of a function name.
pub(super) fn operator_of(name: &str) -> Option<Operator> {
    use Operator::{Add, Divide, Modulo, Multiply, Subtract};
    [Add, Subtract, Multiply, Divide, Modulo].into_iter().find(|operator| function_name(*operator) == name)
}

/// The operand types that an operator accepts, with the result type.
pub(super) fn signatures(operator: Operator) -> Vec<([CqlType; 2], CqlType)> {
    let mut found = Vec::with_capacity(NUMBERS.len() * NUMBERS.len() + 6);
    for left in NUMBERS {
        for right in NUMBERS {
            found.push(([left.clone(), right.clone()], common_type(left, right)));
        }
    }
    if matches!(operator, Operator::Add | Operator::Subtract) {
        for ty in [CqlType::Timestamp, CqlType::Date] {
            found.push(([ty.clone(), CqlType::Duration], ty));
        }
    }
    if operator == Operator::Add {
        use CqlType::{Ascii, Text};
        found.push(([Text, Text], Text));
        found.push(([Ascii, Ascii], Ascii));
        found.push(([Ascii, Text], Text));
        found.push(([Text, Ascii], Text));
    }
    found
}

/// The type of a result: as wide as the wider operand, and a fraction if one of them is.
fn common_type(left: &CqlType, right: &CqlType) -> CqlType {
    let size = |ty: &CqlType| match ty {
        CqlType::TinyInt => 1,
        CqlType::SmallInt => 2,
        CqlType::Int | CqlType::Float => 4,
        CqlType::BigInt | CqlType::Double | CqlType::Counter => 8,
        _ => u8::MAX,
    };
    let has_fraction = |ty: &CqlType| matches!(ty, CqlType::Float | CqlType::Double | CqlType::Decimal);
    match (has_fraction(left) || has_fraction(right), size(left).max(size(right))) {
        (true, 1..=4) => CqlType::Float,
        (true, 8) => CqlType::Double,
        (true, _) => CqlType::Decimal,
        (false, 1) => CqlType::TinyInt,
        (false, 2) => CqlType::SmallInt,
        (false, 4) => CqlType::Int,
        (false, 8) => CqlType::BigInt,
        (false, _) => CqlType::Varint,
    }
}

/// Computes an operation; `None` if an operand is empty and its type has no empty values.
pub(super) fn operate(
    operator: Operator,
    types: (&CqlType, &CqlType, &CqlType),
    (left, right): (&[u8], &[u8]),
) -> Result<Option<Vec<u8>>, String> {
    let (left_type, right_type, result) = types;
    if *right_type == CqlType::Duration {
        return with_duration(operator, left_type, (left, right));
    }
    if matches!(result, CqlType::Text | CqlType::Ascii) {
        return Ok(Some([left, right].concat()));
    }
    let (Some(left), Some(right)) = (Number::read(left_type, left), Number::read(right_type, right)) else {
        return Ok(None);
    };
    numbers(operator, result, &left, &right).map(Some).map_err(str::to_owned)
}

fn numbers(operator: Operator, result: &CqlType, left: &Number, right: &Number) -> Arithmetic<Vec<u8>> {
    Ok(match result {
        CqlType::TinyInt => {
            vec![whole(operator, i64::from(left.int() as i8), i64::from(right.int() as i8))? as u8]
        }
        CqlType::SmallInt => {
            let value = whole(operator, i64::from(left.int() as i16), i64::from(right.int() as i16))?;
            (value as i16).to_be_bytes().to_vec()
        }
        CqlType::Int => {
            let value = whole(operator, i64::from(left.int()), i64::from(right.int()))?;
            (value as i32).to_be_bytes().to_vec()
        }
        CqlType::BigInt => whole(operator, left.whole(), right.whole())?.to_be_bytes().to_vec(),
        CqlType::Float => real(operator, left.float(), right.float()).to_be_bytes().to_vec(),
        CqlType::Double => real(operator, left.double(), right.double()).to_be_bytes().to_vec(),
        CqlType::Decimal => {
            let (left, right) = (left.decimal()?, right.decimal()?);
            match operator {
                Operator::Add => left.limited_sum(&right)?,
                Operator::Subtract => left.limited_sum(&right.negated())?,
                Operator::Multiply => left.times(&right)?.limited()?,
                Operator::Divide => left.divided_by(&right)?,
                Operator::Modulo => left.remainder(&right)?,
            }
            .to_bytes()
        }
        _ => {
            let (left, right) = (left.big(), right.big());
            let by_zero = right == BigInt::ZERO;
            match operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Multiply => left * right,
                Operator::Divide | Operator::Modulo if by_zero => return Err("BigInteger divide by zero"),
                Operator::Divide => left / right,
                Operator::Modulo => left % right,
            }
            .to_signed_bytes_be()
        }
    })
}

/// An operation on floats or doubles.
fn real<T>(operator: Operator, left: T, right: T) -> T
where
    T: Add<Output = T> + Sub<Output = T> + Mul<Output = T> + Div<Output = T> + Rem<Output = T>,
{
    match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        Operator::Modulo => left % right,
    }
}

/// An operation on 64-bit integers; narrower results are its low bits.
fn whole(operator: Operator, left: i64, right: i64) -> Arithmetic<i64> {
    Ok(match operator {
        Operator::Add => left.wrapping_add(right),
        Operator::Subtract => left.wrapping_sub(right),
        Operator::Multiply => left.wrapping_mul(right),
        Operator::Divide | Operator::Modulo if right == 0 => return Err("/ by zero"),
        Operator::Divide => left.wrapping_div(right),
        Operator::Modulo => left.wrapping_rem(right),
    })
}

fn with_duration(
    operator: Operator,
    ty: &CqlType,
    (left, right): (&[u8], &[u8]),
) -> Result<Option<Vec<u8>>, String> {
    let (Some(millis), Some(duration)) = (time::millis_of(ty, left), Duration::from_bytes(right)) else {
        return Ok(None);
    };
    let refused = |what: &str| Err(format!("{what}. Was: {}", duration_text(duration)));
    if *ty == CqlType::Date && duration.nanoseconds != 0 {
        return refused("The duration must have a day precision");
    }
    if duration.nanoseconds % 1_000_000 != 0 {
        return refused("The duration must have a millisecond precision");
    }
    let moved = match operator {
        Operator::Subtract => add_duration(
            millis,
            duration.months.wrapping_neg(),
            duration.days.wrapping_neg(),
            duration.nanoseconds.wrapping_neg(),
        ),
        _ => add_duration(millis, duration.months, duration.days, duration.nanoseconds),
    };
    Ok(Some(time::from_millis(ty, moved)))
}

/// The negated number.
pub(super) fn negated(ty: &CqlType, value: &[u8]) -> Option<Vec<u8>> {
    let number = Number::read(ty, value)?;
    Some(match (ty, number) {
        (CqlType::TinyInt, number) => vec![number.int().wrapping_neg() as u8],
        (CqlType::SmallInt, number) => (number.int().wrapping_neg() as i16).to_be_bytes().to_vec(),
        (CqlType::Int, number) => number.int().wrapping_neg().to_be_bytes().to_vec(),
        (_, Number::Whole(value)) => value.wrapping_neg().to_be_bytes().to_vec(),
        (_, Number::Float(value)) => (-value).to_be_bytes().to_vec(),
        (_, Number::Double(value)) => (-value).to_be_bytes().to_vec(),
        (_, Number::Big(value)) => (-value).to_signed_bytes_be(),
        (_, Number::Decimal(value)) => value.negated().to_bytes(),
    })
}

/// A duration's text in messages.
pub(super) fn duration_text(duration: Duration) -> String {
    to_cql_literal(&CqlType::Duration, Some(&duration.to_bytes()))
}
