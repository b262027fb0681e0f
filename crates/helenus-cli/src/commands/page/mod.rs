//! The HTML pages that `profile --report` and `stress --report` write: a page is one file and loads nothing.
//!
//! `document` is the frame with style and script (`page.css`, `page.js`). `chart` draws one chart as SVG over two
//! `axis`es. A page follows the reader's choice of light or dark.

mod axis;
mod chart;
mod document;

pub use axis::Axis;
pub use chart::{Band, Chart, Point, Series, key};
pub use document::{Document, escape};
