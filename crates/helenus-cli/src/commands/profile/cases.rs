//! The cases: which columns of a row a query asks for, and which must come back.
//!
//! Source: the tests `name_locality` and `start_position` of "Cassandra Query Plans" (2011), and the two tests of
//! "Reversed Comparators" (2011). Columns are numbered from 0 in ascending order of their names, in both tables.

use super::rows::{PAGE, Row};
use crate::commands::stress::WideOrder as Order;
use crate::commands::stress::content::{below, mix};
use clap::ValueEnum;
use std::collections::BTreeSet;

/// Number of columns that a query asks for.
pub(super) const COLUMNS: u64 = 100;

/// A group of cases.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Test {
    /// 100 columns by name: close together, and spread over pages
    Names,
    /// 100 columns from different starts
    Start,
    /// The 100 most recent columns, in a table of either order
    Recent,
}

impl Test {
    /// The test's name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Test::Names => "names",
            Test::Start => "start",
            Test::Recent => "recent",
        }
    }
}

/// A case of the two articles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub test: Test,
    /// The short name, unique within its test.
    pub id: &'static str,
    /// The case's title in the article.
    pub title: &'static str,
    /// The table that is queried.
    pub order: Order,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// 100 consecutive names.
    Together(Place),
    /// `each` names from each of `pages` random pages.
    Spread { pages: u64, each: u64, at: InPage },
    /// A slice in the table's order, from the column at `Place`, or without a start.
    Slice(Option<Place>),
    /// The last 100 columns, which are the first ones of a descending table.
    Recent { by_start: bool },
}

#[derive(Clone, Copy, Debug)]
enum Place {
    First,
    SecondPage,
    Middle,
    LastPage,
    Last,
}

#[derive(Clone, Copy, Debug)]
enum InPage {
    First,
    Last,
    Random,
}

const fn names(id: &'static str, title: &'static str, what: What) -> Case {
    Case { test: Test::Names, id, title, order: Order::Asc, what }
}

const fn start(id: &'static str, title: &'static str, place: Option<Place>) -> Case {
    Case { test: Test::Start, id, title, order: Order::Asc, what: What::Slice(place) }
}

const fn spread(pages: u64, each: u64, at: InPage) -> What {
    What::Spread { pages, each, at }
}

const fn recent(id: &'static str, order: Order, by_start: bool) -> Case {
    let title = if by_start {
        "100 most recent columns, using start"
    } else {
        "100 most recent columns, using no start"
    };
    Case { test: Test::Recent, id, title, order, what: What::Recent { by_start } }
}

/// All cases, in the order of the texts.
pub(super) const CASES: [Case; 18] = [
    names("start", "100 columns by name, start of the row", What::Together(Place::First)),
    names("end", "100 columns by name, end of the row", What::Together(Place::Last)),
    names("middle", "100 columns by name, middle of row", What::Together(Place::Middle)),
    names(
        "first-2-of-50",
        "100 columns by name, first 2 cols from 50 random pages",
        spread(50, 2, InPage::First),
    ),
    names(
        "last-2-of-50",
        "100 columns by name, last 2 cols from 50 random pages",
        spread(50, 2, InPage::Last),
    ),
    names(
        "any-2-of-50",
        "100 columns by name, random 2 cols from 50 random pages",
        spread(50, 2, InPage::Random),
    ),
    names(
        "first-of-100",
        "100 columns by name, first col from 100 random pages",
        spread(100, 1, InPage::First),
    ),
    names("last-of-100", "100 columns by name, last col from 100 random pages", spread(100, 1, InPage::Last)),
    names(
        "any-of-100",
        "100 columns by name, random col from 100 random pages",
        spread(100, 1, InPage::Random),
    ),
    start("none", "100 columns with no start column", None),
    start("first", "100 columns from the start of the row with a start col", Some(Place::First)),
    start("second-page", "100 columns from the start of the second page", Some(Place::SecondPage)),
    start("half-way", "100 columns starting half way through the row", Some(Place::Middle)),
    start("last-page", "100 columns starting from the last page", Some(Place::LastPage)),
    recent("by-start-ascending", Order::Asc, true),
    recent("by-start-reversed", Order::Desc, true),
    recent("by-count-ascending", Order::Asc, false),
    recent("by-count-reversed", Order::Desc, false),
];

/// A query on one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Query {
    /// Columns by name, ascending and distinct.
    Names(Vec<u64>),
    /// A range of columns.
    Slice(Slice),
}

/// A range of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// The first column; `None`: the beginning of the row in the direction of the read.
    pub start: Option<u64>,
    /// Whether the read goes against the table's order.
    pub reversed: bool,
    /// The maximum number of columns.
    pub count: u64,
}

impl Case {
    /// A query of this case. Different values of `draw` give different random choices.
    pub fn query(&self, row: Row, draw: u64) -> Query {
        let slice = |start, reversed| Query::Slice(Slice { start, reversed, count: COLUMNS });
        match self.what {
            What::Together(place) => {
                let first = place.column(row).min(row.width.saturating_sub(COLUMNS));
                Query::Names((first..(first + COLUMNS).min(row.width)).collect())
            }
            What::Spread { pages, each, at } => Query::Names(spread_names(row, (pages, each), at, mix(draw))),
            What::Slice(place) => slice(place.map(|place| place.column(row)), false),
            What::Recent { by_start: false } => slice(None, self.order == Order::Asc),
            What::Recent { by_start: true } => match self.order {
                Order::Asc => slice(Some(row.width.saturating_sub(COLUMNS)), false),
                Order::Desc => slice(Some(row.width - 1), false),
            },
        }
    }
}

impl Place {
    /// The number of the column. In a row without a second page, `SecondPage` is the last column from which 100 columns
    /// follow.
    fn column(self, row: Row) -> u64 {
        let last = row.width.saturating_sub(COLUMNS);
        match self {
            Place::First => 0,
            Place::SecondPage => PAGE.min(last),
            Place::Middle => row.width / 2,
            Place::LastPage => row.page(row.pages() - 1).start,
            Place::Last => last,
        }
    }
}

/// Names from random pages. A row with fewer pages gives fewer names.
fn spread_names(row: Row, (pages, each): (u64, u64), at: InPage, seed: u64) -> Vec<u64> {
    let mut names = Vec::new();
    for (number, page) in (1..).zip(distinct(row.pages(), pages, seed)) {
        let columns = row.page(page);
        let count = columns.end - columns.start;
        match at {
            InPage::First => names.extend(columns.take(each as usize)),
            InPage::Last => names.extend(columns.end - each.min(count)..columns.end),
            InPage::Random => {
                let drawn = distinct(count, each, mix(seed ^ number));
                names.extend(drawn.into_iter().map(|column| columns.start + column));
            }
        }
    }
    names
}

/// `count` distinct random numbers below `bound`, ascending; all numbers if there are fewer.
fn distinct(bound: u64, count: u64, seed: u64) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut draws = (0..).map(|number| below(mix(seed.wrapping_add(number)), bound));
    while (found.len() as u64) < count.min(bound) {
        found.extend(draws.next());
    }
    found
}

impl Query {
    /// The columns that must be returned, in the order of the answer.
    pub fn expected(&self, order: Order, row: Row) -> Vec<u64> {
        match self {
            Query::Names(names) if order == Order::Asc => names.clone(),
            Query::Names(names) => names.iter().rev().copied().collect(),
            Query::Slice(slice) => {
                let upwards = (order == Order::Asc) != slice.reversed;
                if upwards {
                    let first = slice.start.unwrap_or(0);
                    (first..first.saturating_add(slice.count).min(row.width)).collect()
                } else {
                    let end = slice.start.map_or(row.width, |start| (start + 1).min(row.width));
                    (end.saturating_sub(slice.count)..end).rev().collect()
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    fn case(test: Test, id: &str) -> Case {
        *CASES.iter().find(|case| case.test == test && case.id == id).unwrap()
    }

    #[test]
    fn there_are_nine_cases_of_names_five_of_starts_and_two_of_recent_columns_in_either_table() {
        let count = |test| CASES.iter().filter(|case| case.test == test).count();
        assert_eq!([Test::Names, Test::Start, Test::Recent].map(count), [9, 5, 4]);
    }

    #[test]
    fn names_are_different_ascending_and_from_as_many_pages_as_the_row_has() {
        for row in ROWS {
            for case in CASES.iter().filter(|case| case.test == Test::Names) {
                for draw in 0..20 {
                    let Query::Names(names) = case.query(row, draw) else { panic!("{case:?}") };
                    assert!(names.is_sorted_by(|a, b| a < b) && names.iter().all(|name| *name < row.width));
                    let pages: BTreeSet<u64> = names.iter().map(|name| name / PAGE).collect();
                    let (asked, each) = match case.what {
                        What::Spread { pages, each, .. } => (pages, each),
                        _ => (1, COLUMNS),
                    };
                    let expected = if asked == 1 { COLUMNS } else { asked.min(row.pages()) * each };
                    assert_eq!(names.len() as u64, expected, "{} of {}", case.id, row.name);
                    assert!(asked == 1 || pages.len() as u64 == asked.min(row.pages()));
                }
            }
        }
    }

    #[test]
    fn every_draw_asks_for_other_random_pages_and_the_same_draw_for_the_same() {
        let (case, row) = (case(Test::Names, "any-of-100"), ROWS[6]);
        assert_eq!(case.query(row, 7), case.query(row, 7));
        assert_ne!(case.query(row, 7), case.query(row, 8));
    }

    #[test]
    fn the_most_recent_columns_are_the_last_ones_whichever_way_they_are_asked_for() {
        for row in ROWS {
            let ascending: Vec<u64> = (row.width - 100..row.width).collect();
            let descending: Vec<u64> = ascending.iter().rev().copied().collect();
            for case in CASES.iter().filter(|case| case.test == Test::Recent) {
                let expected = if case.id == "by-start-ascending" { &ascending } else { &descending };
                assert_eq!(
                    &case.query(row, 0).expected(case.order, row),
                    expected,
                    "{} {}",
                    case.id,
                    row.name
                );
            }
        }
    }

    #[test]
    fn slices_start_where_their_case_says() {
        let row = ROWS[3];
        let first = |id| case(Test::Start, id).query(row, 0).expected(Order::Asc, row)[0];
        assert_eq!(
            ["none", "first", "second-page", "half-way", "last-page"].map(first),
            [0, 0, 1_310, 5_000, 9_170]
        );
        assert_eq!(case(Test::Start, "half-way").query(ROWS[0], 0).expected(Order::Asc, ROWS[0]).len(), 50);
    }
}
