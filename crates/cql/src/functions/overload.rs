//! The overloads of the operators, chosen by numbers.
//!
//! An operator has some fifty overloads over fourteen types. Choosing one asks how well each operand suits each type, and an
//! operand may be an operation itself. So the answers for all types are kept together (`Suits`), made once an operand, and a
//! choice is one walk over a table: a chain of operations costs as much as it has operators. The rules are those of
//! `resolve::best`, which chooses among the functions of other names.

use super::number::NUMBERS;
use super::operation::signatures;
use super::resolve::{Found, functions_named};
use crate::analysis::assignable;
use crate::syntax::ast::ArithmeticOperator;
use helenus_model::types::{Assignment, CqlType};
use std::sync::LazyLock;

/// The types of operands and results: numbers first.
pub(crate) const OPERAND_TYPES: [CqlType; 14] = [
    CqlType::TinyInt,
    CqlType::SmallInt,
    CqlType::Int,
    CqlType::BigInt,
    CqlType::Float,
    CqlType::Double,
    CqlType::Decimal,
    CqlType::Varint,
    CqlType::Counter,
    CqlType::Timestamp,
    CqlType::Date,
    CqlType::Duration,
    CqlType::Text,
    CqlType::Ascii,
];

/// How well something suits each of `OPERAND_TYPES`.
pub(crate) type Suits = [Assignment; OPERAND_TYPES.len()];

/// An overload: its types by their numbers, and the function.
pub(crate) struct Overload {
    left: usize,
    right: usize,
    returns: usize,
    pub(crate) function: Found,
}

/// What a choice came to.
pub(crate) enum Choice {
    /// This one.
    One(&'static Overload),
    /// None fits.
    None,
    /// Several do, and nothing tells which is meant.
    Several,
}

/// Which operands are bind markers: where one is, the type of the result does not decide between overloads.
pub(crate) type HasMarker = bool;

/// The number of a type, if operands have it.
pub(crate) fn number_of(ty: &CqlType) -> Option<usize> {
    OPERAND_TYPES.iter().position(|known| known == ty)
}

impl Overload {
    /// The type of its result.
    pub(crate) fn returns(&self) -> &'static CqlType {
        static BLOB: CqlType = CqlType::Blob;
        TYPES.get(self.returns).unwrap_or(&BLOB)
    }
}

static TYPES: LazyLock<[CqlType; OPERAND_TYPES.len()]> = LazyLock::new(|| OPERAND_TYPES);

/// The overloads of an operator, in Cassandra's order.
fn overloads(operator: ArithmeticOperator) -> &'static [Overload] {
    use ArithmeticOperator::{Add, Divide, Modulo, Multiply, Subtract};
    static ALL: LazyLock<[Vec<Overload>; 5]> = LazyLock::new(|| {
        [Add, Subtract, Multiply, Divide, Modulo].map(|operator| {
            debug_assert!(NUMBERS.iter().all(|ty| number_of(ty).is_some()));
            let functions = functions_named(super::function_name(operator));
            let of = signatures(operator).into_iter().zip(functions.iter().cloned());
            let numbered = of.filter_map(|(([left, right], returns), function)| {
                let (left, right) = (number_of(&left)?, number_of(&right)?);
                Some(Overload { left, right, returns: number_of(&returns)?, function })
            });
            numbered.collect()
        })
    });
    let at = match operator {
        Add => 0,
        Subtract => 1,
        Multiply => 2,
        Divide => 3,
        Modulo => 4,
    };
    ALL.get(at).map_or(&[], |all| all)
}

/// The overload that an operation means; `ty` is what the result is for, if that is known.
pub(crate) fn choose(
    operator: ArithmeticOperator,
    (left, right): (&Suits, &Suits),
    has_marker: HasMarker,
    ty: Option<&CqlType>,
) -> Choice {
    let may_return: Option<[bool; OPERAND_TYPES.len()]> =
        ty.map(|ty| std::array::from_fn(|at| assignable(ty, &TYPES[at]) != Assignment::Refused));
    let wanted = ty.and_then(number_of);
    let is_of_type = |found: &Overload| wanted == Some(found.left) && wanted == Some(found.right);
    let (mut exact, mut fitting, mut of_type, mut count) = (None, None, None, 0);
    for overload in overloads(operator) {
        if may_return.is_some_and(|may| !may[overload.returns]) {
            continue;
        }
        let (left, right) = (left[overload.left], right[overload.right]);
        if left == Assignment::Refused || right == Assignment::Refused {
            continue;
        }
        if left == Assignment::Exact && right == Assignment::Exact {
            // Operands that have no type of their own suit several exactly: what the result is for decides.
            if ty.is_none() || is_of_type(overload) {
                return Choice::One(overload);
            }
            exact = exact.or(Some(overload));
        }
        if is_of_type(overload) {
            of_type = of_type.or(Some(overload));
        }
        fitting = Some(overload);
        count += 1;
    }
    match (exact, fitting) {
        (Some(exact), _) => Choice::One(exact),
        (None, Some(only)) if count == 1 => Choice::One(only),
        (None, None) => Choice::None,
        // What the result is for decides, if the operands may be of that type.
        (None, Some(_)) => of_type.filter(|_| !has_marker).map_or(Choice::Several, Choice::One),
    }
}
