//! Converts values to the text that cqlsh prints for each type, plain or coloured, and reads such text.
//!
//! The oracle is cqlsh 6.2 (`formatting.py`). Three surprising behaviours are kept: numbers of type `float` and
//! `double` are rounded to some digits; texts inside collections are quoted; control characters are printed as escapes.
//! Two are not kept: an empty collection has the width of its two brackets, and a null inside a collection is `null`,
//! where cqlsh fails.

mod collection;
mod float;
mod json_text;
mod paint;
mod parse;
mod show;
mod split;
mod time;

pub use paint::{BLUE, CYAN, GREEN, MAGENTA, Painted, RED, RESET, WHITE, YELLOW};
pub use parse::{TextRules, parse_value};
pub use show::{Style, ValueRules, show, show_name};
pub use time::{DEFAULT_TIMESTAMP, TimeFormat};
