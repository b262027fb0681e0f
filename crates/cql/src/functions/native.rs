//! The native functions, by name (`NativeFunctions`).

use super::aggregate::Aggregate;
use super::cast::{self, Cast};
use super::logarithm::TOO_MANY_DIGITS;
use super::math::Math;
use super::number::NUMBERS;
use super::operation::{self, NEGATION};
use super::similarity::Similarity;
use super::{collection, mask, steps, time};
use crate::budget::put_json;
use crate::cost;
use crate::error::{CqlError, Result};
use crate::json::{Json, JsonReading, Mismatch, Unread, from_json, parse, shown};
use crate::scope::{CallContext, Scalar};
use crate::shown_value::shown_hex;
use crate::syntax::ast::ArithmeticOperator;
use helenus_model::schema::Table;
use helenus_model::token::Token;
use helenus_model::types::CqlType;
use std::sync::Arc;

/// A native function with fixed types.
#[derive(Debug)]
pub(super) struct Native {
    /// With its keyspace, as in errors and results.
    name: String,
    arguments: Vec<CqlType>,
    returns: CqlType,
    does: Operation,
}

/// The computation of a function.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Now,
    Uuid,
    MinTimeUuid,
    MaxTimeUuid,
    /// Converts the argument's type to the result's, by way of milliseconds.
    Time,
    Floor,
    /// The bytes of the value.
    ToBlob,
    /// The same bytes, if they are valid for the type.
    FromBlob,
    Token,
    Cast(Cast),
    Arithmetic(ArithmeticOperator),
    Negation,
    Math(Math),
    MapKeys,
    MapValues,
    CountCollection,
    FoldCollection(Aggregate),
    MaskNull,
    MaskDefault,
    MaskReplace,
    MaskHash,
    /// Masks the inner (true) or the outer characters.
    MaskPartial(bool),
    Similarity(Similarity),
    ToJson,
    FromJson,
}

impl Scalar for Native {
    fn name(&self) -> &str {
        &self.name
    }

    fn argument_types(&self) -> &[CqlType] {
        &self.arguments
    }

    fn return_type(&self) -> &CqlType {
        &self.returns
    }

    fn column_name(&self, arguments: &[&str]) -> String {
        match (&self.does, arguments) {
            (Operation::Arithmetic(operator), [left, right]) => {
                format!("{left} {} {right}", operator.as_char())
            }
            (Operation::Negation, [only]) => format!("-{only}"),
            (Operation::Cast(_), [only]) => format!("cast({only} as {})", self.returns),
            _ => format!("{}({})", self.name, arguments.join(", ")),
        }
    }

    fn operator(&self) -> Option<ArithmeticOperator> {
        match self.does {
            Operation::Arithmetic(operator) => Some(operator),
            _ => None,
        }
    }

    fn is_pure(&self) -> bool {
        !matches!(self.does, Operation::Now | Operation::Uuid)
    }

    fn steps(&self, arguments: &[Option<&[u8]>]) -> usize {
        let value = |index: usize| arguments.get(index).copied().flatten().unwrap_or_default();
        match (&self.does, &self.arguments[..]) {
            (Operation::Arithmetic(operator), [left, right]) => {
                steps::arithmetic(*operator, &self.returns, [(left, value(0)), (right, value(1))])
            }
            (Operation::Math(math), [ty]) => steps::math(*math, ty, value(0)),
            (Operation::Cast(_), [ty]) => steps::cast(ty, value(0)),
            (Operation::ToJson, [ty]) => cost::text(ty, value(0)),
            // Their folds count their own steps.
            _ => 0,
        }
    }

    fn fixed_result_bytes(&self) -> usize {
        match self.does {
            Operation::MaskDefault => mask::default_length(&self.returns).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    fn is_monotonic(&self) -> bool {
        matches!(self.does, Operation::Time | Operation::Floor)
    }

    fn call(&self, arguments: &[Option<&[u8]>], cx: &CallContext<'_>) -> Result<Option<Vec<u8>>> {
        let first = arguments.first().copied().flatten();
        match &self.does {
            Operation::Now => Ok(Some(time::now(&self.returns, cx))),
            Operation::Uuid => Ok(Some(random_uuid(cx))),
            Operation::Token => Ok(token_of(arguments).map(|token| token.0.to_be_bytes().to_vec())),
            Operation::ToBlob => Ok(first.map(<[u8]>::to_vec)),
            Operation::FromBlob => first.map(|value| self.checked(value)).transpose(),
            Operation::CountCollection => Ok(first.map(collection::count)),
            Operation::FoldCollection(function) => {
                first.map_or(Ok(None), |elements| collection::fold(function, elements, cx.work))
            }
            Operation::MaskNull => Ok(None),
            Operation::MaskDefault => Ok(Some(mask::default_of(&self.returns))),
            Operation::MaskReplace => Ok(arguments.get(1).copied().flatten().map(<[u8]>::to_vec)),
            Operation::MaskHash => mask::hash(first, arguments.get(1).copied().flatten()),
            Operation::MaskPartial(inner) => mask::partial(*inner, &self.name, arguments),
            _ => self.of_values(arguments, cx),
        }
    }
}

impl Native {
    /// Functions for which a meaningless empty argument counts as null.
    fn of_values(&self, arguments: &[Option<&[u8]>], cx: &CallContext<'_>) -> Result<Option<Vec<u8>>> {
        let mut values: Vec<&[u8]> = Vec::with_capacity(arguments.len());
        for (argument, ty) in arguments.iter().zip(&self.arguments) {
            match argument {
                Some(value) if !value.is_empty() || !ty.is_empty_meaningless() => values.push(value),
                _ if matches!(self.does, Operation::ToJson) => return Ok(Some(b"null".to_vec())),
                _ => return Ok(None),
            }
        }
        let (Some(value), Some(ty)) = (values.first(), self.arguments.first()) else { return Ok(None) };
        match &self.does {
            Operation::MinTimeUuid => Ok(time::millis_of(ty, value).map(time::min_time_uuid)),
            Operation::MaxTimeUuid => Ok(time::millis_of(ty, value).map(time::max_time_uuid)),
            Operation::Time => {
                Ok(time::millis_of(ty, value).map(|millis| time::from_millis(&self.returns, millis)))
            }
            Operation::Floor => time::floor(&self.arguments, &self.returns, &values),
            Operation::Cast(cast) => cast::cast(*cast, ty, &self.returns, value).map(Some),
            Operation::Arithmetic(operator) => self.operate(*operator, &values),
            Operation::Negation => Ok(operation::negated(ty, value)),
            Operation::Math(math) => math.of(ty, value).map_err(|why| match why {
                // A limit of this server, which Cassandra does not have.
                TOO_MANY_DIGITS => self.failed(format!("execution of '{}[{ty}]' failed: {why}", self.name)),
                // Cassandra returns the exception of its Java code.
                _ => CqlError::Server(format!("java.lang.ArithmeticException: {why}")),
            }),
            Operation::MapKeys => Ok(Some(collection::map_keys(value))),
            Operation::MapValues => Ok(Some(collection::map_values(value))),
            Operation::Similarity(similarity) => {
                let other = values.get(1).copied().unwrap_or_default();
                similarity.of(&self.name, value, other).map(Some)
            }
            Operation::ToJson => {
                let mut text = String::new();
                put_json(ty, Some(value), &mut text)?;
                Ok(Some(text.into_bytes()))
            }
            Operation::FromJson => self.read_json(value, cx),
            _ => Ok(None),
        }
    }

    fn operate(&self, operator: ArithmeticOperator, values: &[&[u8]]) -> Result<Option<Vec<u8>>> {
        let ([left, right], [left_type, right_type]) = (values, &self.arguments[..]) else { return Ok(None) };
        operation::operate(operator, (left_type, right_type, &self.returns), (left, right)).map_err(|why| {
            let sign = operator.as_char();
            self.failed(format!("the operation '{left_type} {sign} {right_type}' failed: {why}"))
        })
    }

    fn read_json(&self, text: &[u8], cx: &CallContext<'_>) -> Result<Option<Vec<u8>>> {
        let text = String::from_utf8_lossy(text);
        let undecodable = |why: String| {
            self.failed(format!(
                "execution of '{}[text]' failed: Could not decode JSON string '{}': {why}",
                self.name,
                shown(&text)
            ))
        };
        let step = |bytes| cx.work.goes_on(bytes);
        let json = match parse(&text, &step) {
            Ok(Json::Null) => return Ok(None),
            Ok(json) => json,
            Err(Unread::Invalid(error)) => return Err(undecodable(error.java_text())),
            Err(Unread::Stopped) => return Err(cx.work.interrupted()),
        };
        let marshal = |why: Mismatch| match why {
            Mismatch::Invalid(text) => CqlError::Invalid(text),
            Mismatch::Stopped => cx.work.interrupted(),
            Mismatch::Marshal(why) => {
                self.failed(format!("org.apache.cassandra.serializers.MarshalException: {why}"))
            }
        };
        let reading = JsonReading { now_ms: cx.now_us.div_euclid(1000), step: &step };
        from_json(&self.returns, &json, reading).map(Some).map_err(marshal)
    }

    fn failed(&self, message: String) -> CqlError {
        CqlError::FunctionFailure {
            keyspace: "system".to_owned(),
            function: self.name.strip_prefix("system.").unwrap_or(&self.name).to_owned(),
            argument_types: self.arguments.iter().map(CqlType::to_string).collect(),
            message,
        }
    }

    fn checked(&self, value: &[u8]) -> Result<Vec<u8>> {
        if self.returns.validate(value).is_ok() {
            return Ok(value.to_vec());
        }
        Err(CqlError::Invalid(format!(
            "In call to function {}, value 0x{} is not a valid binary representation for type {}",
            self.name,
            shown_hex(value),
            self.returns
        )))
    }

    pub(super) fn shared(
        name: &str,
        arguments: &[CqlType],
        returns: CqlType,
        does: Operation,
    ) -> Arc<dyn Scalar> {
        Arc::new(Native { name: format!("system.{name}"), arguments: arguments.to_vec(), returns, does })
    }

    /// The function `token` of a table.
    pub(super) fn token(table: &Table) -> Arc<dyn Scalar> {
        let types: Vec<CqlType> = table.partition_key.iter().map(|column| column.ty.clone()).collect();
        Native::shared("token", &types, CqlType::BigInt, Operation::Token)
    }
}

/// The native types by their names in the blob conversion functions, with the type that functions see.
const CONVERTED: &[(&str, CqlType)] = &[
    ("ascii", CqlType::Ascii),
    ("bigint", CqlType::BigInt),
    ("boolean", CqlType::Boolean),
    ("counter", CqlType::Counter),
    ("date", CqlType::Date),
    ("decimal", CqlType::Decimal),
    ("double", CqlType::Double),
    ("duration", CqlType::Duration),
    ("empty", CqlType::Empty),
    ("float", CqlType::Float),
    ("inet", CqlType::Inet),
    ("int", CqlType::Int),
    ("smallint", CqlType::SmallInt),
    ("text", CqlType::Text),
    ("time", CqlType::Time),
    ("timestamp", CqlType::Timestamp),
    ("timeuuid", CqlType::TimeUuid),
    ("tinyint", CqlType::TinyInt),
    ("uuid", CqlType::Uuid),
    ("varchar", CqlType::Text),
    ("varint", CqlType::Varint),
];

/// The type with this name within a function's name.
fn converted(name: &str) -> Option<&'static CqlType> {
    CONVERTED.iter().find(|(known, _)| *known == name).map(|(_, ty)| ty)
}

/// The functions with this name, in Cassandra's old or new spelling.
pub(super) fn functions(name: &str) -> Vec<Arc<dyn Scalar>> {
    use CqlType::{Date, Time, TimeUuid, Timestamp, Uuid};
    let now = |ty| vec![Native::shared(name, &[], ty, Operation::Now)];
    let of_times = |from: &[CqlType], to: CqlType| {
        from.iter()
            .map(|ty| Native::shared(name, std::slice::from_ref(ty), to.clone(), Operation::Time))
            .collect()
    };
    match name {
        "now" | "current_timeuuid" | "currenttimeuuid" => now(TimeUuid),
        "current_timestamp" | "currenttimestamp" => now(Timestamp),
        "current_date" | "currentdate" => now(Date),
        "current_time" | "currenttime" => now(Time),
        "uuid" => vec![Native::shared(name, &[], Uuid, Operation::Uuid)],
        "min_timeuuid" | "mintimeuuid" => {
            vec![Native::shared(name, &[Timestamp], TimeUuid, Operation::MinTimeUuid)]
        }
        "max_timeuuid" | "maxtimeuuid" => {
            vec![Native::shared(name, &[Timestamp], TimeUuid, Operation::MaxTimeUuid)]
        }
        "to_date" | "todate" => of_times(&[Timestamp, TimeUuid], Date),
        "to_timestamp" | "totimestamp" => of_times(&[Date, TimeUuid], Timestamp),
        "to_unix_timestamp" | "tounixtimestamp" => of_times(&[Date, TimeUuid, Timestamp], CqlType::BigInt),
        "floor" => floors(),
        NEGATION => of_numbers(name, Operation::Negation),
        _ => by_pattern(name),
    }
}

fn of_numbers(name: &str, does: Operation) -> Vec<Arc<dyn Scalar>> {
    let of = |ty: &CqlType| Native::shared(name, std::slice::from_ref(ty), ty.clone(), does.clone());
    NUMBERS.iter().map(of).collect()
}

fn floors() -> Vec<Arc<dyn Scalar>> {
    use CqlType::{Date, Duration, Time, TimeUuid, Timestamp};
    let of = |(arguments, returns): (&[CqlType], CqlType)| {
        Native::shared("floor", arguments, returns, Operation::Floor)
    };
    let all: [(&[CqlType], CqlType); 7] = [
        (&[Timestamp, Duration], Timestamp),
        (&[Timestamp, Duration, Timestamp], Timestamp),
        (&[TimeUuid, Duration], Timestamp),
        (&[TimeUuid, Duration, Timestamp], Timestamp),
        (&[Date, Duration], Date),
        (&[Date, Duration, Date], Date),
        (&[Time, Duration], Time),
    ];
    all.into_iter().map(of).collect()
}

/// Functions that exist for each type or operator.
fn by_pattern(name: &str) -> Vec<Arc<dyn Scalar>> {
    if let Some(operator) = operation::operator_of(name) {
        let of = |(arguments, returns): ([CqlType; 2], CqlType)| {
            Native::shared(name, &arguments, returns, Operation::Arithmetic(operator))
        };
        return operation::signatures(operator).into_iter().map(of).collect();
    }
    if let Some(math) = Math::named(name) {
        return of_numbers(name, Operation::Math(math));
    }
    let to_blob = name.strip_suffix("_as_blob").or_else(|| name.strip_suffix("asblob"));
    if let Some(from) = to_blob.and_then(converted) {
        return vec![Native::shared(name, std::slice::from_ref(from), CqlType::Blob, Operation::ToBlob)];
    }
    let from_blob = name.strip_prefix("blob_as_").or_else(|| name.strip_prefix("blobas"));
    if let Some(to) = from_blob.and_then(converted) {
        return vec![Native::shared(name, &[CqlType::Blob], to.clone(), Operation::FromBlob)];
    }
    let cast_to = name.strip_prefix("cast_as_").map(str::to_owned);
    let cast_to = cast_to.or_else(|| name.strip_prefix("castAs").map(str::to_lowercase));
    // Casts know each type by one name only.
    let Some(to) =
        cast_to.as_deref().filter(|name| *name != "varchar" && *name != "counter").and_then(converted)
    else {
        return Vec::new();
    };
    cast::sources(to)
        .map(|(from, does)| Native::shared(name, &[from], to.clone(), Operation::Cast(does)))
        .collect()
}

/// The token of a partition key with these values; `None` if one is null.
fn token_of(values: &[Option<&[u8]>]) -> Option<Token> {
    if let [only] = values {
        return only.map(Token::of_key);
    }
    let mut key = Vec::new();
    for value in values {
        let value = (*value)?;
        key.extend_from_slice(&u16::try_from(value.len()).ok()?.to_be_bytes());
        key.extend_from_slice(value);
        key.push(0);
    }
    Some(Token::of_key(&key))
}

/// A random (version 4) UUID.
fn random_uuid(cx: &CallContext<'_>) -> Vec<u8> {
    let mut bytes = [0; 16];
    (cx.random)(&mut bytes);
    bytes[6] = (bytes[6] & 0x0F) | 0x40;
    bytes[8] = (bytes[8] & 0x3F) | 0x80;
    bytes.to_vec()
}
