//! A position in the feed of changes.

use crate::changes_error::ChangesError;
use crate::log_position::LogPosition;
use uuid::Uuid;

/// A place between two changes: before a record of the log, or behind some of its changes. Positions of one database are
/// ordered as the changes are, and so are their texts. No position ever denotes another place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangePosition {
    /// Before the record.
    pub(crate) record: LogPosition,
    /// So many of the record's changes lie before the position.
    pub(crate) changes: u32,
}

/// Hexadecimal digits of the three parts of a text: database, record, changes.
const DIGITS: [usize; 3] = [8, 16, 6];

impl ChangePosition {
    /// Before all changes.
    pub const START: ChangePosition = ChangePosition { record: LogPosition::START, changes: 0 };

    /// Before the change that lies right before the position, if it is in the same record.
    pub fn before_last(self) -> ChangePosition {
        ChangePosition { changes: self.changes.saturating_sub(1), ..self }
    }

    /// As text: eight digits of the database's id, then the place.
    pub fn text(self, host_id: Uuid) -> String {
        format!("{}-{:016x}-{:06x}", database(host_id), self.record.0, self.changes)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// `NoPosition`; `OtherDatabase` if the text is of a database with another id.
    pub fn parse(text: &str, host_id: Uuid) -> Result<ChangePosition, ChangesError> {
        let no_position = || ChangesError::NoPosition { text: text.to_owned() };
        let parts: Vec<&str> = text.split('-').collect();
        let is_hex = |part: &&str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if parts.iter().map(|part| part.len()).ne(DIGITS) || !parts.iter().all(is_hex) {
            return Err(no_position());
        }
        let [of, record, changes] = parts[..] else { return Err(no_position()) };
        let here = database(host_id);
        if of != here {
            return Err(ChangesError::OtherDatabase { text: text.to_owned(), here });
        }
        let record = u64::from_str_radix(record, 16).map_err(|_| no_position())?;
        let changes = u32::from_str_radix(changes, 16).map_err(|_| no_position())?;
        Ok(ChangePosition { record: LogPosition(record), changes })
    }
}

fn database(host_id: Uuid) -> String {
    let mut text = host_id.simple().to_string();
    text.truncate(DIGITS[0]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_again_and_ordered_as_positions() {
        let host_id = Uuid::from_u128(0x1234_5678_9abc_def0_1234_5678_9abc_def0);
        let at =
            |segment, offset, changes| ChangePosition { record: LogPosition::new(segment, offset), changes };
        let ordered = [ChangePosition::START, at(1, 20, 0), at(1, 20, 2), at(1, 300, 0), at(17, 20, 1)];
        let texts: Vec<String> = ordered.iter().map(|position| position.text(host_id)).collect();
        assert!(texts.is_sorted(), "{texts:?}");
        for (position, text) in ordered.iter().zip(&texts) {
            assert_eq!(ChangePosition::parse(text, host_id), Ok(*position));
        }
        let other = Uuid::from_u128(7);
        assert!(matches!(ChangePosition::parse(&texts[1], other), Err(ChangesError::OtherDatabase { .. })));
        for bad in ["", "now", "12345678", "12345678-00", &texts[1][1..], &format!("{}0", texts[1]), "é"] {
            assert!(
                matches!(ChangePosition::parse(bad, host_id), Err(ChangesError::NoPosition { .. })),
                "{bad}"
            );
        }
    }
}
