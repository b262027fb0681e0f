//! `--report`: runs as one HTML page with a section for each test: throughput and latency over time, the distribution
//! of latencies, and a table of all results.

use super::run_result::{RunResult, Second};
use super::table::{difference, micros, notes, span, whole};
use crate::commands::numbers::{grouped, times, utc};
use crate::commands::page::{Axis, Chart, Document, Point, Series, escape, key};
use std::fmt::Write;

/// Maximum number of points of a line. Each point of a long run stands for several seconds.
const POINTS: usize = 240;
/// The axis of latencies over time ends at this multiple of its least value or above.
const SPAN: f64 = 10.0;

/// The complete page.
pub(super) fn html(runs: &[RunResult]) -> String {
    let title = match runs {
        [only] => only.title(),
        [first, ..] if runs.iter().all(|run| run.host == first.host) => format!("Load on {}", first.host),
        _ => "Load".to_owned(),
    };
    let lead = match runs {
        [only] => format!(
            "{} requests in {:.1} s over {} connections with {} in flight{}. Every answer was checked.",
            grouped(only.operations),
            only.seconds,
            only.connections,
            only.in_flight,
            only.rate
                .map(|rate| format!(
                    ", {} a second asked for; latencies count from the moment a request was due",
                    whole(rate.asked_per_s)
                ))
                .unwrap_or_default()
        ),
        _ => {
            "The same work over several interfaces, one after the other. Every answer was checked.".to_owned()
        }
    };
    let mut body = String::new();
    if let [only] = runs {
        tiles(only, &mut body);
    }
    let mut done: Vec<&str> = Vec::new();
    for run in runs {
        if !done.contains(&run.workload.as_str()) {
            done.push(&run.workload);
            let of_test: Vec<&RunResult> =
                runs.iter().filter(|other| other.workload == run.workload).collect();
            section(&of_test, runs.len() > 1, &mut body);
        }
    }
    footer(runs, &mut body);
    Document { over: "helenus stress", title: &title, lead, body }.html()
}

/// The most important results, in large type.
fn tiles(run: &RunResult, body: &mut String) {
    body.push_str("<div class=\"tiles\">\n");
    let latency = run.latency_us;
    for (figure, text) in [
        (whole(run.ops_per_s), "requests a second on average"),
        (span(latency.mean), "average latency"),
        (span(latency.p99), "99 of 100 requests took no longer"),
        (grouped(run.error_count()), "answers that were not right"),
    ] {
        let _ = writeln!(body, "<div class=\"tile\"><b>{figure}</b><span>{text}</span></div>");
    }
    body.push_str("</div>\n");
}

/// The name of a run among the runs of its test.
fn name(run: &RunResult, all: &[&RunResult]) -> String {
    let is_twice = all.iter().filter(|other| other.interface == run.interface).count() > 1;
    match &run.label {
        Some(label) => label.clone(),
        None if is_twice => {
            let place = all.iter().filter(|other| other.interface == run.interface);
            let number = place.take_while(|other| !std::ptr::eq(**other, run)).count() + 1;
            format!("{}, run {number}", run.interface.title())
        }
        None => run.interface.title().to_owned(),
    }
}

fn section(runs: &[&RunResult], is_one_of_many: bool, body: &mut String) {
    let Some(first) = runs.first() else { return };
    let title = if is_one_of_many { first.workload.as_str() } else { "Over time" };
    let _ = writeln!(body, "<section>\n<h2>{}</h2>", escape(title));
    for run in runs {
        for note in notes(run) {
            let _ = writeln!(
                body,
                "<p class=\"loud\"><b>{}</b>: {}</p>",
                escape(&name(run, runs)),
                escape(&note)
            );
        }
    }
    let pictures = match runs {
        [only] => [
            ("Requests a second", throughput(runs)),
            ("Latency over time", latency_of_one(only)),
            ("How many requests took how long", histogram(runs)),
            ("Latency by quantile", quantiles(runs)),
        ],
        _ => [
            ("Requests a second", throughput(runs)),
            ("99th percentile of the latency over time", latency_of_many(runs)),
            ("How many requests took how long", histogram(runs)),
            ("Latency by quantile", quantiles(runs)),
        ],
    };
    body.push_str("<div class=\"pictures\">\n");
    for (caption, chart) in pictures {
        let Some(chart) = chart else { continue };
        let _ = writeln!(body, "<figure><figcaption>{caption}</figcaption>\n{}", chart.svg());
        // A chart with other lines than the section's legend has a legend of its own.
        if runs.len() == 1 && chart.series.len() > 1 {
            legend(&chart.series, body);
        }
        body.push_str("</figure>\n");
    }
    body.push_str("</div>\n");
    body.push_str(
        "<p class=\"note\">Latency is the time from a request to its answer. p50: half of the requests took no longer; p99: 99 of \
         100; p99.9: 999 of 1,000.</p>\n",
    );
    if runs.len() > 1 {
        let lines = runs.iter().enumerate().map(|(hue, run)| Series {
            name: name(run, runs),
            hue,
            mark: hue,
            points: Vec::new(),
        });
        legend(&lines.collect::<Vec<_>>(), body);
    }
    table(runs, body);
    body.push_str("</section>\n");
}

fn legend(series: &[Series], body: &mut String) {
    body.push_str("<ul class=\"legend\">\n");
    for (number, one) in series.iter().enumerate() {
        let _ = writeln!(body, "<li data-series=\"{number}\">{}{}</li>", key(one), escape(&one.name));
    }
    body.push_str("</ul>\n");
}

/// The seconds of a run. Several seconds are merged if there are many: the mean of rates, the maximum of latencies.
fn steps(run: &RunResult) -> Vec<Second> {
    let together = run.series.len().div_ceil(POINTS).max(1);
    run.series
        .chunks(together)
        .filter_map(|chunk| {
            let mut one = *chunk.last()?;
            one.ops_per_s = chunk.iter().map(|second| second.ops_per_s).sum::<f64>() / chunk.len() as f64;
            one.errors = chunk.iter().map(|second| second.errors).sum();
            for second in chunk {
                let (worst, other) = (&mut one.latency_us, second.latency_us);
                for (worst, other) in [
                    (&mut worst.p50, other.p50),
                    (&mut worst.p95, other.p95),
                    (&mut worst.p99, other.p99),
                    (&mut worst.p999, other.p999),
                    (&mut worst.max, other.max),
                ] {
                    *worst = worst.max(other);
                }
            }
            Some(one)
        })
        .collect()
}

fn time_axis(runs: &[&RunResult]) -> Axis {
    let end = runs.iter().filter_map(|run| run.series.last()).map(|second| second.at_s).fold(0.0, f64::max);
    let label = |at: f64| format!("{} s", (at * 10.0).round() / 10.0);
    Axis::until(end, label).titled("seconds since the measurement began")
}

fn throughput(runs: &[&RunResult]) -> Option<Chart> {
    let series: Vec<Series> = runs
        .iter()
        .enumerate()
        .map(|(hue, run)| {
            let name = name(run, runs);
            let point = |second: Second| Point {
                x: second.at_s,
                y: second.ops_per_s,
                tip: format!("{name}: {}/s at {:.0} s", whole(second.ops_per_s), second.at_s),
            };
            Series { points: steps(run).into_iter().map(point).collect(), name, hue, mark: hue }
        })
        .collect();
    let most = most(&series);
    (most > 0.0).then(|| Chart {
        title: "Requests a second over time".into(),
        x: time_axis(runs),
        y: Axis::from_zero(most, thousands),
        series,
        band: None,
    })
}

fn most(series: &[Series]) -> f64 {
    series.iter().flat_map(|series| &series.points).map(|point| point.y).fold(0.0, f64::max)
}

fn thousands(at: f64) -> String {
    match at {
        at if at >= 1e6 => format!("{}M", (at / 1e4).round() / 100.0),
        at if at >= 1e4 => format!("{}k", (at / 100.0).round() / 10.0),
        at => grouped(at.round() as u64),
    }
}

/// The label of a latency at an axis.
fn latency_label(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", us / 1e6),
        us if us >= 1e3 => format!("{} ms", us / 1e3),
        us => format!("{us} µs"),
    }
}

/// Several quantiles of one run over time.
fn latency_of_one(run: &RunResult) -> Option<Chart> {
    type Pick = fn(&Second) -> f64;
    let lines: [(&str, Pick); 4] = [
        ("p50", |second| second.latency_us.p50),
        ("p99", |second| second.latency_us.p99),
        ("p99.9", |second| second.latency_us.p999),
        ("max", |second| second.latency_us.max),
    ];
    let steps = steps(run);
    let series = lines.into_iter().enumerate().map(|(hue, (name, pick))| {
        let point = |second: &Second| Point {
            x: second.at_s,
            y: pick(second),
            tip: format!("{name}: {} at {:.0} s", span(pick(second)), second.at_s),
        };
        let points = steps.iter().filter(|second| second.operations > 0).map(point).collect();
        Series { name: name.into(), hue, mark: hue, points }
    });
    latencies("Latency over time", time_axis(&[run]), series.collect())
}

/// One quantile of several runs over time.
fn latency_of_many(runs: &[&RunResult]) -> Option<Chart> {
    let series = runs.iter().enumerate().map(|(hue, run)| {
        let name = name(run, runs);
        let point = |second: Second| {
            let p99 = second.latency_us.p99;
            Point { x: second.at_s, y: p99, tip: format!("{name}: {} at {:.0} s", span(p99), second.at_s) }
        };
        let points = steps(run).into_iter().filter(|second| second.operations > 0).map(point).collect();
        Series { name, hue, mark: hue, points }
    });
    latencies("99th percentile of the latency over time", time_axis(runs), series.collect())
}

fn latencies(title: &str, x: Axis, series: Vec<Series>) -> Option<Chart> {
    let values = series.iter().flat_map(|series| &series.points).map(|point| point.y);
    let y = Axis::logarithmic(values, SPAN, latency_label)?;
    Some(Chart { title: title.into(), x, y, series, band: None })
}

/// The shares of requests by latency.
fn histogram(runs: &[&RunResult]) -> Option<Chart> {
    let series: Vec<Series> = runs
        .iter()
        .enumerate()
        .map(|(hue, run)| {
            let name = name(run, runs);
            let all = run.operations.max(1) as f64;
            let point = |(upper, count): &(f64, u64)| {
                let percent = *count as f64 * 100.0 / all;
                let tip = format!("{name}: {percent:.2} % took about {}, {}", span(*upper), grouped(*count));
                Point { x: *upper, y: percent, tip }
            };
            Series { points: run.histogram.iter().map(point).collect(), name, hue, mark: hue }
        })
        .collect();
    let values = series.iter().flat_map(|series| &series.points).map(|point| point.x);
    let x = Axis::logarithmic(values, SPAN, latency_label)?.titled("latency");
    let y = Axis::from_zero(most(&series), |at| format!("{at} %"));
    Some(Chart { title: "Share of requests by latency".into(), x, y, series, band: None })
}

/// Latencies by quantile, for quantiles that approach 1.
fn quantiles(runs: &[&RunResult]) -> Option<Chart> {
    let series: Vec<Series> = runs
        .iter()
        .enumerate()
        .map(|(hue, run)| {
            let name = name(run, runs);
            let point = |(quantile, us): &(f64, f64)| {
                let percent = format!("{:.4}", quantile * 100.0);
                let percent = percent.trim_end_matches('0').trim_end_matches('.');
                let tip = format!("{name}: {percent} % took at most {}", span(*us));
                Point { x: 1.0 / (1.0 - quantile), y: *us, tip }
            };
            let points: Vec<Point> =
                run.spectrum.iter().filter(|(quantile, _)| *quantile >= 0.4).map(point).collect();
            Series { points, name, hue, mark: hue }
        })
        .collect();
    let end = series.iter().flat_map(|series| &series.points).map(|point| point.x).fold(2.0, f64::max);
    let places = [
        (2.0, "50 %"),
        (10.0, "90 %"),
        (100.0, "99 %"),
        (1e3, "99.9 %"),
        (1e4, "99.99 %"),
        (1e5, "99.999 %"),
        (1e6, "99.9999 %"),
    ];
    let places = places.into_iter().filter(|(at, _)| *at <= end * 1.01);
    let mut x: Vec<(f64, String)> = places.map(|(at, label)| (at, label.to_owned())).collect();
    if x.last().is_some_and(|(at, _)| *at < end) {
        x.push((end, String::new()));
    }
    let x = Axis::places(x.into_iter()).titled("share of requests that took no longer");
    latencies("Latency by quantile", x, series)
}

fn table(runs: &[&RunResult], body: &mut String) {
    body.push_str(
        "<div class=\"scroll\"><table>\n<thead><tr><th></th><th></th><th>ops/s</th><th>rows/s</th><th>mean</th><th>p50</th>\
         <th>p95</th><th>p99</th><th>p99.9</th><th>max</th><th>errors</th><th>client, µs/op</th><th>server, µs/op</th></tr>\
         </thead>\n<tbody>\n",
    );
    let first = runs.first().map(|run| run.ops_per_s).filter(|_| runs.len() > 1);
    for (number, run) in runs.iter().enumerate() {
        let than = first.filter(|_| number > 0).map(|first| difference(run.ops_per_s, first));
        let _ = write!(
            body,
            "<tr><th>{}</th><td>{}</td><td><b>{}</b></td><td>{}</td>",
            escape(&name(run, runs)),
            than.unwrap_or_default(),
            whole(run.ops_per_s),
            whole(run.rows_per_s)
        );
        for (_, us) in run.latency_us.named() {
            let _ = write!(body, "<td>{}</td>", micros(us));
        }
        let server = run.server.map_or("-".into(), |server| format!("{:.2}", server.cpu_us_per_op));
        let _ = writeln!(
            body,
            "<td>{}</td><td>{:.2}</td><td>{server}</td></tr>",
            grouped(run.error_count()),
            run.client_cpu_us_per_op
        );
        for statement in &run.statements {
            let _ = write!(
                body,
                "<tr><td class=\"row\">{}</td><td></td><td>{}</td><td></td>",
                escape(&statement.name),
                whole(statement.ops_per_s)
            );
            for (_, us) in statement.latency_us.named() {
                let _ = write!(body, "<td>{}</td>", micros(us));
            }
            body.push_str("<td></td><td></td><td></td></tr>\n");
        }
    }
    body.push_str("</tbody>\n</table></div>\n<p class=\"note\">Latencies in microseconds.</p>\n");
    for run in runs {
        for (kind, errors) in &run.errors {
            let _ = writeln!(
                body,
                "<p class=\"loud\"><b>{}</b>: {} {}, first: {}</p>",
                escape(&name(run, runs)),
                times(errors.count),
                escape(kind),
                escape(&errors.first)
            );
        }
    }
}

/// How the results were measured.
fn footer(runs: &[RunResult], body: &mut String) {
    let Some(run) = runs.first() else { return };
    body.push_str("<footer>\n<h2>How it was measured</h2>\n<p>");
    body.push_str(match run.rate {
        Some(_) => {
            "Requests were sent when they were due, whatever the server did; a request that had to wait for one before it \
             counts its wait."
        }
        None => {
            "Each answer was followed by the next request at once: latencies are those of a server under all the load that so \
             many requests in flight make, and a pause of it is seen by those in flight alone. A fixed rate (--rate) counts it \
             for all."
        }
    });
    body.push_str("</p>\n<dl>\n");
    let mut fact = |name: &str, text: String| {
        let _ = writeln!(body, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&text));
    };
    fact("server", format!("{}, {}", run.host, run.protocol));
    fact("connections", format!("{}, {} requests in flight", run.connections, run.in_flight));
    fact("client threads", run.threads.to_string());
    let busiest = runs.iter().map(|run| run.client.cpu_share).fold(0.0, f64::max);
    fact("client, of a core", format!("{:.0} % at most", busiest * 100.0));
    if let Some(server) = run.server {
        fact("server, resident memory", format!("{:.0} MiB", server.resident_mib));
    }
    fact("program", format!("helenus {}", run.program));
    fact("begun", utc(run.begun_s));
    fact("machine of the client", run.machine.clone());
    body.push_str("</dl>\n</footer>\n");
}

#[cfg(test)]
mod tests {
    use super::super::super::interface::Interface;
    use super::super::run_result::{Errors, Latency};
    use super::*;

    fn run(interface: Interface, seconds: u32) -> RunResult {
        let latency_us =
            Latency { mean: 300.0, p50: 250.0, p95: 400.0, p99: 900.0, p999: 2_000.0, max: 9_000.0 };
        let second = |at: u32| Second {
            at_s: f64::from(at + 1),
            operations: 1_000,
            ops_per_s: 1_000.0 + f64::from(at),
            latency_us,
            errors: 0,
        };
        RunResult {
            workload: "insert".into(),
            host: "127.0.0.1:9042".into(),
            interface,
            operations: 5_000,
            ops_per_s: 1_002.0,
            latency_us,
            series: (0..seconds).map(second).collect(),
            histogram: vec![(200.0, 1_000), (300.0, 4_000)],
            spectrum: vec![(0.0, 200.0), (0.5, 250.0), (0.9, 300.0), (0.999, 2_000.0)],
            ..RunResult::default()
        }
    }

    #[test]
    fn a_run_has_four_pictures_and_its_figures() {
        let mut run = run(Interface::Prepared, 5);
        run.errors.insert("OVERLOADED".into(), Errors { count: 2, first: "a <b>".into() });
        let html = html(&[run]);
        assert_eq!(html.matches("<figure>").count(), 4);
        assert!(html.contains("1,002") && html.contains("2 times OVERLOADED, first: a &lt;b&gt;"), "{html}");
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
        assert!(!html.contains("http"), "a page loads nothing");
    }

    #[test]
    fn runs_of_a_test_share_pictures_and_legend() {
        let html = html(&[run(Interface::Rpc, 3), run(Interface::Cql, 3)]);
        assert_eq!((html.matches("<section>").count(), html.matches("<figure>").count()), (1, 4));
        assert!(html.contains("Load on 127.0.0.1:9042") && html.contains(">RPC</li>"), "{html}");
    }

    #[test]
    fn long_runs_are_drawn_in_steps_and_empty_ones_without_pictures() {
        let hours = run(Interface::Cql, 10_000);
        assert!(steps(&hours).len() <= POINTS);
        assert!(!html(&[RunResult::default()]).contains("<figure>"));
    }
}
