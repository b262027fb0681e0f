//! Answers in pages: drawn statements on drawn tables, in pages of every size, give what they give without pages; and
//! whatever state a client sends back, a page is rows or a refusal, and pages come to an end.
//!
//! `PAGES_TABLES` tables; `PAGES_SEED` says which. A failing run prints the seed of its table and its statements:
//! `PAGES_TABLES=4000 PAGES_SEED=1 cargo test -p helenus-cql --test pages` is the long run, of some 50,000 statements.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[path = "pages/drawn.rs"]
mod drawn;
mod support;

use drawn::{Drawn, Random, statement};
use helenus_cql::CqlError;
use support::{KEYSPACE, Server};

type Row = Vec<Option<Vec<u8>>>;

/// Statements of one table.
const STATEMENTS: usize = 12;
/// Page sizes that each of them is asked with.
const SIZES: [u32; 7] = [1, 2, 3, 4, 5, 7, 100];
/// Pages that no statement of these tables comes to.
const PAGES_MAX: usize = 200;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn server(seed: u64) -> Server {
    let server = Server::open(seed);
    server.run(&format!(
        "CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ));
    server
}

/// Makes and fills a table; what was run.
fn fill(server: &Server, random: &mut Random, table: &Drawn) -> String {
    let mut script = String::new();
    let mut run = |text: String| {
        server.run(&text);
        script.push_str(&format!("{text};\n"));
    };
    table.create.iter().for_each(|text| run(text.clone()));
    server.machine().run_until_idle();
    for text in table.writes(random) {
        if text == "flush" {
            server.flush();
        } else {
            run(text);
        }
    }
    script
}

/// All pages of a statement from a state on; `None`: it was refused.
fn pages(server: &Server, text: &str, size: u32, from: Option<Vec<u8>>) -> Result<Vec<Vec<Row>>, CqlError> {
    let (mut pages, mut state) = (Vec::new(), from);
    loop {
        let page = server.select(text, Some((size, state.as_deref())))?;
        pages.push(page.rows);
        state = page.paging_state;
        if state.is_none() {
            return Ok(pages);
        }
        assert!(pages.len() < PAGES_MAX, "{text}: pages of {size} do not come to an end");
    }
}

/// A table of a seed with its statements, those that are valid.
fn each_table(mut judge: impl FnMut(&Server, &mut Random, &Drawn, (&str, &str))) -> usize {
    let (tables, first) = (number("PAGES_TABLES", 40), number("PAGES_SEED", 1));
    let mut valid = 0;
    for seed in first..first + tables {
        let mut random = Random(seed);
        let server = server(seed);
        let table = Drawn::table(&mut random);
        let script = fill(&server, &mut random, &table);
        for _ in 0..STATEMENTS {
            let text = statement(&mut random, &table);
            if server.select(&text, None).is_ok() {
                valid += 1;
                judge(&server, &mut random, &table, (&text, &format!("PAGES_SEED={seed}\n{script}{text}")));
            }
        }
        server.end();
    }
    assert!(valid * 3 > tables as usize * STATEMENTS, "only {valid} valid statements");
    valid
}

#[test]
fn pages_of_every_size_are_the_answer_without_pages() {
    each_table(|server, _, _, (text, script)| {
        let whole = server.select(text, None).unwrap().rows;
        for size in SIZES {
            let pages = match pages(server, text, size, None) {
                Err(error) if error.to_string().starts_with("Cannot page queries") => continue,
                pages => pages.unwrap_or_else(|error| panic!("{script}: {error}")),
            };
            let lengths: Vec<usize> = pages.iter().map(Vec::len).collect();
            assert!(lengths.iter().all(|length| *length <= size as usize), "{script}\n{lengths:?}");
            assert_eq!(pages.concat(), whole, "{script}\nin pages of {size}: {lengths:?}");
        }
    });
}

#[test]
fn a_state_in_the_middle_gives_the_rest_of_the_same_rows_whatever_is_selected_of_them() {
    each_table(|server, random, table, (text, script)| {
        if ["JSON", "DISTINCT", "(", "GROUP"].iter().any(|word| text.contains(word)) {
            return;
        }
        let (size, mut state) = (1 + random.below(3) as u32, None);
        let whole = server.select(text, None).unwrap().rows.len();
        let other = format!("SELECT {} FROM t {}", table.other_selection(random), after_table(text));
        let Ok(all) = server.select(&other, None) else { return };
        assert_eq!(all.rows.len(), whole, "{script}\n{other}");
        let mut given = 0;
        while let Ok(page) = server.select(text, Some((size, state.as_deref()))) {
            given += page.rows.len();
            let Some(next) = page.paging_state else { break };
            let rest = pages(server, &other, size, Some(next.clone())).unwrap().concat();
            assert_eq!(rest, all.rows[given..], "{script}\n{other} behind {given} rows");
            state = Some(next);
        }
    });
}

/// What stands behind `FROM t `.
fn after_table(text: &str) -> &str {
    text.split_once(" FROM t").map_or("", |(_, rest)| rest.trim_start())
}

#[test]
fn a_forged_state_gives_pages_that_end_or_a_refusal() {
    let mut refused = 0;
    let mut answered = 0;
    each_table(|server, random, table, (text, script)| {
        for _ in 0..8 {
            let state = forged(random, table);
            let size = 1 + random.below(4) as u32;
            match pages(server, text, size, Some(state.clone())) {
                Ok(pages) => {
                    assert!(pages.iter().all(|page| page.len() <= size as usize), "{script}\n{state:02x?}");
                    answered += 1;
                }
                Err(CqlError::Invalid(_) | CqlError::Protocol(_)) => refused += 1,
                Err(error) => panic!("{script}\n{state:02x?}: {error}"),
            }
        }
    });
    assert!(answered > 100 && refused > 100, "{answered} answered, {refused} refused");
}

/// A state that is like one in most of its parts.
fn forged(random: &mut Random, table: &Drawn) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |bytes: &[u8]| {
        out.push(bytes.len() as u8);
        out.extend_from_slice(bytes);
    };
    match random.below(4) {
        0 => put(&[]),
        1 => put(&(0..random.below(9)).map(|_| random.below(256) as u8).collect::<Vec<u8>>()),
        _ => put(&table.key_bytes(random.below(6) as u32)),
    }
    let mut mark = match random.below(6) {
        0 => Vec::new(),
        _ => table.mark(random),
    };
    if random.below(3) == 0 && !mark.is_empty() {
        let at = random.below(mark.len() as u64) as usize;
        mark[at] ^= 1 << random.below(8);
    }
    put(&mark);
    const NUMBERS: [&[u8]; 6] =
        [&[0], &[1], &[2], &[100], &[0xF0, 0x7F, 0xFF, 0xFF, 0xFF], &[0xF0, 0x7F, 0xFF, 0xFF, 0xF0]];
    for _ in 0..2 {
        out.extend_from_slice(NUMBERS[random.below(6) as usize]);
    }
    if random.below(10) == 0 {
        out.truncate(random.below(out.len() as u64) as usize);
    }
    out
}

#[test]
fn a_page_that_is_cut_for_its_bytes_goes_on_though_the_limit_is_within_the_page() {
    let server = server(1);
    server.run("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))");
    let value = "x".repeat(400 << 10);
    for (k, c) in [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (3, 1)] {
        server.run(&format!("INSERT INTO t (k, c, v) VALUES ({k}, {c}, '{value}')"));
    }
    for (text, rows) in [
        ("SELECT k, c, v FROM t LIMIT 5", 5),
        ("SELECT k, c, v FROM t WHERE k = 1 LIMIT 4", 4),
        ("SELECT k, c, v FROM t WHERE k IN (1, 2, 3) LIMIT 6", 6),
        ("SELECT k, c, v FROM t PER PARTITION LIMIT 3 LIMIT 100", 6),
        ("SELECT k, c, max(v) FROM t GROUP BY k, c LIMIT 6", 6),
    ] {
        let whole = server.select(text, None).unwrap().rows;
        let pages = pages(&server, text, 100, None).unwrap();
        assert!(pages.len() > 1, "{text}: one page");
        let pages = pages.concat();
        assert_eq!(pages.len(), rows, "{text}");
        assert!(pages == whole, "{text}");
    }
    server.end();
}

#[test]
fn a_group_whose_page_ends_before_the_next_partition_loses_no_row() {
    let server = server(1);
    for (table, index) in [("a", "CREATE INDEX ON a (v)"), ("b", "CREATE INDEX ON b (v) USING 'sai'")] {
        server.run(&format!("CREATE TABLE {table} (k int, c int, v int, PRIMARY KEY (k, c))"));
        server.run(index);
        server.machine().run_until_idle();
        for row in 0..12 {
            server.run(&format!("INSERT INTO {table} (k, c, v) VALUES ({}, {}, 0)", row / 3, row % 3));
        }
        let text = format!("SELECT count(*) FROM {table} WHERE v = 0 GROUP BY k");
        let three = vec![Some(3_i64.to_be_bytes().to_vec())];
        assert_eq!(pages(&server, &text, 1, None).unwrap().concat(), vec![three; 4], "{text}");
    }
    server.end();
}
