//! Prints SELECT.

use super::super::ast::{Ordering, PathStep, Select, Selectable, Selectors};
use super::printer::Printer;

impl Printer<'_> {
    pub(super) fn select(&mut self, select: &Select<'_>) {
        self.push("SELECT ");
        self.push_if(select.json, "JSON ");
        self.push_if(select.distinct, "DISTINCT ");
        self.selectors(&select.selectors);
        self.push(" FROM ");
        self.qualified(&select.table);
        self.filter(&select.filter);
        if !select.group_by.is_empty() {
            self.push(" GROUP BY ");
            self.joined(&select.group_by, ", ", Self::selectable);
        }
        if !select.order_by.is_empty() {
            self.push(" ORDER BY ");
            self.joined(&select.order_by, ", ", Self::ordering);
        }
        if let Some(limit) = &select.per_partition_limit {
            self.push(" PER PARTITION LIMIT ");
            self.term(limit);
        }
        if let Some(limit) = &select.limit {
            self.push(" LIMIT ");
            self.term(limit);
        }
        self.push_if(select.allow_filtering, " ALLOW FILTERING");
        self.push_if(select.bypass_cache, " BYPASS CACHE");
        if let Some(timeout) = &select.timeout {
            self.push(" USING TIMEOUT ");
            self.term(timeout);
        }
    }

    pub(super) fn selectors(&mut self, selectors: &Selectors<'_>) {
        match selectors {
            Selectors::All => self.push("*"),
            Selectors::List(list) => self.joined(list, ", ", |printer, selector| {
                printer.selectable(&selector.selectable);
                if let Some(alias) = &selector.alias {
                    printer.push(" AS ");
                    printer.ident(alias);
                }
            }),
        }
    }

    fn ordering(&mut self, ordering: &Ordering<'_>) {
        self.ident(&ordering.column);
        if let Some(vector) = &ordering.ann_of {
            self.push(" ANN OF ");
            self.term(vector);
        }
        self.push_if(ordering.descending, " DESC");
    }

    pub(super) fn selectable(&mut self, selectable: &Selectable<'_>) {
        match selectable {
            Selectable::Column(column) => self.ident(column),
            Selectable::Term(term) => self.term(term),
            Selectable::CountRows(_) => self.push("COUNT(*)"),
            Selectable::Time(function, column, _) => {
                self.push(&function.as_str().to_ascii_uppercase());
                self.push("(");
                self.selectable(column);
                self.push(")");
            }
            Selectable::Cast(inner, to, _) => {
                self.push("CAST(");
                self.selectable(inner);
                self.push(" AS ");
                self.push(to.as_str());
                self.push(")");
            }
            Selectable::Function(name, arguments, _) => {
                self.function_name(name);
                self.enclosed("(", arguments, ")", Self::selectable);
            }
            Selectable::Path(first, steps) => {
                self.selectable(first);
                steps.iter().for_each(|step| self.step(step));
            }
            Selectable::Tuple(items, _) => self.enclosed("(", items, ")", Self::selectable),
            Selectable::List(items, _) => self.enclosed("[", items, "]", Self::selectable),
            Selectable::Set(items, _) => self.enclosed("{", items, "}", Self::selectable),
            Selectable::MapOrUdt(pairs, _) => self.enclosed("{", pairs, "}", |printer, (key, value)| {
                printer.selectable(key);
                printer.push(": ");
                printer.selectable(value);
            }),
            Selectable::Hint(hint, _) => {
                self.push("(");
                self.data_type(&hint.0);
                self.push(") ");
                self.selectable(&hint.1);
            }
            Selectable::Negation(inner, _) => {
                self.push("- ");
                self.selectable(inner);
            }
            Selectable::Arithmetic(first, rest) => {
                self.selectable(first);
                for (operator, right) in rest {
                    self.push(&format!(" {} ", operator.as_char()));
                    self.selectable(right);
                }
            }
        }
    }

    fn step(&mut self, step: &PathStep<'_>) {
        match step {
            PathStep::Field(field) => {
                self.push(".");
                self.ident(field);
            }
            PathStep::Element(element) => {
                self.push("[");
                self.term(element);
                self.push("]");
            }
            PathStep::Slice(from, to) => {
                self.push("[");
                from.iter().for_each(|term| self.term(term));
                self.push(" .. ");
                to.iter().for_each(|term| self.term(term));
                self.push("]");
            }
        }
    }
}
