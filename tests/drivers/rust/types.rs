//! Case `types`: each scalar type as this driver represents it, written by a prepared statement and read back.

use std::fmt::Debug;
use std::net::IpAddr;

use num_bigint::BigInt;
use scylla::client::session::Session;
use scylla::deserialize::value::DeserializeValue;
use scylla::serialize::value::SerializeValue;
use scylla::value::{CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid};
use uuid::Uuid;

use crate::run::{Outcome, all, equal, table};

/// Every scalar type, at its ends.
pub async fn types(session: &Session) -> Outcome {
    let moment_ms = 1_795_253_415_123;
    same(session, "ascii", [String::new(), "abc".to_owned()]).await?;
    same(session, "bigint", [i64::MIN, i64::MAX]).await?;
    same(session, "blob", [Vec::<u8>::new(), vec![0, 255]]).await?;
    same(session, "boolean", [true, false]).await?;
    same(session, "date", [CqlDate(1 << 31), CqlDate(u32::MAX)]).await?;
    let digits = CqlDecimal::from_signed_be_bytes_and_exponent(vec![0xff, 0x00, 0x01], 7);
    same(session, "decimal", [digits, CqlDecimal::from_signed_be_bytes_and_exponent(vec![0], -3)]).await?;
    same(session, "double", [-1.5e300, f64::from_bits(1)]).await?;
    let duration = |sign: i32| CqlDuration { months: sign, days: 2 * sign, nanoseconds: 3 * i64::from(sign) };
    same(session, "duration", [duration(1), duration(-1)]).await?;
    same(session, "float", [1.5_f32, f32::NEG_INFINITY]).await?;
    same(session, "inet", ["127.0.0.1".parse::<IpAddr>()?, "2001:db8::1".parse()?]).await?;
    same(session, "int", [i32::MIN, i32::MAX]).await?;
    same(session, "smallint", [i16::MIN, i16::MAX]).await?;
    same(session, "text", [String::new(), "γαῖα".to_owned()]).await?;
    same(session, "time", [CqlTime(0), CqlTime(86_399_999_999_999)]).await?;
    same(session, "timestamp", [CqlTimestamp(0), CqlTimestamp(moment_ms)]).await?;
    let first = "50554d6e-29bb-11e5-b345-feff819cdc9f".parse::<CqlTimeuuid>()?;
    same(session, "timeuuid", [first, "00000000-0000-1000-8080-808080808080".parse()?]).await?;
    same(session, "tinyint", [i8::MIN, i8::MAX]).await?;
    same(session, "uuid", [Uuid::nil(), Uuid::from_u128(0x1234_5678_1234_4321_8765_1234_5678_9abc)]).await?;
    same(session, "varchar", [String::new(), "as text".to_owned()]).await?;
    same(session, "varint", [BigInt::from(1) << 200, BigInt::from(-129)]).await
}

/// Writes two values and a null into a table of one type and expects them back.
async fn same<T>(session: &Session, kind: &str, values: [T; 2]) -> Outcome
where
    T: SerializeValue + for<'f, 'm> DeserializeValue<'f, 'm> + PartialEq + Debug + Clone,
{
    let full = table(session, &format!("types_{kind}"), &format!("k int PRIMARY KEY, v {kind}")).await?;
    let insert = session.prepare(format!("INSERT INTO {full} (k, v) VALUES (?, ?)")).await?;
    let select = session.prepare(format!("SELECT v FROM {full} WHERE k = ?")).await?;
    let values = values.map(Some).into_iter().chain([None]);
    for (k, value) in (0_i32..).zip(values) {
        session.execute_unpaged(&insert, (k, &value)).await?;
        let rows = session.execute_unpaged(&select, (k,)).await?.into_rows_result()?;
        let (found,) = rows.single_row::<(Option<T>,)>()?;
        equal(kind, found, value)?;
    }
    all(session, &[&format!("DROP TABLE {full}")]).await
}
