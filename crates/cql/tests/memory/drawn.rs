//! Drawn statements: short texts with large types, repeated markers, repeated selectors and nested functions.

use super::MIB;
use super::server::Server;

/// Statements for each limit.
const STATEMENTS: usize = 120;

struct Drawn(u64);

impl Drawn {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// A number whose magnitude is drawn.
    fn size(&mut self, most: usize) -> usize {
        let bits = self.below(most.ilog2() as usize + 1);
        1 + self.below(1 << bits)
    }

    fn ty(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self
                .one(&["int", "text", "blob", "boolean", "double", "uuid", "decimal", "duration"])
                .to_owned();
        }
        match self.below(6) {
            0 | 1 => format!("vector<{}, {}>", self.ty(depth - 1), self.size(1 << 30)),
            2 => {
                let parts: Vec<String> = (0..self.size(64)).map(|_| self.ty(depth - 1)).collect();
                format!("tuple<{}>", parts.join(", "))
            }
            3 => format!("frozen<list<{}>>", self.ty(depth - 1)),
            4 => format!("frozen<map<int, {}>>", self.ty(depth - 1)),
            _ => self.ty(0),
        }
    }

    /// A selectable without a table's columns, or with those of `t`.
    fn selectable(&mut self, depth: usize, columns: bool) -> String {
        if depth == 0 {
            return match self.below(if columns { 7 } else { 3 }) {
                0 => "(blob) :b".to_owned(),
                1 => "(text) :t".to_owned(),
                2 => {
                    let depth = self.below(4);
                    format!("mask_default(({})null)", self.ty(depth))
                }
                other => ["v", "x", "m", "s"][other - 3].to_owned(),
            };
        }
        let inner = self.selectable(depth - 1, columns);
        match self.below(9) {
            0 => format!("to_json({inner})"),
            1 => format!("text_as_blob(to_json({inner}))"),
            2 => {
                let count = self.size(64);
                format!("({})", vec![inner; count.max(2)].join(", "))
            }
            3 => {
                let count = self.size(64);
                format!("[{}]", vec![inner; count].join(", "))
            }
            4 => format!("mask_hash({inner})"),
            5 => format!("mask_inner(to_json({inner}), 1, 1)"),
            6 => format!("to_json({inner}) + to_json({inner})"),
            7 => format!("mask_replace({inner}, {inner})"),
            _ => format!("mask_default({inner})"),
        }
    }

    fn statement(&mut self) -> String {
        let columns = self.below(2) == 0;
        let depth = self.below(4);
        let selectable = self.selectable(depth, columns);
        let count = self.size(1000);
        let json = self.one(&["", "", "JSON "]);
        let selected = vec![selectable; count].join(", ");
        let from = if columns { self.one(&["t WHERE k = 1", "t WHERE k = 2", "t"]) } else { "system.local" };
        format!("SELECT {json}{selected} FROM {from}")
    }
}

pub fn run(server: &Server, seed: u64, found: &mut Vec<String>) {
    println!("seed {seed}");
    let mut drawn = Drawn(seed);
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..STATEMENTS {
        let statement = drawn.statement();
        let values = [drawn.size(4 * MIB), drawn.size(4 * MIB)];
        let [b, t] = values.map(|bytes| vec![b'x'; bytes]);
        let page_size = [None, Some(100)][drawn.below(2)];
        match server.run(&statement, &[("b", &b), ("t", &t)], page_size, found) {
            Ok(_) => answered += 1,
            Err(_) => refused += 1,
        }
    }
    println!("{answered} answered, {refused} refused");
    assert!(answered > 20, "{answered} answered");
}
