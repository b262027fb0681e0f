//! `--report`: the results as one HTML page with curves: a summary, a section for each test with charts and a table,
//! and how to repeat the measurement.

use super::cases::{Case, Test};
use super::history;
use super::results::{AtSize, Latency, Measured, Profile};
use super::rows::ROWS;
use super::small_rows::data_size;
use crate::commands::numbers::{figure, grouped, mean, seconds, utc};
use crate::commands::page::{Axis, Band, Chart, Document, Point, Series, escape, key};
use crate::commands::stress::WideOrder as Order;
use std::fmt::Write;
use std::time::Duration;

/// The title and description of each test.
const SECTIONS: [(Test, &str, &str); 3] = [
    (
        Test::Names,
        "Columns by name",
        "A query names up to 100 columns: side by side in the row, or spread over 50 or 100 random pages of 1,310 \
         columns (64 KiB). Narrow rows have fewer pages and give fewer columns: up to a row of 100,000 \
         the lines of the random pages rise because the answers grow.",
    ),
    (
        Test::Start,
        "A slice from a start",
        "A query asks for 100 columns in order, from the beginning of the row or from a name. Where it starts and how \
         wide the row is should not matter. Half way through a row of 100 there are only 50.",
    ),
    (
        Test::Recent,
        "The most recent columns",
        "The last 100 columns: read backwards in the ascending table, forwards in the reversed one.",
    ),
];

/// The latency axis ends at this multiple of its least value or above.
const SPAN: f64 = 40.0;

/// The complete page.
pub(super) fn html(profile: &Profile) -> String {
    let mut body = tiles(profile);
    for (test, title, about) in SECTIONS {
        section(profile, (test, title, about), &mut body);
    }
    by_size(&profile.sizes, &mut body);
    footer(profile, &mut body);
    let lead = format!(
        "What a read costs {}. {} queries a point, each answer checked column by column; curves show the 80th percentile, \
         both axes are logarithmic.",
        widths(profile),
        grouped(profile.repeats)
    );
    let what = if profile.cases.is_empty() { "Rows by key" } else { "Wide rows" };
    let title = format!("{what}: {}", profile.subject);
    Document { over: "helenus profile", title: &title, lead, body }.html()
}

/// The range of the measured rows, in words.
fn widths(profile: &Profile) -> String {
    if profile.cases.is_empty() {
        return "as its table grows".into();
    }
    let widths = || profile.cases.iter().map(|measured| measured.width);
    match (widths().min().unwrap_or_default(), widths().max().unwrap_or_default()) {
        (least, most) if least < most => {
            format!("as its row grows from {} columns to {}", grouped(least), grouped(most))
        }
        (only, _) => format!("in a row of {} columns", grouped(only)),
    }
}

/// The most important results, in large type.
fn tiles(profile: &Profile) -> String {
    let mut tiles = String::new();
    let mut tile = |figure: String, text: String| {
        let _ = writeln!(tiles, "<div class=\"tile\"><b>{figure}</b><span>{text}</span></div>");
    };
    let find = |test: Test, id: &str| {
        let (_, rows) = profile.of_test(test).find(|(case, _)| case.id == id)?;
        Some((*rows.first()?, *rows.last()?))
    };
    let columns = |row: &Measured| format!("{} columns", grouped(row.width));
    for (test, id, what) in [
        (Test::Start, "half-way", "a slice of 100 from half way"),
        (Test::Recent, "by-count-ascending", "the 100 most recent, read backwards"),
        (Test::Names, "any-of-100", "100 names on 100 random pages"),
    ] {
        if let Some((_, widest)) = find(test, id) {
            let text = format!("{what}, row of {}", columns(widest));
            tile(format!("{} <small>µs</small>", figure(widest.latency_us.p80)), text);
        }
    }
    if let Some((narrow, wide)) = find(Test::Start, "first").filter(|(narrow, _)| narrow.latency_us.p80 > 0.0)
    {
        let growth = wide.latency_us.p80 / narrow.latency_us.p80;
        let text =
            format!("what a slice of the row of {} costs, in the row of {}", columns(narrow), columns(wide));
        tile(format!("{} <small>×</small>", figure(growth)), text);
    }
    if tiles.is_empty() { tiles } else { format!("<div class=\"tiles\">\n{tiles}</div>\n") }
}

fn section(profile: &Profile, (test, title, about): (Test, &str, &str), html: &mut String) {
    let cases: Vec<(&Case, Vec<&Measured>)> = profile.of_test(test).collect();
    if cases.is_empty() {
        return;
    }
    let _ = writeln!(html, "<section>\n<h2>{title}</h2>\n<p>{about}</p>");
    let latency = lines(&cases, test, &|row| {
        let p80 = row.latency_us.p80;
        Some((p80, format!("{} µs", figure(p80))))
    });
    let blocks = lines(&cases, test, &|row| {
        let blocks = row.touched?.blocks;
        Some((blocks, format!("{} blocks", mean(blocks))))
    });
    let band = band(&cases);
    html.push_str("<div class=\"pictures\">\n");
    for (series, unit, caption) in [
        (&latency, Unit::Microseconds, "Latency, 80th percentile"),
        (&blocks, Unit::Blocks, "Blocks looked into, a query"),
    ] {
        let band = band.as_ref().filter(|_| unit == Unit::Microseconds);
        if let Some(chart) = chart(format!("{title}: {caption}"), unit, series, band) {
            let _ = writeln!(html, "<figure><figcaption>{caption}</figcaption>\n{}</figure>", chart.svg());
        }
    }
    html.push_str("</div>\n<ul class=\"legend\">\n");
    for (number, series) in latency.iter().enumerate() {
        let _ = writeln!(html, "<li data-series=\"{number}\">{}{}</li>", key(series), escape(&series.name));
    }
    if band.is_some() {
        html.push_str(
            "<li class=\"then\"><i></i>the same cases as published in 2011: Cassandra 0.8 on a laptop, inside the \
             server</li>\n",
        );
    }
    html.push_str("</ul>\n");
    table(&cases, html);
    html.push_str("</section>\n");
}

/// Reads by key over the size of their table: lines for median and 95th percentile, and a table of all results.
fn by_size(sizes: &[AtSize], html: &mut String) {
    if sizes.is_empty() {
        return;
    }
    html.push_str(
        "<section>\n<h2>A row by its key, over the size of its table</h2>\n<p>Rows of five columns, keys of 7 bytes and \
         values of 34, each a partition of its own; the table is compacted before it is read, at places drawn at random. \
         Beyond the block cache a read takes a block from the system's page cache or the disk, and decompresses it.</p>\n",
    );
    let line = |name: &str, hue: usize, value: &dyn Fn(&AtSize) -> f64| {
        let point = |size: &AtSize| {
            let said = format!("{name}: {} µs of {}", figure(value(size)), data_size(size.data_bytes));
            Point { x: size.data_bytes as f64, y: value(size), tip: said }
        };
        Series { name: name.into(), hue, mark: hue, points: sizes.iter().map(point).collect() }
    };
    let series = vec![
        line("Median", 0, &|size| size.latency_us.p50),
        line("95th percentile", 1, &|size| size.latency_us.p95),
    ];
    let values = series.iter().flat_map(|line| line.points.iter().map(|point| point.y));
    if let Some(y) = Axis::logarithmic(values, SPAN, |at| Unit::Microseconds.label(at)) {
        let places = sizes.iter().map(|size| (size.data_bytes as f64, data_size(size.data_bytes)));
        let x = Axis::places(places).titled("keys and values in the table");
        let legend: Vec<String> = series
            .iter()
            .enumerate()
            .map(|(number, line)| format!("<li data-series=\"{number}\">{}{}</li>", key(line), line.name))
            .collect();
        let chart = Chart { title: "Latency over the size of the table".into(), x, y, series, band: None };
        let _ = writeln!(
            html,
            "<div class=\"pictures\">\n<figure><figcaption>Latency</figcaption>\n{}</figure>\n</div>\n<ul \
             class=\"legend\">\n{}\n</ul>",
            chart.svg(),
            legend.join("\n")
        );
    }
    html.push_str(
        "<details>\n<summary>All figures</summary>\n<div class=\"scroll\"><table>\n<thead><tr><th>data</th><th>rows</th>\
         <th>SSTables</th><th>min</th><th>50th</th><th>80th</th><th>95th</th><th>max</th><th>index nodes</th>\
         <th>blocks</th><th>blocks read</th></tr></thead>\n<tbody>\n",
    );
    for size in sizes {
        let Latency { min, p50, p80, p95, max, .. } = size.latency_us;
        let _ = write!(
            html,
            "<tr><td class=\"row\">{}</td><td>{}</td><td>{}</td>",
            data_size(size.data_bytes),
            grouped(size.rows),
            grouped(size.sstables)
        );
        for value in [min, p50, p80, p95, max] {
            let _ = write!(html, "<td>{}</td>", figure(value));
        }
        let touched = size.touched.unwrap_or_default();
        for value in [touched.index_nodes, touched.blocks, touched.blocks_read] {
            let _ = write!(html, "<td>{}</td>", mean(value));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n<p class=\"note\">Microseconds.</p>\n</details>\n</section>\n");
}

/// The unit of a chart's vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microseconds,
    Blocks,
}

impl Unit {
    fn label(self, value: f64) -> String {
        match self {
            Unit::Microseconds if value >= 1e3 => format!("{} ms", value / 1e3),
            Unit::Microseconds => format!("{value} µs"),
            Unit::Blocks => grouped(value.round() as u64),
        }
    }
}

/// One line for each case over the widths of the rows. `value` returns a row's value and its tooltip.
fn lines(
    cases: &[(&Case, Vec<&Measured>)],
    test: Test,
    value: &dyn Fn(&Measured) -> Option<(f64, String)>,
) -> Vec<Series> {
    let lines = cases.iter().enumerate().map(|(number, (case, rows))| {
        let (hue, mark) = look(test, number);
        let name = name(case);
        let point = |row: &&Measured| {
            let (y, said) = value(row).filter(|(y, _)| *y > 0.0)?;
            let tip = format!("{name}: {said} of {} columns", grouped(row.width));
            Some(Point { x: row.width as f64, y, tip })
        };
        let points = rows.iter().filter_map(point).collect();
        Series { name, hue, mark, points }
    });
    lines.collect()
}

/// A chart over the widths of the rows, with two logarithmic axes. `None` if there is no value.
fn chart(title: String, unit: Unit, series: &[Series], band: Option<&Band>) -> Option<Chart> {
    let points = || series.iter().flat_map(|series| &series.points);
    let of_band = band.iter().flat_map(|band| &band.points).flat_map(|(_, low, high)| [*low, *high]);
    let mut y = Axis::logarithmic(points().map(|point| point.y).chain(of_band), SPAN, |at| unit.label(at))?;
    if unit == Unit::Blocks {
        // A fraction of a block has no meaning.
        y.ticks.retain(|tick| tick.at >= 1.0);
    }
    let is_there = |width: u64| points().any(|point| point.x == width as f64);
    let label = |width: u64| match width {
        width if width >= 1_000_000 => format!("{}M", width / 1_000_000),
        width if width >= 5_000 => format!("{}k", width / 1_000),
        width => grouped(width),
    };
    let widths = ROWS.iter().map(|row| row.width).filter(|width| is_there(*width));
    let x = Axis::places(widths.map(|width| (width as f64, label(width)))).titled("columns in the row");
    Some(Chart { title, x, y, series: series.to_vec(), band: band.cloned() })
}

/// The colour and the mark of a case's line. Related cases have the same colour and different marks.
fn look(test: Test, number: usize) -> (usize, usize) {
    match test {
        Test::Names => (number / 3, number % 3),
        Test::Start => (number, number % 3),
        Test::Recent => (number % 2, number / 2),
    }
}

/// A short name of a case, without what its section already states.
fn name(case: &Case) -> String {
    let table = if case.order == Order::Desc { "Reversed table" } else { "Ascending table" };
    match case.test {
        Test::Recent => {
            let how = if case.title.contains("no start") { "by count alone" } else { "by start" };
            format!("{table}, {how}")
        }
        _ => {
            let rest = case.title.trim_start_matches("100 columns").trim_start_matches(" by name,").trim();
            let mut letters = rest.chars();
            let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
            format!("{first}{}", letters.as_str())
        }
    }
}

/// The area between the least and the greatest value of the article at each measured row.
fn band(cases: &[(&Case, Vec<&Measured>)]) -> Option<Band> {
    let mut points = Vec::new();
    for (place, row) in ROWS.iter().enumerate() {
        let has_row = |rows: &[&Measured]| rows.iter().any(|measured| measured.place() == Some(place));
        let then: Vec<f64> = cases
            .iter()
            .filter(|(_, rows)| has_row(rows))
            .filter_map(|(case, _)| history::p80_us(case, place))
            .collect();
        let low = then.iter().copied().fold(f64::MAX, f64::min);
        let high = then.iter().copied().fold(0.0, f64::max);
        if !then.is_empty() {
            points.push((row.width as f64, low, high));
        }
    }
    // A single row spans no area.
    (points.len() > 1).then(|| Band { name: "2011".into(), points })
}

fn table(cases: &[(&Case, Vec<&Measured>)], html: &mut String) {
    let probed = cases.iter().any(|(_, rows)| rows.iter().any(|row| row.touched.is_some()));
    html.push_str(
        "<details>\n<summary>All figures</summary>\n<div class=\"scroll\"><table>\n<thead><tr><th>case</th><th>row</th>\
         <th>columns</th><th>min</th><th>80th</th><th>95th</th><th>max</th><th>2011, 80th</th>",
    );
    if probed {
        html.push_str("<th>SSTables</th><th>index nodes</th><th>blocks</th><th>bytes</th>");
    }
    html.push_str("</tr></thead>\n");
    for (case, rows) in cases {
        html.push_str("<tbody>\n");
        for (at, row) in rows.iter().enumerate() {
            html.push_str("<tr>");
            if at == 0 {
                let _ = write!(html, "<th rowspan=\"{}\">{}</th>", rows.len(), escape(&name(case)));
            }
            let Latency { min, p80, p95, max, .. } = row.latency_us;
            let then = row.place().and_then(|place| history::p80_us(case, place)).map_or("-".into(), figure);
            let _ = write!(
                html,
                "<td class=\"row\">{}</td><td>{}</td><td>{}</td><td><b>{}</b></td><td>{}</td><td>{}</td><td class=\"then\">{then}</td>",
                escape(&row.row),
                grouped(row.columns),
                figure(min),
                figure(p80),
                figure(p95),
                figure(max)
            );
            if let Some(touched) = &row.touched {
                for count in [touched.sstables, touched.index_nodes, touched.blocks, touched.bytes] {
                    let _ = write!(html, "<td>{}</td>", mean(count));
                }
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n");
    }
    html.push_str("</table></div>\n<p class=\"note\">Microseconds.</p>\n</details>\n");
}

/// The loaded data, and how to repeat the measurement.
fn footer(profile: &Profile, html: &mut String) {
    html.push_str("<footer>\n<h2>How it was measured</h2>\n<p>");
    html.push_str(if profile.reached == "cql" {
        "From the first byte of a request written to the last byte of its answer read, one request at a time over one \
         connection, prepared statements."
    } else {
        "In process, below CQL: from the query to its cells in an answer's buffer, one thread, after a warm-up."
    });
    if !profile.cases.is_empty() {
        html.push_str(" Names of 10 bytes, values of 25.");
    }
    html.push_str(
        " Blocks and the rest of what a query touched are means over other queries of \
         the same case, which were not timed.</p>\n<dl>\n",
    );
    let mut fact = |name: &str, text: String| {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{text}</dd></div>");
    };
    let (columns, took) = profile
        .loads
        .iter()
        .fold((0, 0.0), |(columns, took), load| (columns + load.columns, took + load.seconds));
    if columns > 0 {
        let rate = grouped((columns as f64 / took.max(1e-9)) as u64);
        fact("loaded", format!("{} columns, {rate} a second", grouped(columns)));
    }
    let span = |s: f64| Duration::try_from_secs_f64(s).map(seconds).unwrap_or_default();
    for (name, took) in [("flush", profile.settled.flush_s), ("compaction", profile.settled.compact_s)] {
        if let Some(took) = took {
            fact(name, span(took));
        }
    }
    if profile.settled.compact_s.is_none() && !profile.cases.is_empty() {
        fact("before the reads", escape(&profile.settled.words()));
    }
    if let Some(sstables) = profile.settled.sstables {
        let bytes = profile.settled.disk_bytes.unwrap_or_default();
        let size = match bytes >> 20 {
            0..10 => format!("{} KiB", grouped(bytes >> 10)),
            mebibytes => format!("{} MiB", grouped(mebibytes)),
        };
        fact("on disk", format!("{sstables} SSTables, {size}"));
    }
    if let Some(widest) = profile.warm_ups.iter().max_by_key(|passed| passed.columns) {
        let rate = grouped(widest.columns_per_s as u64);
        fact("read through once", format!("{rate} columns a second, {}", escape(&widest.row)));
    }
    fact("program", format!("helenus {}", escape(&profile.program)));
    fact("begun", utc(profile.begun_s));
    fact("machine", escape(&profile.machine));
    html.push_str("</dl>\n</footer>\n");
}
