//! The text of a statement with hexadecimal values that each copy overwrites.

use std::fmt;
use std::ops::Range;

/// A text and the positions of its values, each an even number of hexadecimal digits.
#[derive(Clone, Debug, Default)]
pub struct Text {
    text: String,
    places: Vec<Range<usize>>,
}

impl Text {
    /// Appends a text.
    pub fn push(&mut self, text: impl fmt::Display) -> &mut Text {
        self.text.push_str(&text.to_string());
        self
    }

    /// Appends a value of `bytes` bytes, in hexadecimal zeroes.
    pub fn hex(&mut self, bytes: usize) -> &mut Text {
        let start = self.text.len();
        self.text.extend(std::iter::repeat_n("00", bytes));
        self.places.push(start..self.text.len());
        self
    }

    /// The text; its values are zeroes.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The positions of the values.
    pub fn places(&self) -> &[Range<usize>] {
        &self.places
    }

    /// The values within `text`, which has the layout of this text.
    pub fn values<'b>(&self, text: &'b [u8]) -> Vec<&'b [u8]> {
        self.places.iter().filter_map(|place| text.get(place.clone())).collect()
    }
}
