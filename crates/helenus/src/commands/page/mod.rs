//! Pages of HTML that `profile --report` and `stress --report` write: one file that loads nothing.
//!
//! `document` is the frame with style and script (`page.css`, `page.js`), `chart` draws one picture as SVG over two
//! `axis`es. A page follows the reader's choice of light or dark.

mod axis;
mod chart;
mod document;

pub use axis::Axis;
pub use chart::{Band, Chart, Point, Series, key};
pub use document::{Document, escape};
