//! The place behind an event, as text.

use helenus_engine::ChangesError;
use helenus_engine::changes::ChangePosition;
use uuid::Uuid;

/// A place in the events of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// Among the changes.
    Changes(ChangePosition),
    /// Among the present rows; the changes from `then` on follow them.
    Snapshot {
        /// The end of the changes when the first row was read.
        then: ChangePosition,
        /// The last row that was read: its partition's key, and its clustering in ordered bytes. An empty clustering is
        /// before all rows of the partition; `None` is behind them.
        after: Option<(Vec<u8>, Option<Vec<u8>>)>,
    },
}

/// Where a reader begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the changes that come.
    Now,
    /// With the present rows, then the changes since.
    Beginning,
    /// With the oldest change that is kept.
    Oldest,
    /// Behind an event.
    After(Cursor),
}

impl Start {
    /// Reads `now`, `beginning`, `oldest` or the text of a cursor.
    ///
    /// # Errors
    /// `NoPosition`, `OtherDatabase`.
    pub fn parse(text: &str, host_id: Uuid) -> Result<Start, ChangesError> {
        Ok(match text {
            "now" => Start::Now,
            "beginning" => Start::Beginning,
            "oldest" => Start::Oldest,
            _ => Start::After(Cursor::parse(text, host_id)?),
        })
    }
}

impl Cursor {
    /// The position from which the log is needed.
    pub fn position(&self) -> ChangePosition {
        match self {
            Cursor::Changes(position) | Cursor::Snapshot { then: position, .. } => *position,
        }
    }

    /// As text: the position; among rows followed by key and clustering in hexadecimal digits, each after a slash.
    pub fn text(&self, host_id: Uuid) -> String {
        match self {
            Cursor::Changes(position) => position.text(host_id),
            Cursor::Snapshot { then, after } => {
                let mut text = format!("{}/", then.text(host_id));
                if let Some((key, clustering)) = after {
                    text.push_str(&hex(key));
                    if let Some(clustering) = clustering {
                        text.push('/');
                        text.push_str(&hex(clustering));
                    }
                }
                text
            }
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// `NoPosition`, `OtherDatabase`.
    pub fn parse(text: &str, host_id: Uuid) -> Result<Cursor, ChangesError> {
        let mut parts = text.split('/');
        let position = parts.next().unwrap_or_default();
        let then = ChangePosition::parse(position, host_id).map_err(|error| match error {
            ChangesError::NoPosition { .. } => ChangesError::NoPosition { text: text.to_owned() },
            other => other,
        })?;
        let Some(key) = parts.next() else { return Ok(Cursor::Changes(then)) };
        let no_position = || ChangesError::NoPosition { text: text.to_owned() };
        let clustering = parts.next().map(|digits| unhex(digits).ok_or_else(no_position)).transpose()?;
        if parts.next().is_some() || (key.is_empty() && clustering.is_some()) {
            return Err(no_position());
        }
        let key = unhex(key).ok_or_else(no_position)?;
        let after = (!key.is_empty()).then_some((key, clustering));
        Ok(Cursor::Snapshot { then, after })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let is_hex = digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    if is_hex { (0..digits.len()).step_by(2).map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_cursors_are_read_again_and_nonsense_is_refused() {
        let host_id = Uuid::from_u128(0xabcd_ef01 << 96);
        let then = ChangePosition::START;
        let cursors = [
            Cursor::Changes(then),
            Cursor::Snapshot { then, after: None },
            Cursor::Snapshot { then, after: Some((vec![0, 255], None)) },
            Cursor::Snapshot { then, after: Some((vec![7], Some(vec![]))) },
            Cursor::Snapshot { then, after: Some((vec![7], Some(vec![64, 0]))) },
        ];
        for cursor in cursors {
            assert_eq!(Cursor::parse(&cursor.text(host_id), host_id), Ok(cursor));
        }
        let good = then.text(host_id);
        for bad in [
            "",
            "/",
            "now/",
            &format!("{good}/0"),
            &format!("{good}/xx"),
            &format!("{good}/00/00/00"),
            &format!("{good}//00"),
        ] {
            assert!(matches!(Cursor::parse(bad, host_id), Err(ChangesError::NoPosition { .. })), "{bad}");
        }
    }
}
