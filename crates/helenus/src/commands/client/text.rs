//! A statement's text in which hexadecimal values are set anew in each copy.

use std::fmt;
use std::ops::Range;

/// A text and the places of its values, each of an even number of digits.
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

    /// Appends the digits of a value of so many bytes.
    pub fn hex(&mut self, bytes: usize) -> &mut Text {
        let start = self.text.len();
        self.text.extend(std::iter::repeat_n("00", bytes));
        self.places.push(start..self.text.len());
        self
    }

    /// The text, with values of zeroes.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where the values lie in it.
    pub fn places(&self) -> &[Range<usize>] {
        &self.places
    }

    /// The values within `text`, which is this one.
    pub fn values<'b>(&self, text: &'b [u8]) -> Vec<&'b [u8]> {
        self.places.iter().filter_map(|place| text.get(place.clone())).collect()
    }
}
