//! The overloads of the operators, chosen by type indexes.
//!
//! An operator has about fifty overloads over fourteen types. To choose one, every operand is tested against every
//! type, and an operand may itself be an operation. So the results for all types are computed once for each operand
//! (`Fits`), and a choice is one pass over a table: the time for a chain of operations is linear in the number of
//! operators. The rules are those of `resolve::best`, which chooses among other functions.

use super::compatibility::assignable;
use super::number::NUMBERS;
use super::operation::signatures;
use super::resolve::{Found, functions_named};
use crate::scope::{Fits, OPERAND_TYPES};
use crate::syntax::ast::ArithmeticOperator;
use helenus_model::types::{Assignment, CqlType};
use std::sync::LazyLock;

/// An overload: the indexes of its types, and the function.
pub(crate) struct Overload {
    left: usize,
    right: usize,
    returns: usize,
    pub(crate) function: Found,
}

/// The result of a choice.
pub(crate) enum Choice {
    /// This overload.
    One(&'static Overload),
    /// No overload fits.
    None,
    /// Several overloads fit, and the choice is ambiguous.
    Several,
}

/// Whether an operand is a bind marker: then the receiver's type does not decide between overloads.
pub(crate) type HasMarker = bool;

/// The index of a type, if it is an operand type.
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

/// Chooses the overload of an operation; `ty` is the type of its receiver, if known.
pub(crate) fn choose(
    operator: ArithmeticOperator,
    (left, right): (&Fits, &Fits),
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
            // Operands without a type of their own fit several overloads exactly; then the receiver's type decides.
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
        // The receiver's type decides, if the operands may have it.
        (None, Some(_)) => of_type.filter(|_| !has_marker).map_or(Choice::Several, Choice::One),
    }
}
