//! Writes JSON in the exact layout of sstabledump's pretty printer.
//!
//! Cassandra's `JsonTransformer` controls Jackson's `DefaultPrettyPrinter` through two indenters, for objects and for
//! arrays. An indenter puts a value on a line of its own or, while it is compact, after a space. The caller switches
//! them where that class does. `sstabledump -l` uses Jackson's `MinimalPrettyPrinter`, which writes no spaces.

use helenus_model::types::{write_integer, write_json_string};

/// The layout of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Indented.
    Pretty,
    /// One line for each root value.
    Lines,
}

/// A line feed and the indentation of more levels than ever exist.
const INDENTED: &str = "\n                                ";

/// The name of an object's member with its punctuation, in both layouts.
#[derive(Clone, Copy)]
pub struct Name {
    /// Indented.
    pub pretty: &'static str,
    /// Without spaces.
    pub plain: &'static str,
}

/// A [`Name`] that needs no escapes.
macro_rules! member {
    ($name:literal) => {
        $crate::commands::sstable::dump::printer::Name {
            pretty: concat!("\"", $name, "\" : "),
            plain: concat!("\"", $name, "\":"),
        }
    };
}
pub(super) use member;

struct Level {
    is_array: bool,
    /// The number of members or elements so far.
    count: usize,
}

/// The output with its open levels.
pub struct Printer {
    /// The output that was not taken yet.
    pub out: String,
    layout: Layout,
    /// Whether members of objects follow after a space.
    pub compact_objects: bool,
    /// Whether elements of arrays follow after a space.
    pub compact_arrays: bool,
    levels: Vec<Level>,
    /// Whether a member's name was written and its value is next.
    named: bool,
    roots: usize,
}

impl Printer {
    /// A printer without output.
    pub fn new(layout: Layout) -> Printer {
        Printer {
            out: String::new(),
            layout,
            compact_objects: false,
            compact_arrays: false,
            levels: Vec::new(),
            named: false,
            roots: 0,
        }
    }

    /// Whether values are indented.
    pub fn is_pretty(&self) -> bool {
        self.layout == Layout::Pretty
    }

    /// Makes both indenters compact, or neither.
    pub fn compact(&mut self, compact: bool) {
        (self.compact_objects, self.compact_arrays) = (compact, compact);
    }

    fn indent(&mut self, compact: bool) {
        if self.layout == Layout::Lines {
            return;
        }
        if compact {
            self.out.push(' ');
            return;
        }
        self.out.push_str(INDENTED.get(..1 + 2 * self.levels.len()).unwrap_or(INDENTED));
    }

    /// Writes the separator and indentation before a value.
    fn before_value(&mut self) {
        if std::mem::take(&mut self.named) {
            return;
        }
        let Some(level) = self.levels.last_mut() else {
            if self.roots > 0 {
                self.out.push(if self.layout == Layout::Pretty { ' ' } else { '\n' });
            }
            self.roots += 1;
            return;
        };
        level.count += 1;
        if level.count > 1 {
            self.out.push(',');
        }
        self.indent(self.compact_arrays);
    }

    fn begin(&mut self, open: char, is_array: bool) {
        self.before_value();
        self.out.push(open);
        self.levels.push(Level { is_array, count: 0 });
    }

    /// Writes `{`.
    pub fn begin_object(&mut self) {
        self.begin('{', false);
    }

    /// Writes `[`.
    pub fn begin_array(&mut self) {
        self.begin('[', true);
    }

    /// Writes `}` or `]`.
    pub fn end(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        let compact = if level.is_array { self.compact_arrays } else { self.compact_objects };
        if level.count > 0 {
            self.indent(compact);
        } else if self.layout == Layout::Pretty {
            self.out.push(' ');
        }
        self.out.push(if level.is_array { ']' } else { '}' });
    }

    /// Writes the name of an object's member. Its value must follow.
    pub fn name(&mut self, name: Name) {
        if let Some(level) = self.levels.last_mut() {
            level.count += 1;
            if level.count > 1 {
                self.out.push(',');
            }
        }
        self.indent(self.compact_objects);
        self.out.push_str(if self.layout == Layout::Pretty { name.pretty } else { name.plain });
        self.named = true;
    }

    /// Writes a quoted text that needs no escapes.
    pub fn quoted(&mut self, text: &'static str) {
        self.before_value();
        self.out.push_str(text);
    }

    /// Writes a string.
    pub fn string(&mut self, text: &str) {
        self.before_value();
        write_json_string(text, &mut self.out);
    }

    /// Writes a number.
    pub fn number(&mut self, number: i64) {
        self.before_value();
        write_integer(number, &mut self.out);
    }

    /// Writes `true` or `false`.
    pub fn boolean(&mut self, value: bool) {
        self.before_value();
        self.out.push_str(if value { "true" } else { "false" });
    }

    /// Writes a value that `write` appends as JSON.
    pub fn raw<R>(&mut self, write: impl FnOnce(&mut String) -> R) -> R {
        self.before_value();
        write(&mut self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(layout: Layout) -> String {
        let mut json = Printer::new(layout);
        json.begin_array();
        json.begin_object();
        json.name(member!("key"));
        json.compact(true);
        json.begin_array();
        json.string("1");
        json.end();
        json.compact(false);
        json.name(member!("rows"));
        json.begin_array();
        json.end();
        json.end();
        json.end();
        json.out
    }

    #[test]
    fn values_stand_on_lines_of_their_own_unless_compact() {
        assert_eq!(sample(Layout::Pretty), "[\n  {\n    \"key\" : [ \"1\" ],\n    \"rows\" : [ ]\n  }\n]");
        assert_eq!(sample(Layout::Lines), "[{\"key\":[\"1\"],\"rows\":[]}]");
    }
}
