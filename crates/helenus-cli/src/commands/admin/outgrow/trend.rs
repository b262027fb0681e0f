//! The trend of a figure: the line of least squares through its history.

use serde::Serialize;

/// Seconds of a day.
pub const DAY_S: f64 = 86_400.0;
/// A history that is shorter shows no trend: the hours of one day differ too much.
const HISTORY_S_MIN: f64 = DAY_S;
/// With fewer points a line says nothing.
const POINTS_MIN: usize = 12;

/// A line through the history of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// The change of the figure in a day.
    pub per_day: f64,
    /// The part of the figure's variance that the line explains, 0 to 1.
    pub fit: f64,
    /// Days of history.
    pub days: f64,
}

impl Trend {
    /// The trend of points (seconds, figure); `None` if the history is too short.
    pub fn of(points: &[(i64, f64)]) -> Option<Trend> {
        let (first, last) = (points.first()?.0, points.last()?.0);
        let history_s = (last - first) as f64;
        if points.len() < POINTS_MIN || history_s < HISTORY_S_MIN {
            return None;
        }
        let count = points.len() as f64;
        let days = |time_s: i64| (time_s - first) as f64 / DAY_S;
        let mean_x = points.iter().map(|point| days(point.0)).sum::<f64>() / count;
        let mean_y = points.iter().map(|point| point.1).sum::<f64>() / count;
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for (time_s, figure) in points {
            let (x, y) = (days(*time_s) - mean_x, figure - mean_y);
            (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
        }
        if xx <= 0.0 {
            return None;
        }
        let fit = if yy <= f64::EPSILON { 1.0 } else { (xy * xy / (xx * yy)).clamp(0.0, 1.0) };
        Some(Trend { per_day: xy / xx, fit, days: history_s / DAY_S })
    }

    /// Days until the figure, now `present`, reaches `bound`. 0 if it is there, `None` if it does not grow.
    pub fn days_until(&self, present: f64, bound: f64) -> Option<f64> {
        if present >= bound {
            return Some(0.0);
        }
        (self.per_day > 0.0).then(|| (bound - present) / self.per_day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_S: i64 = 3600;

    #[test]
    fn a_line_with_noise_is_found_and_reaches_its_bound() {
        // 24 units a day, with a swing over the day.
        let figure =
            |hour: i64| 100.0 + hour as f64 + 5.0 * (hour as f64 * std::f64::consts::TAU / 24.0).sin();
        let points: Vec<(i64, f64)> = (0..240).map(|hour| (hour * HOUR_S, figure(hour))).collect();
        let trend = Trend::of(&points).unwrap();
        assert!((trend.per_day - 24.0).abs() < 1.0, "{trend:?}");
        assert!(trend.fit > 0.99);
        let days = trend.days_until(340.0, 580.0).unwrap();
        assert!((days - 10.0).abs() < 0.5, "{days}");
        assert_eq!(trend.days_until(600.0, 580.0), Some(0.0));
    }

    #[test]
    fn a_short_or_flat_or_falling_history_has_no_end() {
        let points = |hours: i64, slope: f64| -> Vec<(i64, f64)> {
            (0..hours).map(|hour| (hour * HOUR_S, 100.0 + slope * hour as f64)).collect()
        };
        assert_eq!(Trend::of(&[]), None);
        assert_eq!(Trend::of(&points(20, 1.0)), None);
        assert_eq!(Trend::of(&vec![(5, 1.0); 100]), None);
        let flat = Trend::of(&points(100, 0.0)).unwrap();
        assert_eq!(flat.days_until(100.0, 200.0), None);
        let falling = Trend::of(&points(100, -1.0)).unwrap();
        assert_eq!(falling.days_until(100.0, 200.0), None);
    }
}
