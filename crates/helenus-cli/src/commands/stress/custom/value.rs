//! Generates column values: a number is drawn and converted to the column's type.

use crate::commands::stress::content::{below, mix};
use helenus_model::types::{CqlType, parse_text};
use serde::Deserialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum bytes of a generated text or blob.
const LENGTH_MAX: u64 = 16 << 20;
/// The default number of elements of a collection.
const COUNT: (u64, u64) = (3, 3);
/// 100 ns steps from the epoch of version 1 UUIDs, 15 Oct 1582, to the Unix epoch (RFC 9562, 5.1).
const UUID_EPOCH: u64 = 0x01B2_1DD2_1381_4000;

/// The definition of a value in the file. One of the first five fields chooses how the number is drawn.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spec {
    /// The numbers of the range in order, and from the first again.
    pub sequence: Option<(i64, i64)>,
    /// Any number of the range, all equally often.
    pub uniform: Option<(i64, i64)>,
    /// Any number of the range by Zipf's law: the n-th in proportion to 1/n.
    pub zipf: Option<(i64, i64)>,
    /// One of these texts.
    pub choice: Option<Vec<String>>,
    /// The time of the request.
    pub now: Option<bool>,
    /// Bytes of a text or blob: a fixed number or a range.
    pub length: Option<Size>,
    /// The text before the number in a text.
    pub prefix: Option<String>,
    /// Number of elements of a list, set or map.
    pub count: Option<Size>,
}

/// A number, or a range.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Size {
    Always(u64),
    Between(u64, u64),
}

impl Size {
    fn ends(self) -> (u64, u64) {
        match self {
            Size::Always(size) => (size, size),
            Size::Between(least, most) => (least, most),
        }
    }
}

/// How numbers are drawn.
#[derive(Clone, Debug, PartialEq)]
enum Draw {
    Sequence(i64, u64),
    Uniform(i64, u64),
    /// The first number, their count, and the natural logarithm of the count plus one.
    Zipf(i64, u64, f64),
    /// The serialised values.
    Choice(Vec<Vec<u8>>),
    Now,
}

/// Generates the values of a marker.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    draw: Draw,
    ty: CqlType,
    length: Option<(u64, u64)>,
    prefix: String,
    count: (u64, u64),
    /// Makes this marker's random numbers differ from those of other markers.
    seed: u64,
}

impl Generator {
    /// A generator for a marker of type `ty`. `name` is the name of the value in the file.
    ///
    /// # Errors
    /// An error in the definition, and its correction.
    pub fn new(name: &str, spec: &Spec, ty: &CqlType) -> Result<Generator, String> {
        let draw = draw(spec, ty)?;
        let (length, count) = (spec.length.map(Size::ends), spec.count.map_or(COUNT, Size::ends));
        for (what, (least, most)) in [("length", length.unwrap_or_default()), ("count", count)] {
            if least > most || most > LENGTH_MAX {
                return Err(format!("`{what}` must be a number up to {LENGTH_MAX}, or [LEAST, MOST]"));
            }
        }
        let seed = name.bytes().fold(0, |seed, byte| mix(seed ^ u64::from(byte)));
        let prefix = spec.prefix.clone().unwrap_or_default();
        let generator = Generator { draw, ty: ty.clone(), length, prefix, count, seed };
        generator.check_fits()?;
        Ok(generator)
    }

    /// Refuses numbers that the type cannot hold.
    fn check_fits(&self) -> Result<(), String> {
        let (first, last) = match self.draw {
            Draw::Sequence(first, count) | Draw::Uniform(first, count) | Draw::Zipf(first, count, _) => {
                (first, first.saturating_add_unsigned(count - 1))
            }
            Draw::Choice(_) | Draw::Now => return Ok(()),
        };
        let ends = |ty: &CqlType| match ty {
            CqlType::TinyInt => (i64::from(i8::MIN), i64::from(i8::MAX)),
            CqlType::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
            CqlType::Int | CqlType::Date => (i64::from(i32::MIN), i64::from(i32::MAX)),
            CqlType::Time => (0, 86_399_999_999_999),
            CqlType::Inet => (0, i64::from(u32::MAX)),
            _ => (i64::MIN, i64::MAX),
        };
        let parts = match &self.ty {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => vec![&**element],
            CqlType::Map { key, value, .. } => vec![&**key, &**value],
            ty => vec![ty],
        };
        for ty in parts {
            let (least, most) = ends(ty);
            if first < least || last > most {
                return Err(format!(
                    "{first} to {last} is more than a value of type {ty} holds: {least} to {most}"
                ));
            }
            let mut out = Vec::new();
            write(ty, first, &self.text_of(0, first), &mut out)?;
        }
        Ok(())
    }

    /// Appends the value for an operation. `number` counts the operations of the statement, `operation` those of the
    /// run.
    pub fn put(&self, operation: u64, number: u64, out: &mut Vec<u8>) {
        let random = mix(operation ^ self.seed);
        match &self.ty {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                self.collection(&[element], (random, number), out);
            }
            CqlType::Map { key, value, .. } => self.collection(&[key, value], (random, number), out),
            ty => self.one(ty, random, number, out),
        }
    }

    fn collection(&self, parts: &[&CqlType], (random, number): (u64, u64), out: &mut Vec<u8>) {
        let count = between(self.count, random);
        out.extend_from_slice(&(count as i32).to_be_bytes());
        for at in 0..count {
            for (part, ty) in parts.iter().enumerate() {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                let random = mix(random ^ (at * 2 + part as u64 + 1));
                self.one(ty, random, number.wrapping_mul(count).wrapping_add(at), out);
                let length = (out.len() - start - 4) as i32;
                if let Some(place) = out.get_mut(start..start + 4) {
                    place.copy_from_slice(&length.to_be_bytes());
                }
            }
        }
    }

    fn one(&self, ty: &CqlType, random: u64, number: u64, out: &mut Vec<u8>) {
        let drawn = match &self.draw {
            Draw::Sequence(first, count) => first.wrapping_add_unsigned(number % count),
            Draw::Uniform(first, count) => first.wrapping_add_unsigned(below(random, *count)),
            Draw::Zipf(first, count, log) => first.wrapping_add_unsigned(zipf(random, *count, *log)),
            Draw::Choice(values) => {
                let at = below(random, values.len() as u64) as usize;
                out.extend_from_slice(values.get(at).map_or(&[][..], |value| value));
                return;
            }
            Draw::Now => {
                now(ty, random, out);
                return;
            }
        };
        // Cannot fail: `new` has checked the type.
        let _known = write(ty, drawn, &self.text_of(random, drawn), out);
    }

    /// How a number becomes a text: letters if a length is given, otherwise digits.
    fn text_of(&self, random: u64, number: i64) -> Text<'_> {
        Text {
            prefix: &self.prefix,
            length: self.length.map(|ends| between(ends, mix(random ^ number as u64))),
        }
    }
}

/// The form of texts and blobs.
struct Text<'a> {
    prefix: &'a str,
    length: Option<u64>,
}

fn between((least, most): (u64, u64), random: u64) -> u64 {
    least + below(mix(random), most - least + 1)
}

/// A number below `count`, the n-th in proportion to about 1/n: inverts the logarithm, which approximates the sum of
/// 1/n.
fn zipf(random: u64, count: u64, log: f64) -> u64 {
    let share = (random >> 11) as f64 / (1_u64 << 53) as f64;
    (((share * log).exp() - 1.0) as u64).min(count - 1)
}

fn draw(spec: &Spec, ty: &CqlType) -> Result<Draw, String> {
    let mut draws = Vec::new();
    let range = |(first, last): (i64, i64), name: &str| -> Result<(i64, u64), String> {
        let count = i128::from(last) - i128::from(first) + 1;
        match u64::try_from(count) {
            Ok(count) if count > 0 => Ok((first, count)),
            _ => Err(format!("`{name} = [{first}, {last}]` has no number: write the least first")),
        }
    };
    if let Some(ends) = spec.sequence {
        let (first, count) = range(ends, "sequence")?;
        draws.push(Draw::Sequence(first, count));
    }
    if let Some(ends) = spec.uniform {
        let (first, count) = range(ends, "uniform")?;
        draws.push(Draw::Uniform(first, count));
    }
    if let Some(ends) = spec.zipf {
        let (first, count) = range(ends, "zipf")?;
        draws.push(Draw::Zipf(first, count, (count as f64 + 1.0).ln()));
    }
    if let Some(texts) = &spec.choice {
        let element = match ty {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => element,
            ty => ty,
        };
        let value = |text: &String| {
            parse_text(element, text)
                .map_err(|error| format!("`{text}` is no value of type {element}: {error}"))
        };
        let values: Vec<Vec<u8>> = texts.iter().map(value).collect::<Result<_, _>>()?;
        if values.is_empty() {
            return Err("`choice` is empty: write the values to choose from".to_owned());
        }
        draws.push(Draw::Choice(values));
    }
    if spec.now == Some(true) {
        if !matches!(ty, CqlType::Timestamp | CqlType::TimeUuid | CqlType::BigInt | CqlType::Date) {
            return Err(format!("`now` is a timestamp, timeuuid, date or bigint, not a value of type {ty}"));
        }
        draws.push(Draw::Now);
    }
    match draws.pop() {
        Some(draw) if draws.is_empty() => Ok(draw),
        _ => Err("say one way to draw it: sequence = [1, 1000], uniform = [1, 1000], zipf = [1, 1000], choice = [\"a\", \
                  \"b\"] or now = true"
            .to_owned()),
    }
}

/// Appends a number as a value of type `ty`.
fn write(ty: &CqlType, number: i64, text: &Text<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    match ty {
        CqlType::Ascii | CqlType::Text => letters(number, text, out),
        CqlType::Blob => match text.length {
            Some(length) => noise(number, length, |byte| byte, out),
            None => out.extend_from_slice(&number.to_be_bytes()),
        },
        CqlType::TinyInt => out.push(number as u8),
        CqlType::SmallInt => out.extend_from_slice(&(number as i16).to_be_bytes()),
        CqlType::Int => out.extend_from_slice(&(number as i32).to_be_bytes()),
        // A date counts days from 1970-01-01, plus 2^31.
        CqlType::Date => out.extend_from_slice(&((number as i32) ^ i32::MIN).to_be_bytes()),
        CqlType::BigInt | CqlType::Counter | CqlType::Timestamp | CqlType::Time => {
            out.extend_from_slice(&number.to_be_bytes());
        }
        CqlType::Varint => out.extend_from_slice(&number.to_be_bytes()),
        CqlType::Decimal => {
            out.extend_from_slice(&2_i32.to_be_bytes()); // hundredths
            out.extend_from_slice(&number.to_be_bytes());
        }
        CqlType::Double => out.extend_from_slice(&(number as f64).to_be_bytes()),
        CqlType::Float => out.extend_from_slice(&(number as f32).to_be_bytes()),
        CqlType::Boolean => out.push((number & 1) as u8),
        CqlType::Inet => out.extend_from_slice(&(number as u32).to_be_bytes()),
        CqlType::Uuid => {
            let (high, low) = (mix(number as u64), mix(!(number as u64)));
            put_uuid(high & !0xF000 | 0x4000, low, out);
        }
        CqlType::TimeUuid => time_uuid((number as u64).wrapping_mul(10_000), number as u64, out),
        CqlType::Vector { element, dimension } if **element == CqlType::Float => {
            for at in 0..u64::from(*dimension) {
                let share = (mix(number as u64 ^ (at << 40)) >> 40) as f32 / (1 << 24) as f32;
                out.extend_from_slice(&share.to_be_bytes());
            }
        }
        ty => {
            return Err(format!(
                "values of type {ty} are not made: use `choice`, or write the value into the statement"
            ));
        }
    }
    Ok(())
}

/// Appends the digits of a number after the prefix, or as many letters as the length asks for.
fn letters(number: i64, text: &Text<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(text.prefix.as_bytes());
    match text.length {
        None => out.extend_from_slice(number.to_string().as_bytes()),
        Some(length) => {
            let rest = length.saturating_sub(text.prefix.len() as u64);
            noise(number, rest, |byte| b'a' + (u16::from(byte) * 26 / 256) as u8, out);
        }
    }
}

/// Appends bytes that depend only on the number.
fn noise(number: i64, length: u64, make: impl Fn(u8) -> u8, out: &mut Vec<u8>) {
    let mut left = length as usize;
    let mut word = number as u64;
    while left > 0 {
        word = mix(word);
        let bytes = word.to_le_bytes();
        let some = left.min(bytes.len());
        out.extend(bytes.iter().take(some).map(|byte| make(*byte)));
        left -= some;
    }
}

fn now(ty: &CqlType, random: u64, out: &mut Vec<u8>) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match ty {
        CqlType::TimeUuid => time_uuid((since.as_nanos() / 100) as u64, random, out),
        CqlType::Date => {
            let days = (since.as_secs() / 86_400) as i32;
            out.extend_from_slice(&(days ^ i32::MIN).to_be_bytes());
        }
        _ => out.extend_from_slice(&(since.as_millis() as i64).to_be_bytes()),
    }
}

/// Appends a version 1 UUID of a time in steps of 100 ns since 1970.
fn time_uuid(steps: u64, node: u64, out: &mut Vec<u8>) {
    let time = UUID_EPOCH.wrapping_add(steps);
    let high = (time & 0xFFFF_FFFF) << 32 | (time >> 32 & 0xFFFF) << 16 | 0x1000 | (time >> 48 & 0x0FFF);
    put_uuid(high, mix(node), out);
}

fn put_uuid(high: u64, low: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&high.to_be_bytes());
    out.extend_from_slice(&(low & !(3 << 62) | (2 << 62)).to_be_bytes());
}

#[cfg(test)]
mod tests;
