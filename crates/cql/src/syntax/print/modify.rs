//! Prints INSERT, UPDATE, DELETE and BATCH.

use super::super::ast::{
    Assignment, AssignmentKind, Batch, BatchItem, BatchKind, Delete, DeleteTarget, Insert, InsertData, Term,
    Update, Using,
};
use super::printer::Printer;

impl Printer<'_> {
    fn using(&mut self, using: &Using<'_>) {
        let mut word = " USING ";
        let parts = [("TIMESTAMP ", &using.timestamp), ("TTL ", &using.ttl), ("TIMEOUT ", &using.timeout)];
        for (name, value) in parts {
            if let Some(value) = value {
                self.push(word);
                self.push(name);
                self.term(value);
                word = " AND ";
            }
        }
    }

    pub(super) fn insert(&mut self, insert: &Insert<'_>) {
        self.push("INSERT INTO ");
        self.qualified(&insert.table);
        match &insert.data {
            InsertData::Values { columns, values } => {
                self.enclosed(" (", columns, ")", Self::ident);
                self.enclosed(" VALUES (", values, ")", Self::term);
            }
            InsertData::Json { value, default_unset } => {
                self.push(" JSON ");
                self.term(value);
                self.push_if(*default_unset, " DEFAULT UNSET");
            }
        }
        self.push_if(insert.if_not_exists, " IF NOT EXISTS");
        self.using(&insert.using);
    }

    pub(super) fn update(&mut self, update: &Update<'_>) {
        self.push("UPDATE ");
        self.qualified(&update.table);
        self.using(&update.using);
        self.push(" SET ");
        self.joined(&update.assignments, ", ", Self::assignment);
        self.filter(&update.filter);
        self.guard(&update.guard);
    }

    fn assignment(&mut self, assignment: &Assignment<'_>) {
        let column = &assignment.column;
        self.ident(column);
        match &assignment.kind {
            AssignmentKind::Set(value) => self.assigned(" = ", value),
            AssignmentKind::Add(value) => self.assigned(" += ", value),
            AssignmentKind::Subtract(value) => self.assigned(" -= ", value),
            AssignmentKind::Prepend(value) => {
                self.assigned(" = ", value);
                self.push(" + ");
                self.ident(column);
            }
            AssignmentKind::SetElement(key, value) => {
                self.push("[");
                self.term(key);
                self.assigned("] = ", value);
            }
            AssignmentKind::SetField(field, value) => {
                self.push(".");
                self.ident(field);
                self.assigned(" = ", value);
            }
        }
    }

    fn assigned(&mut self, sign: &str, value: &Term<'_>) {
        self.push(sign);
        self.term(value);
    }

    pub(super) fn delete(&mut self, delete: &Delete<'_>) {
        self.push("DELETE ");
        self.joined(&delete.targets, ", ", |printer, target| match target {
            DeleteTarget::Column(column) => printer.ident(column),
            DeleteTarget::Element(column, key) => {
                printer.ident(column);
                printer.push("[");
                printer.term(key);
                printer.push("]");
            }
            DeleteTarget::Field(column, field) => {
                printer.ident(column);
                printer.push(".");
                printer.ident(field);
            }
        });
        self.push_if(!delete.targets.is_empty(), " ");
        self.push("FROM ");
        self.qualified(&delete.table);
        self.using(&delete.using);
        self.filter(&delete.filter);
        self.guard(&delete.guard);
    }

    pub(super) fn batch(&mut self, batch: &Batch<'_>) {
        self.push(match batch.kind {
            BatchKind::Logged => "BEGIN BATCH",
            BatchKind::Unlogged => "BEGIN UNLOGGED BATCH",
            BatchKind::Counter => "BEGIN COUNTER BATCH",
        });
        self.using(&batch.using);
        for item in &batch.items {
            self.push(" ");
            match item {
                BatchItem::Insert(insert, _) => self.insert(insert),
                BatchItem::Update(update, _) => self.update(update),
                BatchItem::Delete(delete, _) => self.delete(delete),
            }
            self.push(";");
        }
        self.push(" APPLY BATCH");
    }
}
