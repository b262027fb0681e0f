//! A chart as SVG: lines over two axes.

use super::{Axis, escape};
use std::fmt::Write;

/// The size of the chart in SVG units; the page scales it.
const WIDTH: f64 = 680.0;
const HEIGHT: f64 = 400.0;
/// Margins for the labels.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 52.0;
/// Distance between the frame and the first and last value of the horizontal axis.
const INSET: f64 = 14.0;
/// The maximum number of points of a line with marks. More marks would hide the line.
const MARKED: usize = 12;

/// A point of a line.
#[derive(Clone, Debug)]
pub struct Point {
    /// The value on the horizontal axis.
    pub x: f64,
    /// The value on the vertical axis.
    pub y: f64,
    /// The text of the tooltip.
    pub tip: String,
}

/// A line of the chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The number of the colour.
    pub hue: usize,
    /// The number of the mark.
    pub mark: usize,
    /// The points from left to right.
    pub points: Vec<Point>,
}

/// An area behind the lines.
#[derive(Clone, Debug)]
pub struct Band {
    /// The name in the legend.
    pub name: String,
    /// Each point: value on the horizontal axis, lower and upper value.
    pub points: Vec<(f64, f64, f64)>,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// A description for screen readers.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// The area behind the lines.
    pub band: Option<Band>,
}

impl Chart {
    /// The chart as SVG.
    pub fn svg(&self) -> String {
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escape(&self.title)
        );
        self.axes(&mut svg);
        self.band(&mut svg);
        for (number, series) in self.series.iter().enumerate() {
            self.line(number, series, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + INSET + self.x.share(value) * (WIDTH - LEFT - RIGHT - 2.0 * INSET)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.share(value)) * (HEIGHT - TOP - BOTTOM)
    }

    fn axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let class = |is_faint: bool| if is_faint { "grid faint" } else { "grid" };
        for tick in &self.y.ticks {
            let (y, class) = (self.y(tick.at), class(tick.is_faint));
            let _ = writeln!(
                svg,
                "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            );
            if let Some(label) = &tick.label {
                let (x, y) = (LEFT - 8.0, y + 4.0);
                let _ = writeln!(
                    svg,
                    "<text class=\"tick\" x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>"
                );
            }
        }
        let mut labels = 0;
        for tick in &self.x.ticks {
            let (x, class, below) = (self.x(tick.at), class(tick.is_faint), bottom + 18.0);
            let _ = writeln!(
                svg,
                "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"
            );
            if let Some(label) = &tick.label {
                // Narrow screens show every second label, in larger letters.
                let spare = if labels % 2 == 1 && self.x.ticks.len() > 4 { " spare" } else { "" };
                labels += 1;
                let _ = writeln!(
                    svg,
                    "<text class=\"tick{spare}\" x=\"{x:.1}\" y=\"{below}\" text-anchor=\"middle\">{label}</text>"
                );
            }
        }
        let (middle, below, title) = ((LEFT + right) / 2.0, HEIGHT - 10.0, escape(&self.x.title));
        let _ = writeln!(
            svg,
            "<text class=\"axis\" x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{title}</text>"
        );
    }

    fn band(&self, svg: &mut String) {
        let Some(band) = &self.band else { return };
        let upper = band.points.iter().map(|(x, _, high)| (*x, *high));
        let lower = band.points.iter().rev().map(|(x, low, _)| (*x, *low));
        let points: Vec<String> =
            upper.chain(lower).map(|(x, y)| format!("{:.1},{:.1}", self.x(x), self.y(y))).collect();
        let _ = writeln!(svg, "<polygon class=\"band\" points=\"{}\"/>", points.join(" "));
        if let Some((x, low, high)) = band.points.last() {
            let (x, y, name) = (self.x(*x) - 8.0, self.y((low * high).sqrt()) + 4.0, escape(&band.name));
            let _ = writeln!(
                svg,
                "<text class=\"then\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{name}</text>"
            );
        }
    }

    fn line(&self, number: usize, series: &Series, svg: &mut String) {
        let place = |point: &Point| format!("{:.1},{:.1}", self.x(point.x), self.y(point.y));
        let path: Vec<String> = series.points.iter().map(place).collect();
        let _ = writeln!(svg, "<g class=\"series c{}\" data-series=\"{number}\">", series.hue);
        let _ = writeln!(svg, "<polyline points=\"{}\"/>", path.join(" "));
        let is_marked = series.points.len() <= MARKED;
        for point in &series.points {
            let (x, y) = (self.x(point.x), self.y(point.y));
            let mark = if is_marked { mark(series.mark, x, y) } else { String::new() };
            let (tip, reach) = (escape(&point.tip), if is_marked { 9 } else { 6 });
            let _ = writeln!(
                svg,
                "<g data-tip=\"{tip}\">{mark}<circle class=\"reach\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{reach}\"/></g>"
            );
        }
        svg.push_str("</g>\n");
    }
}

/// A line's sample in the legend, as an SVG of its own.
pub fn key(series: &Series) -> String {
    let mark = if series.points.len() <= MARKED { mark(series.mark, 14.0, 6.0) } else { String::new() };
    format!(
        "<svg class=\"key series c{}\" viewBox=\"0 0 28 12\" aria-hidden=\"true\"><polyline points=\"1,6 27,6\"/>{mark}</svg>",
        series.hue
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

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)]) -> Chart {
        let point = |(x, y): &(f64, f64)| Point { x: *x, y: *y, tip: format!("a < b: {y}") };
        let series = vec![Series {
            name: "a < b".into(),
            hue: 0,
            mark: 0,
            points: points.iter().map(point).collect(),
        }];
        Chart {
            title: "a test".into(),
            x: Axis::places(points.iter().map(|(x, _)| (*x, x.to_string()))),
            y: Axis::from_zero(10.0, |at| at.to_string()),
            series,
            band: None,
        }
    }

    #[test]
    fn greater_values_stand_higher_and_later_ones_further_right() {
        let chart = chart(&[(100.0, 1.0), (1e7, 9.0)]);
        assert!(chart.y(9.0) < chart.y(1.0) && chart.y(9.0) > TOP && chart.y(1.0) < HEIGHT - BOTTOM);
        assert!(chart.x(100.0) > LEFT && chart.x(1e7) < WIDTH - RIGHT && chart.x(1e3) < chart.x(1e4));
    }

    #[test]
    fn a_single_point_has_its_place() {
        let svg = chart(&[(100.0, 8.13)]).svg();
        assert!(svg.contains("<circle") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn a_picture_names_its_points_and_escapes_what_it_names() {
        let svg = chart(&[(100.0, 8.13), (1e7, 9.2)]).svg();
        assert!(svg.contains("a &lt; b: 8.13"), "{svg}");
        assert_eq!(svg.matches("data-tip").count(), 2);
    }
}
