//! Values as text: what cqlsh prints for each type, plain or in colours, and the reading of such text.
//!
//! The oracle is cqlsh 6.2 (`formatting.py`): three significant behaviours are kept that one might not expect. Numbers of
//! type `float` and `double` are rounded to some digits; texts inside collections stand between quotes; control characters
//! show as escapes. Two are not: an empty collection has the width of its two brackets, and a null inside a collection is
//! `null` where cqlsh fails.

mod collection;
mod float;
mod paint;
mod parse;
mod show;
mod split;
mod time;

pub use paint::{BLUE, CYAN, GREEN, MAGENTA, Painted, RED, RESET, WHITE, YELLOW};
pub use parse::{TextRules, parse_value};
pub use show::{Style, ValueRules, show, show_name};
pub use time::{DEFAULT_TIMESTAMP, TimeFormat};
