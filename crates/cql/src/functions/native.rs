//! The native functions, by name (`NativeFunctions`).

use super::call::{CallContext, Scalar};
use super::cast::{self, Cast};
use super::time;
use crate::error::{CqlError, Result};
use helenus_model::schema::Table;
use helenus_model::token::Token;
use helenus_model::types::CqlType;
use std::sync::Arc;

/// A native function with fixed types.
#[derive(Debug)]
pub(super) struct Native {
    /// With its keyspace, as errors and results show it.
    name: String,
    arguments: Vec<CqlType>,
    returns: CqlType,
    does: Does,
}

#[derive(Clone, Copy, Debug)]
enum Does {
    Now,
    Uuid,
    MinTimeUuid,
    MaxTimeUuid,
    /// From the argument's type over milliseconds to that of the result.
    Time,
    /// The bytes as they are.
    ToBlob,
    /// The same bytes, if they are a value of the type.
    FromBlob,
    Token,
    Cast(Cast),
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

    fn is_pure(&self) -> bool {
        !matches!(self.does, Does::Now | Does::Uuid)
    }

    fn call(&self, arguments: &[Option<&[u8]>], cx: &CallContext<'_>) -> Result<Option<Vec<u8>>> {
        if matches!(self.does, Does::Now) {
            return Ok(Some(time::now(&self.returns, cx)));
        }
        if matches!(self.does, Does::Uuid) {
            return Ok(Some(random_uuid(cx)));
        }
        if matches!(self.does, Does::Token) {
            return Ok(token_of(arguments).map(|token| token.0.to_be_bytes().to_vec()));
        }
        let (Some(Some(value)), Some(ty)) = (arguments.first(), self.arguments.first()) else {
            return Ok(None);
        };
        match self.does {
            Does::ToBlob => Ok(Some(value.to_vec())),
            Does::FromBlob => self.checked(value).map(Some),
            // To every other function an empty value is no value.
            _ if value.is_empty() => Ok(None),
            Does::MinTimeUuid => Ok(time::millis_of(ty, value).map(time::min_time_uuid)),
            Does::MaxTimeUuid => Ok(time::millis_of(ty, value).map(time::max_time_uuid)),
            Does::Time => {
                Ok(time::millis_of(ty, value).map(|millis| time::from_millis(&self.returns, millis)))
            }
            Does::Cast(cast) => cast::cast(cast, ty, &self.returns, value).map(Some),
            Does::Now | Does::Uuid | Does::Token => Ok(None),
        }
    }
}

impl Native {
    fn checked(&self, value: &[u8]) -> Result<Vec<u8>> {
        if self.returns.validate(value).is_ok() {
            return Ok(value.to_vec());
        }
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        Err(CqlError::Invalid(format!(
            "In call to function {}, value 0x{hex} is not a valid binary representation for type {}",
            self.name, self.returns
        )))
    }

    fn shared(name: &str, arguments: &[CqlType], returns: CqlType, does: Does) -> Arc<dyn Scalar> {
        Arc::new(Native { name: format!("system.{name}"), arguments: arguments.to_vec(), returns, does })
    }

    /// `token`, of a table.
    pub(super) fn token(table: &Table) -> Arc<dyn Scalar> {
        let types: Vec<CqlType> = table.partition_key.iter().map(|column| column.ty.clone()).collect();
        Native::shared("token", &types, CqlType::BigInt, Does::Token)
    }
}

/// The native types, as conversions from and to blobs know them, with the type that functions see.
const CONVERTED: &[(&str, CqlType)] = &[
    ("ascii", CqlType::Ascii),
    ("bigint", CqlType::BigInt),
    ("boolean", CqlType::Boolean),
    ("counter", CqlType::BigInt),
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

/// The type that a name in a function's name means.
fn converted(name: &str) -> Option<&'static CqlType> {
    CONVERTED.iter().find(|(known, _)| *known == name).map(|(_, ty)| ty)
}

/// The functions of a name, in Cassandra's old or new spelling.
pub(super) fn functions(name: &str) -> Vec<Arc<dyn Scalar>> {
    use CqlType::{Blob, Date, Time, TimeUuid, Timestamp, Uuid};
    let now = |ty| vec![Native::shared(name, &[], ty, Does::Now)];
    let of_times = |from: &[CqlType], to: CqlType| {
        from.iter().map(|ty| Native::shared(name, std::slice::from_ref(ty), to.clone(), Does::Time)).collect()
    };
    match name {
        "now" | "current_timeuuid" | "currenttimeuuid" => now(TimeUuid),
        "current_timestamp" | "currenttimestamp" => now(Timestamp),
        "current_date" | "currentdate" => now(Date),
        "current_time" | "currenttime" => now(Time),
        "uuid" => vec![Native::shared(name, &[], Uuid, Does::Uuid)],
        "min_timeuuid" | "mintimeuuid" => {
            vec![Native::shared(name, &[Timestamp], TimeUuid, Does::MinTimeUuid)]
        }
        "max_timeuuid" | "maxtimeuuid" => {
            vec![Native::shared(name, &[Timestamp], TimeUuid, Does::MaxTimeUuid)]
        }
        "to_date" | "todate" => of_times(&[Timestamp, TimeUuid], Date),
        "to_timestamp" | "totimestamp" => of_times(&[Date, TimeUuid], Timestamp),
        "to_unix_timestamp" | "tounixtimestamp" => of_times(&[Date, TimeUuid, Timestamp], CqlType::BigInt),
        _ => {
            let to_blob = name.strip_suffix("_as_blob").or_else(|| name.strip_suffix("asblob"));
            if let Some(from) = to_blob.and_then(converted) {
                return vec![Native::shared(name, std::slice::from_ref(from), Blob, Does::ToBlob)];
            }
            let from_blob = name.strip_prefix("blob_as_").or_else(|| name.strip_prefix("blobas"));
            if let Some(to) = from_blob.and_then(converted) {
                return vec![Native::shared(name, &[Blob], to.clone(), Does::FromBlob)];
            }
            let cast_to = name.strip_prefix("cast_as_").or_else(|| name.strip_prefix("castas"));
            let Some(to) = cast_to.and_then(converted) else { return Vec::new() };
            let name = format!("cast_as_{}", cast_to.unwrap_or_default());
            let from = cast::sources(to);
            from.map(|(from, does)| Native::shared(&name, &[from], to.clone(), Does::Cast(does))).collect()
        }
    }
}

/// The token of a partition key of these values; `None` if one is null.
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
