//! One picture: lines over the width of the row, both axes logarithmic, as SVG.

use super::super::numbers::{figure, grouped, mean};
use super::super::rows::ROWS;
use std::fmt::Write;

/// Size of the picture in its own units; the page scales it.
const WIDTH: f64 = 680.0;
const HEIGHT: f64 = 400.0;
/// Room for the labels.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 52.0;

/// The vertical axis shows at least so many times its least value.
const SPAN: f64 = 40.0;

/// What the vertical axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Microseconds,
    Blocks,
}

/// A line.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub name: String,
    /// Number of its colour.
    pub hue: usize,
    /// Number of its mark.
    pub mark: usize,
    /// Width of the row and value.
    pub points: Vec<(f64, f64)>,
}

/// A picture.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub title: String,
    pub unit: Unit,
    pub series: Vec<Series>,
    /// An area behind the lines: width of the row, lower and upper value.
    pub band: Vec<(f64, f64, f64)>,
}

/// The values shown, and their place in the picture.
struct Scale {
    low: f64,
    high: f64,
    /// The narrowest and the widest row.
    widths: (f64, f64),
}

impl Scale {
    /// Whole steps of 1, 2, 5 around the values.
    fn around(values: impl Iterator<Item = f64>, widths: (f64, f64)) -> Option<Scale> {
        let (mut low, mut high) = (f64::MAX, 0.0_f64);
        for value in values.filter(|value| *value > 0.0) {
            (low, high) = (low.min(value), high.max(value));
        }
        if high == 0.0 {
            return None;
        }
        let low = steps(low / 10.0).take_while(|step| *step <= low * 0.9).last().unwrap_or(low);
        // Less would show noise as if it were a curve.
        let high = (high * 1.1).max(low * SPAN);
        let high = steps(high / 10.0).find(|step| *step >= high).unwrap_or(high);
        Some(Scale { low, high, widths })
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        TOP + (1.0 - share) * (HEIGHT - TOP - BOTTOM)
    }

    fn x(&self, width: f64) -> f64 {
        let (least, most) = self.widths;
        // A single row stands in the middle.
        let share = if least < most { (width / least).ln() / (most / least).ln() } else { 0.5 };
        LEFT + 14.0 + share * (WIDTH - LEFT - RIGHT - 28.0)
    }
}

/// 1, 2, 5, 10, 20, ... from the power of ten at or below a value.
fn steps(from: f64) -> impl Iterator<Item = f64> {
    let first = from.log10().floor() as i32;
    (first..first + 20).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
}

impl Unit {
    fn label(self, value: f64) -> String {
        match self {
            Unit::Microseconds if value >= 1e3 => format!("{} ms", value / 1e3),
            Unit::Microseconds => format!("{value} µs"),
            Unit::Blocks => grouped(value.round() as u64),
        }
    }

    fn value(self, value: f64) -> String {
        match self {
            Unit::Microseconds => format!("{} µs", figure(value)),
            Unit::Blocks => format!("{} blocks", mean(value)),
        }
    }
}

impl Chart {
    /// The picture; nothing when there is no value to show.
    pub fn svg(&self) -> String {
        let values = self.series.iter().flat_map(|series| series.points.iter().map(|(_, value)| *value));
        let band = self.band.iter().flat_map(|(_, low, high)| [*low, *high]);
        let widths = self.series.iter().flat_map(|series| series.points.iter().map(|(width, _)| *width));
        let widths =
            widths.fold((f64::MAX, 0.0_f64), |(least, most), width| (least.min(width), most.max(width)));
        let Some(scale) = Scale::around(values.chain(band), widths) else { return String::new() };
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escape(&self.title)
        );
        self.axes(&scale, &mut svg);
        self.band(&scale, &mut svg);
        for (number, series) in self.series.iter().enumerate() {
            self.line(number, series, &scale, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn axes(&self, scale: &Scale, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let crowded = scale.high / scale.low > 2e3;
        // There is no half block.
        let low = if self.unit == Unit::Blocks { scale.low.max(1.0) } else { scale.low };
        for step in steps(scale.low).filter(|step| (low..=scale.high * 1.001).contains(step)) {
            let y = scale.y(step);
            let is_power = (step.log10() - step.log10().round()).abs() < 1e-9;
            let class = if is_power { "grid" } else { "grid faint" };
            let _ = writeln!(
                svg,
                "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            );
            if is_power || !crowded {
                let (at, label) = (LEFT - 8.0, self.unit.label((step * 1e6).round() / 1e6));
                let _ = writeln!(
                    svg,
                    "<text class=\"tick\" x=\"{at}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                    y + 4.0
                );
            }
        }
        let (least, most) = scale.widths;
        for row in ROWS.iter().filter(|row| (least..=most).contains(&(row.width as f64))) {
            let at = scale.x(row.width as f64);
            let label = match row.width {
                width if width >= 1_000_000 => format!("{}M", width / 1_000_000),
                width if width >= 5_000 => format!("{}k", width / 1_000),
                width => grouped(width),
            };
            let _ = writeln!(
                svg,
                "<line class=\"grid faint\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"
            );
            let _ = writeln!(
                svg,
                "<text class=\"tick\" x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                bottom + 18.0
            );
        }
        let (middle, below) = ((LEFT + right) / 2.0, HEIGHT - 10.0);
        let _ = writeln!(
            svg,
            "<text class=\"axis\" x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">columns in the row</text>"
        );
    }

    fn band(&self, scale: &Scale, svg: &mut String) {
        if self.band.is_empty() {
            return;
        }
        let upper = self.band.iter().map(|(width, _, high)| (*width, *high));
        let lower = self.band.iter().rev().map(|(width, low, _)| (*width, *low));
        let points: Vec<String> = upper
            .chain(lower)
            .map(|(width, value)| format!("{:.1},{:.1}", scale.x(width), scale.y(value)))
            .collect();
        let _ = writeln!(svg, "<polygon class=\"band\" points=\"{}\"/>", points.join(" "));
        if let Some((width, low, high)) = self.band.last() {
            let (at, y) = (scale.x(*width) - 8.0, scale.y((low * high).sqrt()) + 4.0);
            let _ = writeln!(
                svg,
                "<text class=\"then\" x=\"{at:.1}\" y=\"{y:.1}\" text-anchor=\"end\">2011</text>"
            );
        }
    }

    fn line(&self, number: usize, series: &Series, scale: &Scale, svg: &mut String) {
        let points: Vec<(f64, f64, f64, f64)> = series
            .points
            .iter()
            .filter(|(_, value)| *value > 0.0)
            .map(|(width, value)| (*width, *value, scale.x(*width), scale.y(*value)))
            .collect();
        let path: Vec<String> = points.iter().map(|(_, _, x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(svg, "<g class=\"series c{}\" data-series=\"{number}\">", series.hue);
        let _ = writeln!(svg, "<polyline points=\"{}\"/>", path.join(" "));
        for (width, value, x, y) in points {
            let tip = format!(
                "{}: {} of {} columns",
                escape(&series.name),
                self.unit.value(value),
                grouped(width.round() as u64)
            );
            let _ = writeln!(
                svg,
                "<g data-tip=\"{tip}\">{}<circle class=\"reach\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"9\"/></g>",
                mark(series.mark, x, y)
            );
        }
        svg.push_str("</g>\n");
    }
}

/// A mark of the legend, as a picture of its own.
pub(super) fn key(series: &Series) -> String {
    format!(
        "<svg class=\"key series c{}\" viewBox=\"0 0 28 12\" aria-hidden=\"true\"><polyline points=\"1,6 27,6\"/>{}</svg>",
        series.hue,
        mark(series.mark, 14.0, 6.0)
    )
}

fn mark(number: usize, x: f64, y: f64) -> String {
    match number % 3 {
        0 => format!("<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\"/>"),
        1 => format!(
            "<rect class=\"mark\" x=\"{:.1}\" y=\"{:.1}\" width=\"6.6\" height=\"6.6\"/>",
            x - 3.3,
            y - 3.3
        ),
        _ => format!("<path class=\"mark\" d=\"M{:.1} {:.1}l4.2 7.4h-8.4z\"/>", x, y - 4.6),
    }
}

/// A text within HTML, in an attribute too.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        let series = vec![Series { name: "a < b".into(), hue: 0, mark: 0, points }];
        Chart { title: "a test".into(), unit: Unit::Microseconds, series, band: Vec::new() }
    }

    #[test]
    fn greater_values_stand_higher_and_wider_rows_further_right() {
        let scale = Scale::around([8.0, 180.0].into_iter(), (100.0, 1e7)).unwrap();
        assert!(scale.low < 8.0 && scale.high > 180.0);
        assert!(scale.y(180.0) < scale.y(8.0) && scale.y(180.0) > TOP && scale.y(8.0) < HEIGHT - BOTTOM);
        assert!(scale.x(100.0) > LEFT && scale.x(1e7) < WIDTH - RIGHT && scale.x(1e3) < scale.x(1e4));
    }

    #[test]
    fn a_single_row_has_its_place() {
        let svg = chart(vec![(100.0, 8.13)]).svg();
        assert!(svg.contains("<circle") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn a_picture_names_its_points_and_escapes_what_it_names() {
        let svg = chart(vec![(100.0, 8.13), (1e7, 9.2)]).svg();
        assert!(svg.contains("a &lt; b: 8.13 µs of 100 columns"), "{svg}");
        assert_eq!(svg.matches("data-tip").count(), 2);
    }

    #[test]
    fn without_values_there_is_no_picture() {
        assert_eq!(chart(Vec::new()).svg(), "");
        assert_eq!(chart(vec![(100.0, 0.0)]).svg(), "");
    }
}
