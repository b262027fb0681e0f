//! An axis of a chart: its range, the position of each value, and its labels.

/// A logarithmic axis whose ends have a greater ratio than this has labels only at powers of ten.
const CROWDED: f64 = 2e3;

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
    /// The title, written below the chart; empty if the caption contains it.
    pub title: String,
    /// The grid lines of the axis.
    pub ticks: Vec<Tick>,
}

/// A grid line.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The value.
    pub at: f64,
    /// The label, if any.
    pub label: Option<String>,
    /// Whether the line is drawn fainter than others.
    pub is_faint: bool,
}

/// The values 1, 2, 5, 10, 20 and so on, from the power of ten at or below `from`.
fn steps(from: f64) -> impl Iterator<Item = f64> {
    let first = from.log10().floor() as i32;
    (first..first + 20).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
}

impl Axis {
    /// A logarithmic axis that ends at steps of 1, 2, 5 around the values above zero. Its end is at least `span` times
    /// the least value, because a narrower axis would show noise as a curve. `None` without a value above zero.
    pub fn logarithmic(
        values: impl Iterator<Item = f64>,
        span: f64,
        label: impl Fn(f64) -> String,
    ) -> Option<Axis> {
        let (mut low, mut high) = (f64::MAX, 0.0_f64);
        for value in values.filter(|value| *value > 0.0) {
            (low, high) = (low.min(value), high.max(value));
        }
        if high == 0.0 {
            return None;
        }
        let low = steps(low / 10.0).take_while(|step| *step <= low * 0.9).last().unwrap_or(low);
        let high = (high * 1.1).max(low * span);
        let high = steps(high / 10.0).find(|step| *step >= high).unwrap_or(high);
        let is_crowded = high / low > CROWDED;
        let ticks = steps(low)
            .skip_while(|step| *step < low * 0.999)
            .take_while(|step| *step <= high * 1.001)
            .map(|step| {
                let is_power = (step.log10() - step.log10().round()).abs() < 1e-9;
                let label = (is_power || !is_crowded).then(|| label((step * 1e6).round() / 1e6));
                Tick { at: step, label, is_faint: !is_power }
            })
            .collect();
        Some(Axis { low, high, is_log: true, title: String::new(), ticks })
    }

    /// A linear axis from 0 to a round number at or above `most`, with about five lines.
    pub fn from_zero(most: f64, label: impl Fn(f64) -> String) -> Axis {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = steps(most / 100.0).find(|step| most / step <= 6.0).unwrap_or(most);
        let count = (most / step).ceil().max(1.0);
        let ticks = (0..=count as u32)
            .map(|number| step * f64::from(number))
            .map(|at| Tick { at, label: Some(label(at)), is_faint: at > 0.0 })
            .collect();
        Axis { low: 0.0, high: step * count, is_log: false, title: String::new(), ticks }
    }

    /// A linear axis from 0 to exactly `most`, with the labels of `from_zero`.
    pub fn until(most: f64, label: impl Fn(f64) -> String) -> Axis {
        let mut axis = Axis::from_zero(most, label);
        axis.high = most.max(f64::MIN_POSITIVE);
        axis.ticks.retain(|tick| tick.at <= most * 1.000_001);
        axis
    }

    /// A logarithmic axis with lines only at these values, each with its label.
    pub fn places(places: impl Iterator<Item = (f64, String)>) -> Axis {
        let ticks: Vec<Tick> =
            places.map(|(at, label)| Tick { at, label: Some(label), is_faint: true }).collect();
        let values = || ticks.iter().map(|tick| tick.at);
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
        Axis { low, high, is_log: true, title: String::new(), ticks }
    }

    /// The same axis with a title.
    pub fn titled(mut self, title: &str) -> Axis {
        title.clone_into(&mut self.title);
        self
    }

    /// The position of a value on the axis, from 0 to 1. If the axis has a single value, its position is the middle.
    pub fn share(&self, value: f64) -> f64 {
        if self.low >= self.high {
            return 0.5;
        }
        if self.is_log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_spans_its_values_in_whole_steps() {
        let axis = Axis::logarithmic([8.0, 180.0].into_iter(), 40.0, |step| step.to_string()).unwrap();
        assert_eq!((axis.low, axis.high), (5.0, 200.0));
        assert!(axis.share(8.0) > 0.0 && axis.share(180.0) < 1.0 && axis.share(8.0) < axis.share(9.0));
        assert_eq!(axis.ticks.len(), 6);
        assert!(Axis::logarithmic([0.0].into_iter(), 40.0, |_| String::new()).is_none());
    }

    #[test]
    fn a_linear_axis_begins_at_zero_and_ends_above_its_greatest_value() {
        for most in [0.3, 7.0, 123_456.0, 1e7, 0.0] {
            let axis = Axis::from_zero(most, |at| at.to_string());
            assert!(axis.high >= most && (2..=7).contains(&axis.ticks.len()), "{most}: {axis:?}");
        }
        assert_eq!(Axis::until(9.5, |at| at.to_string()).share(9.5), 1.0);
    }

    #[test]
    fn a_single_place_stands_in_the_middle() {
        assert_eq!(Axis::places([(100.0, String::new())].into_iter()).share(100.0), 0.5);
    }
}
