//! How a storage-attached index transforms values before it compares them. Texts (`NonTokenizingAnalyzer`) get, in this
//! order, lower case, the composed form (NFC), and letters without accents. Addresses
//! (`IndexTermType.encodeInetAddress`): an IPv4 address becomes the IPv4-mapped IPv6 address.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The index options that control how texts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnalyzerOption {
    /// `case_sensitive`; true by default.
    CaseSensitive,
    /// `normalize`; false by default.
    Normalize,
    /// `ascii`; false by default.
    Ascii,
}

impl AnalyzerOption {
    /// All options.
    pub const ALL: [AnalyzerOption; 3] =
        [AnalyzerOption::CaseSensitive, AnalyzerOption::Normalize, AnalyzerOption::Ascii];

    /// The option's name.
    pub fn as_str(self) -> &'static str {
        match self {
            AnalyzerOption::CaseSensitive => "case_sensitive",
            AnalyzerOption::Normalize => "normalize",
            AnalyzerOption::Ascii => "ascii",
        }
    }
}

/// The prefix of an IPv4-mapped IPv6 address (RFC 4291, 2.5.5.2).
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF];

/// A transformation of values before they are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Analyzer {
    maps_addresses: bool,
    lowers: bool,
    normalizes: bool,
    folds: bool,
}

impl Analyzer {
    /// The analyzer that an index's options describe.
    pub fn of(options: &BTreeMap<String, String>) -> Analyzer {
        let is = |option: AnalyzerOption, word: &str| {
            options.get(option.as_str()).is_some_and(|value| value.eq_ignore_ascii_case(word))
        };
        Analyzer {
            maps_addresses: false,
            lowers: is(AnalyzerOption::CaseSensitive, "false"),
            normalizes: is(AnalyzerOption::Normalize, "true"),
            folds: is(AnalyzerOption::Ascii, "true"),
        }
    }

    /// The analyzer of addresses.
    pub fn of_addresses() -> Analyzer {
        Analyzer { maps_addresses: true, ..Analyzer::default() }
    }

    /// Whether this is the analyzer of addresses.
    pub fn is_of_addresses(&self) -> bool {
        self.maps_addresses
    }

    /// Whether values are not changed.
    pub fn is_none(&self) -> bool {
        *self == Analyzer::default()
    }

    /// Transforms a serialised value. A value that is neither text nor an address stays as it is.
    pub fn apply<'v>(&self, value: &'v [u8]) -> Cow<'v, [u8]> {
        if self.is_none() {
            return Cow::Borrowed(value);
        }
        if self.maps_addresses {
            return match value.len() {
                4 => Cow::Owned([&MAPPED, value].concat()),
                _ => Cow::Borrowed(value),
            };
        }
        let Ok(text) = std::str::from_utf8(value) else { return Cow::Borrowed(value) };
        let mut text = Cow::Borrowed(text);
        if self.lowers {
            text = Cow::Owned(text.to_lowercase());
        }
        if self.normalizes {
            text = Cow::Owned(composed(&text));
        }
        if self.folds && !text.is_ascii() {
            text = Cow::Owned(folded(&text));
        }
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }
    }
}

fn composed(text: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    text.nfc().collect()
}

/// Replaces letters by their ASCII letters (`ASCIIFoldingFilter`): a character whose compatibility decomposition
/// without combining marks is ASCII becomes that; `FOLDED` lists characters without a decomposition. All others stay.
fn folded(text: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    use unicode_normalization::char::is_combining_mark;
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_ascii() || is_combining_mark(letter) {
            out.push(letter);
            continue;
        }
        if let Some((_, plain)) = FOLDED.iter().find(|(letters, _)| letters.contains(letter)) {
            out.push_str(plain);
            continue;
        }
        let parts: String = std::iter::once(letter).nfkd().filter(|part| !is_combining_mark(*part)).collect();
        let is_plain = !parts.is_empty() && parts.is_ascii() && parts.trim() == parts;
        if is_plain { out.push_str(&parts) } else { out.push(letter) }
    }
    out
}

/// Letters without a decomposition, and their replacements.
const FOLDED: &[(&str, &str)] = &[
    ("ÆǢǼ", "AE"),
    ("æǣǽ", "ae"),
    ("Œ", "OE"),
    ("œ", "oe"),
    ("ß", "ss"),
    ("ẞ", "SS"),
    ("ØǾ", "O"),
    ("øǿ", "o"),
    ("Ł", "L"),
    ("ł", "l"),
    ("ÐĐ", "D"),
    ("ðđ", "d"),
    ("Þ", "TH"),
    ("þ", "th"),
    ("Ħ", "H"),
    ("ħ", "h"),
    ("ı", "i"),
    ("Ŋ", "N"),
    ("ŋ", "n"),
    ("Ŧ", "T"),
    ("ŧ", "t"),
    ("ĸ", "q"),
    ("‘’‚‛′", "'"),
    ("“”„″«»", "\""),
    ("‐‑‒–—", "-"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn analyzer(options: &[(&str, &str)]) -> Analyzer {
        Analyzer::of(&options.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect())
    }

    #[test]
    fn texts_are_changed_as_the_options_say_and_in_their_order() {
        type Options = &'static [(&'static str, &'static str)];
        let cases: [(Options, &str, &str); 7] = [
            (&[], "Ä", "Ä"),
            (&[("case_sensitive", "true"), ("ascii", "false")], "Ä", "Ä"),
            (&[("case_sensitive", "FALSE")], "ÄBC", "äbc"),
            (&[("normalize", "true")], "A\u{308}", "Ä"),
            (&[("ascii", "true")], "Éàßø中", "Easso中"),
            (&[("case_sensitive", "false"), ("normalize", "true"), ("ascii", "true")], "E\u{301}Æ", "eae"),
            (&[("ascii", "true")], "e\u{301}", "e\u{301}"),
        ];
        for (options, given, expected) in cases {
            let changed = analyzer(options).apply(given.as_bytes());
            assert_eq!(std::str::from_utf8(&changed).unwrap(), expected, "{given} {options:?}");
        }
        assert_eq!(&*analyzer(&[("case_sensitive", "false")]).apply(&[0xFF]), [0xFF]);
    }
}
