//! The figures of a run, for people and for programs.

use super::cost::ServerUse;
use super::measure::Tally;
use serde_json::{Map, Value, json};

/// What a run has shown.
pub(super) struct Figures {
    pub name: String,
    pub address: String,
    /// `RPC`, or the version of the native protocol.
    pub protocol: String,
    pub connections: usize,
    pub in_flight: u32,
    /// From the first measured moment to the last answer.
    pub seconds: f64,
    pub client_cpu_s: f64,
    /// The server at the beginning and at the end.
    pub server: Option<(ServerUse, ServerUse)>,
    pub tally: Tally,
}

/// The quantiles reported, with their names.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

impl Figures {
    fn operations(&self) -> u64 {
        self.tally.latency.len()
    }

    fn rate(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    fn latency_us(&self, quantile: f64) -> f64 {
        self.tally.latency.value_at_quantile(quantile) as f64 / 1_000.0
    }

    /// Microseconds an operation. Wrong answers cost as much as right ones.
    fn per_operation(&self, cpu_s: f64) -> f64 {
        let answers = self.operations() + self.tally.fault_count();
        if answers == 0 { 0.0 } else { cpu_s * 1e6 / answers as f64 }
    }

    fn answers_per_read(&self) -> f64 {
        let answers = self.operations() + self.tally.fault_count();
        if self.tally.reads == 0 { 0.0 } else { answers as f64 / self.tally.reads as f64 }
    }

    /// Two lines a person compares with those of another run, and what there is to say besides.
    pub fn table(&self) -> String {
        let mut columns: Vec<(String, String)> = vec![
            ("ops/s".into(), grouped(self.rate(self.operations()))),
            ("rows/s".into(), grouped(self.rate(self.tally.rows))),
        ];
        columns.extend(
            QUANTILES.iter().map(|(name, at)| (format!("{name} us"), grouped_tenths(self.latency_us(*at)))),
        );
        columns.push(("errors".into(), self.tally.fault_count().to_string()));
        columns.push(("client us/op".into(), format!("{:.2}", self.per_operation(self.client_cpu_s))));
        if let Some((before, after)) = &self.server {
            let cpu = self.per_operation(after.cpu_s - before.cpu_s);
            columns.push(("server us/op".into(), format!("{cpu:.2}")));
            columns.push(("RSS MiB".into(), format!("{:.0}", after.resident_mib)));
        }
        let width = |(name, figure): &(String, String)| name.len().max(figure.len());
        let line = |pick: fn(&(String, String)) -> &String| {
            let cells = columns.iter().map(|column| format!("{:>1$}", pick(column), width(column)));
            cells.collect::<Vec<_>>().join("  ")
        };
        let mut text = format!(
            "{} on {}, {}, {} connections, {} in flight, {} operations in {:.2} s, {:.1} answers a read\n",
            self.name,
            self.address,
            self.protocol,
            self.connections,
            self.in_flight,
            grouped(self.operations() as f64),
            self.seconds,
            self.answers_per_read(),
        );
        text.push_str(&line(|(name, _)| name));
        text.push('\n');
        text.push_str(&line(|(_, figure)| figure));
        for (kind, fault) in &self.tally.faults {
            text.push_str(&format!("\n{} times {kind}, first: {}", fault.count, fault.first));
        }
        text
    }

    /// The same as one JSON object.
    pub fn json(&self) -> Value {
        let quantiles: Map<String, Value> =
            QUANTILES.iter().map(|(name, at)| ((*name).to_owned(), json!(self.latency_us(*at)))).collect();
        let faults: Map<String, Value> = self
            .tally
            .faults
            .iter()
            .map(|(kind, fault)| (kind.clone(), json!({"count": fault.count, "first": fault.first})))
            .collect();
        let server = self.server.map(|(before, after)| {
            json!({
                "cpu_us_per_op": self.per_operation(after.cpu_s - before.cpu_s),
                "cpu_s": after.cpu_s - before.cpu_s,
                "resident_mib": after.resident_mib,
                "resident_peak_mib": after.resident_peak_mib,
            })
        });
        json!({
            "workload": self.name,
            "host": self.address,
            "protocol": self.protocol,
            "connections": self.connections,
            "in_flight": self.in_flight,
            "operations": self.operations(),
            "rows": self.tally.rows,
            "seconds": self.seconds,
            "ops_per_s": self.rate(self.operations()),
            "rows_per_s": self.rate(self.tally.rows),
            "latency_us": quantiles,
            "answers_per_read": self.answers_per_read(),
            "errors": faults,
            "client_cpu_us_per_op": self.per_operation(self.client_cpu_s),
            "server": server,
        })
    }
}

/// A whole number with commas.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The same with a tenth where it says something.
fn grouped_tenths(number: f64) -> String {
    if number < 1_000.0 { format!("{number:.1}") } else { grouped(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(
            [0.0, 12.0, 999.0, 1_000.0, 1_234_567.4].map(grouped),
            ["0", "12", "999", "1,000", "1,234,567"]
        );
        assert_eq!([3.06, 1_500.0].map(grouped_tenths), ["3.1", "1,500"]);
    }
}
