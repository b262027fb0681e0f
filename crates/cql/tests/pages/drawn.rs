//! Drawn tables and SELECTs for `pages.rs`: few partitions of few rows, so that pages end at every kind of place.

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// Less than `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn one<'c, T: ?Sized>(&mut self, choices: &[&'c T]) -> &'c T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// A table `t`: a key of one or two columns, up to two clustering columns `c int` and `d text`, `s int static` perhaps, `v int` and
/// `w int`.
pub struct Drawn {
    pub create: Vec<String>,
    two_keys: bool,
    clustering: usize,
    has_static: bool,
}

/// Partitions of a table; the last has no row.
const PARTITIONS: u32 = 6;

impl Drawn {
    pub fn table(random: &mut Random) -> Drawn {
        let two_keys = random.chance(30);
        let clustering = [0, 1, 1, 2, 2, 2][random.below(6) as usize];
        let has_static = clustering > 0 && random.chance(60);
        let key = if two_keys { "(k, l)" } else { "k" };
        let names = ["c", "d"][..clustering].iter().map(|name| format!(", {name}")).collect::<String>();
        let mut text = "CREATE TABLE t (k int, ".to_owned();
        text.push_str(if two_keys { "l int, " } else { "" });
        text.push_str(["", "c int, ", "c int, d text, "][clustering]);
        text.push_str(if has_static { "s int static, " } else { "" });
        text.push_str(&format!("v int, w int, PRIMARY KEY ({key}{names}))"));
        let orders: Vec<String> = ["c", "d"][..clustering]
            .iter()
            .map(|name| format!("{name} {}", random.one(&["ASC", "DESC"])))
            .collect();
        if clustering > 0 && random.chance(70) {
            text.push_str(&format!(" WITH CLUSTERING ORDER BY ({})", orders.join(", ")));
        }
        let mut create = vec![text];
        let columns = ["v", "w", "s", "c", "d", "l"];
        let has = [true, true, has_static, clustering > 0, clustering > 1, two_keys];
        for (column, _) in columns.iter().zip(has).filter(|(_, has)| *has) {
            if random.chance(if matches!(*column, "v" | "w") { 60 } else { 15 }) {
                let using = if random.chance(50) { " USING 'sai'" } else { "" };
                create.push(format!("CREATE INDEX ON t ({column}){using}"));
            }
        }
        Drawn { create, two_keys, clustering, has_static }
    }

    fn key(&self, number: u64) -> String {
        if self.two_keys {
            format!("k = {} AND l = {}", number / 2, number % 2)
        } else {
            format!("k = {number}")
        }
    }

    /// The serialised key of a partition.
    pub fn key_bytes(&self, number: u32) -> Vec<u8> {
        match self.two_keys {
            false => number.to_be_bytes().to_vec(),
            true => [&[0, 4][..], &(number / 2).to_be_bytes(), &[0, 0, 4], &(number % 2).to_be_bytes(), &[0]]
                .concat(),
        }
    }

    /// The mark of a row, as a paging state has it.
    pub fn mark(&self, random: &mut Random) -> Vec<u8> {
        let mut mark = vec![0, 4];
        mark.extend_from_slice(&(random.below(7) as u32).to_be_bytes());
        if self.clustering == 2 {
            mark.extend_from_slice(&[1, b'a' + random.below(4) as u8]);
        }
        mark
    }

    /// What is written, `flush` among it.
    pub fn writes(&self, random: &mut Random) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..8 + random.below(30) {
            let (k, c, d) =
                (random.below(u64::from(PARTITIONS) - 1), random.below(6), random.one(&["a", "b", "c"]));
            let row = [String::new(), format!(" AND c = {c}"), format!(" AND c = {c} AND d = '{d}'")];
            let at = format!("{}{}", self.key(k), row[self.clustering]);
            all.push(match random.below(20) {
                0 => "flush".to_owned(),
                1 => format!("DELETE FROM t WHERE {at}"),
                2 if self.clustering > 0 => format!("DELETE FROM t WHERE {} AND c > {c}", self.key(k)),
                3 | 4 if self.has_static => {
                    format!("UPDATE t SET s = {} WHERE {}", random.below(3), self.key(random.below(6)))
                }
                5 => format!("UPDATE t SET v = null WHERE {at}"),
                _ => format!("UPDATE t SET v = {}, w = {} WHERE {at}", random.below(3), random.below(5)),
            });
        }
        all
    }

    /// Other columns of the same rows.
    pub fn other_selection(&self, random: &mut Random) -> &'static str {
        let all = ["v", "k, v, w", "*", "w, k", "k, c", "c, w", "d, v", "s, v"];
        let has = [
            true,
            true,
            true,
            true,
            self.clustering > 0,
            self.clustering > 0,
            self.clustering > 1,
            self.has_static,
        ];
        let choices: Vec<&str> = all.iter().zip(has).filter(|(_, has)| *has).map(|(name, _)| *name).collect();
        random.one(&choices)
    }

    fn selection(&self, random: &mut Random) -> (String, String) {
        let keys = if self.two_keys { "k, l" } else { "k" };
        let clustering = ["", ", c", ", c, d"];
        let full = format!("{keys}{}", clustering[self.clustering]);
        let group = match random.below(4) {
            0 => keys.to_owned(),
            other => format!("{keys}{}", clustering[self.clustering.min(other as usize)]),
        };
        let statics = if self.has_static { ", s" } else { "" };
        match random.below(16) {
            0..=2 => ("*".to_owned(), String::new()),
            3 => (format!("{full}, v"), String::new()),
            4 => (format!("{full}{statics}"), String::new()),
            5 => (format!("DISTINCT {keys}"), String::new()),
            6 => (format!("DISTINCT {keys}{statics}"), String::new()),
            7 => ("JSON *".to_owned(), String::new()),
            8 => ("count(*)".to_owned(), String::new()),
            9 => ("max(v), sum(w)".to_owned(), String::new()),
            10 => (format!("DISTINCT {keys}, count(*)"), format!(" GROUP BY {keys}")),
            11 => (format!("{group}{statics}"), format!(" GROUP BY {group}")),
            _ => (format!("{group}, count(*), max(v){statics}"), format!(" GROUP BY {group}")),
        }
    }
}

/// A SELECT, which may be invalid.
pub fn statement(random: &mut Random, table: &Drawn) -> String {
    let (selection, group) = table.selection(random);
    let mut tests: Vec<String> = Vec::new();
    let mut by_key = false;
    match random.below(10) {
        0..=2 => {
            tests.push(table.key(random.below(6)));
            by_key = true;
        }
        3 | 4 => tests.push(match table.two_keys {
            true => format!("k IN ({}, {}) AND l IN (1, 0)", random.below(3), random.below(3)),
            false => format!("k IN ({}, {}, {})", random.below(6), random.below(6), random.below(6)),
        }),
        5 => {
            let operator = random.one(&[">", "<=", ">=", "<"]);
            let (columns, key) = if table.two_keys { ("k, l", "1, 0") } else { ("k", "2") };
            tests.push(format!("token({columns}) {operator} token({key})"));
        }
        _ => {}
    }
    if table.clustering > 0 && random.chance(if by_key { 35 } else { 8 }) {
        tests.push(match random.below(4) {
            0 => "c IN (1, 2, 5, 0)".to_owned(),
            1 => format!("c = {}", random.below(6)),
            _ => format!("c {} {}", random.one(&[">", "<=", ">=", "<"]), random.below(6)),
        });
    }
    if random.chance(40) {
        let columns = if table.has_static { &["v", "v", "w", "s"][..] } else { &["v", "w"][..] };
        let column = random.one(columns);
        let operator = random.one(&["=", "=", "=", ">", "<="]);
        tests.push(format!("{column} {operator} {}", random.below(3)));
    }
    let mut text = format!("SELECT {selection} FROM t");
    if !tests.is_empty() {
        text.push_str(&format!(" WHERE {}", tests.join(" AND ")));
    }
    text.push_str(&group);
    if by_key && table.clustering > 0 && random.chance(50) {
        text.push_str(&format!(" ORDER BY c {}", random.one(&["ASC", "DESC"])));
    }
    if random.chance(20) {
        text.push_str(&format!(" PER PARTITION LIMIT {}", 1 + random.below(3)));
    }
    if random.chance(25) {
        text.push_str(&format!(" LIMIT {}", 1 + random.below(9)));
    }
    if random.chance(if tests.is_empty() { 10 } else { 85 }) {
        text.push_str(" ALLOW FILTERING");
    }
    text
}
