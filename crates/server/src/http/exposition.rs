//! Writes Prometheus's text format, version 0.0.4.
//!
//! It is written by hand, because Cassandra's exporter uses counters without `_total` and summaries with quantiles,
//! which libraries of the newer OpenMetrics format do not write (docs/decisions/2026-11-22-metrics-and-logs.md).

use std::fmt::Write;

use helenus_engine::Distribution;

/// The type of a family of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Summary => "summary",
        }
    }
}

/// Labels of a sample: names and values.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// The quantiles of summaries, as in Cassandra's own exporters.
const QUANTILES: [(&str, f64); 6] =
    [("0.5", 0.5), ("0.75", 0.75), ("0.95", 0.95), ("0.98", 0.98), ("0.99", 0.99), ("0.999", 0.999)];

/// A page that is being written. The samples of a family follow its head, which occurs once in a page.
#[derive(Default)]
pub(super) struct Page {
    text: String,
    /// The labels that every sample has, formatted, without braces.
    common: String,
}

impl Page {
    /// Sets the labels that every following sample has.
    pub fn set_common(&mut self, labels: Labels<'_>) {
        self.common.clear();
        put_labels(labels, &mut self.common);
    }

    /// Writes the head of a family.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        debug_assert!(!self.text.contains(&format!("# TYPE {name} ")), "one head a family: {name}");
        // Writing to a String cannot fail.
        let _ok = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
    }

    /// Writes one sample of a counter or gauge.
    pub fn sample(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        self.named(name, "", labels, None, value);
    }

    /// Writes a family of one sample.
    pub fn single(&mut self, name: &str, kind: Kind, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// Writes the samples of a histogram: for each bound, the number of measured events up to it. `unit`: the
    /// distribution's values for one unit of the family.
    pub fn histogram(
        &mut self,
        name: &str,
        labels: Labels<'_>,
        (distribution, bounds, unit): (&Distribution, &[u64], f64),
    ) {
        for (bound, count) in bounds.iter().zip(distribution.at_most(bounds)) {
            let end = number(*bound as f64 / unit);
            self.named(name, "_bucket", labels, Some(("le", &end)), count as f64);
        }
        self.named(name, "_bucket", labels, Some(("le", "+Inf")), distribution.measured as f64);
        self.named(name, "_sum", labels, None, distribution.sum as f64 / unit);
        self.named(name, "_count", labels, None, distribution.measured as f64);
    }

    /// Writes the samples of a summary: the quantiles of the measured events, if there are any, and the number of all
    /// events.
    pub fn summary(&mut self, name: &str, labels: Labels<'_>, (distribution, unit): (&Distribution, f64)) {
        let known = if distribution.measured > 0 { &QUANTILES[..] } else { &[] };
        for &(text, part) in known {
            let value = distribution.percentile(part) as f64 / unit;
            self.named(name, "", labels, Some(("quantile", text)), value);
        }
        self.named(name, "_count", labels, None, distribution.count as f64);
    }

    /// Returns the page.
    pub fn finish(self) -> String {
        self.text
    }

    fn named(
        &mut self,
        name: &str,
        suffix: &str,
        labels: Labels<'_>,
        last: Option<(&str, &str)>,
        value: f64,
    ) {
        self.text.push_str(name);
        self.text.push_str(suffix);
        let begin = self.text.len();
        self.text.push('{');
        self.text.push_str(&self.common);
        put_labels(labels, &mut self.text);
        if let Some(label) = last {
            put_labels(&[label], &mut self.text);
        }
        match self.text.ends_with(',') {
            true => {
                self.text.pop();
                self.text.push('}');
            }
            false => self.text.truncate(begin),
        }
        let _ok = writeln!(self.text, " {}", number(value));
    }
}

fn put_labels(labels: Labels<'_>, out: &mut String) {
    for (name, value) in labels {
        out.push_str(name);
        out.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                other => out.push(other),
            }
        }
        out.push_str("\",");
    }
}

/// Formats a number for Prometheus. Its parser, Go's, reads Rust's shortest form.
fn number(value: f64) -> String {
    if value.is_nan() { "NaN".to_owned() } else { format!("{value}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_carry_their_labels_escaped_and_the_common_ones() {
        let mut page = Page::default();
        page.single("up", Kind::Gauge, "Whether it is.", 1.0);
        page.set_common(&[("cluster", "a \"b\"\\")]);
        page.family("t", Kind::Counter, "Tables.");
        page.sample("t", &[("table", "x\ny")], 1.5);
        let expected = "# HELP up Whether it is.\n# TYPE up gauge\nup 1\n# HELP t Tables.\n# TYPE t counter\n\
                        t{cluster=\"a \\\"b\\\"\\\\\",table=\"x\\ny\"} 1.5\n";
        assert_eq!(page.finish(), expected);
    }

    #[test]
    fn a_histogram_ends_with_all_that_was_measured() {
        let events =
            Distribution { count: 160, measured: 10, sum: 5_000, buckets: vec![(0, 1), (10, 4), (1_000, 5)] };
        let mut page = Page::default();
        page.histogram("h", &[], (&events, &[10, 100], 1e3));
        let expected = "h_bucket{le=\"0.01\"} 5\nh_bucket{le=\"0.1\"} 5\nh_bucket{le=\"+Inf\"} 10\nh_sum 5\nh_count 10\n";
        assert_eq!(page.finish(), expected);
        let mut page = Page::default();
        page.summary("s", &[("k", "v")], (&events, 1.0));
        let text = page.finish();
        assert!(
            text.contains("s{k=\"v\",quantile=\"0.99\"} 1000\n") && text.ends_with("s_count{k=\"v\"} 160\n"),
            "{text}"
        );
    }
}
