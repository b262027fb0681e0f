//! Speculative retry policies and read repair, which only matter in clusters: their texts in Cassandra's canonical form
//! (`SpeculativeRetryPolicy` and its kinds, `ReadRepairStrategy`).

use crate::error::{CqlError, Result};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Percentile,
    Fixed,
}

/// The canonical text of a policy.
pub(super) fn retry_policy(text: &str) -> Result<String> {
    let refused = || CqlError::Config(format!("Invalid value {text} for option 'speculative_retry'"));
    let lower = text.to_lowercase();
    if lower == "always" || lower == "never" || lower == "none" {
        return Ok(if lower == "always" { "ALWAYS".into() } else { "NEVER".into() });
    }
    if let Some((_, policy)) = simple(&lower, text)? {
        return Ok(policy);
    }
    let function = lower.get(..4).filter(|name| *name == "min(" || *name == "max(");
    let arguments = lower.get(4..).and_then(|rest| rest.strip_suffix(')'));
    let (Some(function), Some((first, second))) = (function, arguments.and_then(|rest| rest.split_once(',')))
    else {
        return Err(refused());
    };
    let first = simple(first.trim(), text).map_err(|_| refused())?.ok_or_else(refused)?;
    let second = simple(second.trim(), text).map_err(|_| refused())?.ok_or_else(refused)?;
    if first.0 == second.0 {
        let kind = if first.0 == Kind::Percentile { "PERCENTILE" } else { "FIXED" };
        return Err(CqlError::Config(format!(
            "Invalid value {text} for option 'speculative_retry': MIN()/MAX() arguments should be of different types, \
             but both are of type {kind}"
        )));
    }
    let (percentile, fixed) =
        if first.0 == Kind::Percentile { (first.1, second.1) } else { (second.1, first.1) };
    Ok(format!("{}{percentile},{fixed})", function.to_uppercase()))
}

/// A percentile (`99p`, `99.5percentile`) or a fixed time (`50ms`).
fn simple(lower: &str, whole: &str) -> Result<Option<(Kind, String)>> {
    let refused = || CqlError::Config(format!("Invalid value {whole} for option 'speculative_retry'"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let percentile = lower.strip_suffix("percentile").or_else(|| lower.strip_suffix('p'));
    if let Some(number) = percentile.filter(|number| is_number(number)) {
        let value: f64 = number.parse().map_err(|_| refused())?;
        if value <= 0.0 || value >= 100.0 {
            return Err(CqlError::Config(format!(
                "Invalid value {whole} for PERCENTILE option 'speculative_retry': must be between (0.0 and 100.0)"
            )));
        }
        // Cassandra prints up to four decimals.
        let text = format!("{value:.4}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        return Ok(Some((Kind::Percentile, format!("{text}p"))));
    }
    if let Some(number) = lower.strip_suffix("ms").filter(|number| is_number(number)) {
        let value: f64 = number.parse().map_err(|_| refused())?;
        return Ok(Some((Kind::Fixed, format!("{}ms", value as i32))));
    }
    Ok(None)
}
