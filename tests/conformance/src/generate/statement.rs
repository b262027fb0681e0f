//! One random statement.

use super::Draw;
use super::alter::alter;
use super::schema::GeneratedTable;
use super::select::select;
use super::spoil::spoil;
use super::terms::Written;
use super::write::{batch, write};
use crate::script::{Action, Statement};

/// The next thing to do with `table`: mostly a statement.
pub fn statement(draw: &mut Draw, table: &mut GeneratedTable) -> Action {
    match draw.below(1000) {
        0..=5 => return Action::Flush,
        6 => return Action::Compact,
        7 => return Action::Restart,
        8 => return Action::Run(Statement::plain(format!("TRUNCATE {}", table.name))),
        9..=11 => return Action::Run(Statement::plain(alter(draw, table))),
        _ => {}
    }
    let table = &*table;
    let mut out = Written { marks: draw.chance(40), ..Written::default() };
    match draw.below(20) {
        0..=8 => write(draw, table, true, &mut out),
        9 | 10 => batch(draw, table, &mut out),
        _ => select(draw, table, &mut out),
    }
    let mut run = Statement::plain("");
    if draw.chance(10) {
        let spoilt = spoil(draw, &out.text);
        // A write that has lost its timestamp is stamped by each server on its own.
        let stamps = |text: &str| text.matches(" USING TIMESTAMP ").count();
        if !table.timestamps || stamps(&spoilt) == stamps(&out.text) {
            out.text = spoilt;
        }
    }
    run.text = out.text;
    run.only_prepared = !out.bound.is_empty() && run.verb() != "SELECT" && draw.chance(50);
    run.bound = out.bound;
    run.settings.pages = vec![draw.between(1, 6) as i32];
    Action::Run(run)
}
