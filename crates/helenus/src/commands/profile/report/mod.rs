//! `--report`: the results as one page of HTML with curves, which loads nothing.
//!
//! `page` is the page and its tables, `chart` draws one picture as SVG; style and the few lines of script stand in
//! `page.css` and `page.js`. It follows the reader's choice of light or dark.

mod chart;
mod page;

pub(super) use page::page;
