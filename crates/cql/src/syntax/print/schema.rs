//! Prints statements about keyspaces, tables, types, indexes, views, triggers and functions.

use super::super::ast::{
    AlterTable, AlterType, ColumnDef, CreateAggregate, CreateFunction, CreateIndex, CreateTable, CreateType,
    CreateView, DropNamed, DropRoutine, Ident, IndexTarget, IndexTargetKind, Literal, Mask, PrimaryKey,
    Property, PropertyValue, TableChange, TableOptions, TypeChange,
};
use super::printer::Printer;

impl Printer<'_> {
    pub(super) fn if_exists(&mut self, guarded: bool) {
        self.push_if(guarded, "IF EXISTS ");
    }

    pub(super) fn if_not_exists(&mut self, guarded: bool) {
        self.push_if(guarded, "IF NOT EXISTS ");
    }

    /// `{'a': 'b'}`
    pub(super) fn literal_map(&mut self, pairs: &[(Literal<'_>, Literal<'_>)]) {
        self.enclosed("{", pairs, "}", |printer, (key, value)| {
            printer.literal(key);
            printer.push(": ");
            printer.literal(value);
        });
    }

    fn property(&mut self, property: &Property<'_>) {
        self.ident(&property.name);
        self.push(" = ");
        match &property.value {
            PropertyValue::Literal(literal) => self.literal(literal),
            PropertyValue::Word(word, _) => self.push(word),
            PropertyValue::Map(pairs, _) => self.literal_map(pairs),
        }
    }

    /// ` WITH ...`, or nothing without properties.
    pub(super) fn properties(&mut self, properties: &[Property<'_>]) {
        if !properties.is_empty() {
            self.push(" WITH ");
            self.joined(properties, " AND ", Self::property);
        }
    }

    fn table_options(&mut self, options: &TableOptions<'_>) {
        let mut word = " WITH ";
        if options.compact_storage {
            self.push(word);
            self.push("COMPACT STORAGE");
            word = " AND ";
        }
        if !options.clustering_order.is_empty() {
            self.push(word);
            self.push("CLUSTERING ORDER BY ");
            self.enclosed("(", &options.clustering_order, ")", |printer, (column, descending)| {
                printer.ident(column);
                printer.push(if *descending { " DESC" } else { " ASC" });
            });
            word = " AND ";
        }
        for property in &options.properties {
            self.push(word);
            self.property(property);
            word = " AND ";
        }
    }

    fn primary_key(&mut self, key: &PrimaryKey<'_>) {
        self.push("PRIMARY KEY (");
        match &*key.partition {
            [only] => self.ident(only),
            several => self.enclosed("(", several, ")", Self::ident),
        }
        for column in &key.clustering {
            self.push(", ");
            self.ident(column);
        }
        self.push(")");
    }

    fn column_def(&mut self, column: &ColumnDef<'_>) {
        self.ident(&column.name);
        self.push(" ");
        self.data_type(&column.data_type);
        self.push_if(column.is_static, " STATIC");
        self.mask(column.mask.as_ref());
    }

    fn mask(&mut self, mask: Option<&Mask<'_>>) {
        match mask {
            None => {}
            Some(Mask::Default) => self.push(" MASKED WITH DEFAULT"),
            Some(Mask::Function(name, arguments)) => {
                self.push(" MASKED WITH ");
                self.function_name(name);
                self.enclosed("(", arguments, ")", Self::term);
            }
        }
    }

    pub(super) fn create_table(&mut self, table: &CreateTable<'_>) {
        self.push("CREATE TABLE ");
        self.if_not_exists(table.if_not_exists);
        self.qualified(&table.name);
        self.enclosed(" (", &table.columns, "", Self::column_def);
        self.push_if(!table.columns.is_empty() && !table.primary_keys.is_empty(), ", ");
        self.enclosed("", &table.primary_keys, ")", Self::primary_key);
        self.table_options(&table.options);
    }

    fn renames(&mut self, names: &[(Ident<'_>, Ident<'_>)]) {
        self.joined(names, " AND ", |printer, (from, to)| {
            printer.ident(from);
            printer.push(" TO ");
            printer.ident(to);
        });
    }

    pub(super) fn alter_table(&mut self, alter: &AlterTable<'_>) {
        self.push("ALTER TABLE ");
        self.if_exists(alter.if_exists);
        self.qualified(&alter.name);
        match &alter.change {
            TableChange::Retype(column, data_type) => {
                self.push(" ALTER ");
                self.ident(column);
                self.push(" TYPE ");
                self.data_type(data_type);
            }
            TableChange::Mask { column, if_exists, mask } => {
                self.push(" ALTER ");
                self.if_exists(*if_exists);
                self.ident(column);
                self.mask(mask.as_ref());
                self.push_if(mask.is_none(), " DROP MASKED");
            }
            TableChange::Add { if_not_exists, columns } => {
                self.push(" ADD ");
                self.if_not_exists(*if_not_exists);
                self.enclosed("(", columns, ")", Self::column_def);
            }
            TableChange::Drop { if_exists, columns, timestamp_us } => {
                self.push(" DROP ");
                self.if_exists(*if_exists);
                self.enclosed("(", columns, ")", Self::ident);
                if let Some(timestamp) = timestamp_us {
                    self.push(&format!(" USING TIMESTAMP {timestamp}"));
                }
            }
            TableChange::Rename { if_exists, names } => {
                self.push(" RENAME ");
                self.if_exists(*if_exists);
                self.renames(names);
            }
            TableChange::DropCompactStorage => self.push(" DROP COMPACT STORAGE"),
            TableChange::Properties(properties) => self.properties(properties),
        }
    }

    pub(super) fn create_type(&mut self, create: &CreateType<'_>) {
        self.push("CREATE TYPE ");
        self.if_not_exists(create.if_not_exists);
        self.qualified(&create.name);
        self.enclosed(" (", &create.fields, ")", |printer, (field, data_type)| {
            printer.ident(field);
            printer.push(" ");
            printer.data_type(data_type);
        });
    }

    pub(super) fn alter_type(&mut self, alter: &AlterType<'_>) {
        self.push("ALTER TYPE ");
        self.if_exists(alter.if_exists);
        self.qualified(&alter.name);
        match &alter.change {
            TypeChange::Retype(field, data_type) => {
                self.push(" ALTER ");
                self.ident(field);
                self.push(" TYPE ");
                self.data_type(data_type);
            }
            TypeChange::Add { if_not_exists, field, data_type } => {
                self.push(" ADD ");
                self.if_not_exists(*if_not_exists);
                self.ident(field);
                self.push(" ");
                self.data_type(data_type);
            }
            TypeChange::Rename { if_exists, names } => {
                self.push(" RENAME ");
                self.if_exists(*if_exists);
                self.renames(names);
            }
        }
    }

    pub(super) fn create_index(&mut self, index: &CreateIndex<'_>) {
        self.push(if index.custom { "CREATE CUSTOM INDEX " } else { "CREATE INDEX " });
        self.if_not_exists(index.if_not_exists);
        if let Some(name) = &index.name {
            self.ident(name);
            self.push(" ");
        }
        self.push("ON ");
        self.qualified(&index.table);
        self.enclosed(" (", &index.targets, ")", Self::index_target);
        if let Some(class) = &index.using {
            self.push(" USING ");
            self.literal(class);
        }
        self.properties(&index.properties);
    }

    fn index_target(&mut self, target: &IndexTarget<'_>) {
        self.push(match target.kind {
            IndexTargetKind::Simple => return self.ident(&target.column),
            IndexTargetKind::Values => "VALUES(",
            IndexTargetKind::Keys => "KEYS(",
            IndexTargetKind::Entries => "ENTRIES(",
            IndexTargetKind::Full => "FULL(",
        });
        self.ident(&target.column);
        self.push(")");
    }

    pub(super) fn create_view(&mut self, view: &CreateView<'_>) {
        self.push("CREATE MATERIALIZED VIEW ");
        self.if_not_exists(view.if_not_exists);
        self.qualified(&view.name);
        self.push(" AS SELECT ");
        self.selectors(&view.selectors);
        self.push(" FROM ");
        self.qualified(&view.base);
        self.filter(&view.filter);
        self.push(" ");
        self.primary_key(&view.primary_key);
        self.table_options(&view.options);
    }

    pub(super) fn create_function(&mut self, function: &CreateFunction<'_>) {
        self.push(if function.or_replace { "CREATE OR REPLACE FUNCTION " } else { "CREATE FUNCTION " });
        self.if_not_exists(function.if_not_exists);
        self.function_name(&function.name);
        self.enclosed("(", &function.arguments, ")", |printer, (name, data_type)| {
            printer.ident(name);
            printer.push(" ");
            printer.data_type(data_type);
        });
        self.push(if function.called_on_null_input { " CALLED" } else { " RETURNS NULL" });
        self.push(" ON NULL INPUT RETURNS ");
        self.data_type(&function.returns);
        self.push(" LANGUAGE ");
        self.push(function.language);
        self.push(" AS ");
        self.literal(&function.body);
    }

    pub(super) fn create_aggregate(&mut self, aggregate: &CreateAggregate<'_>) {
        self.push(if aggregate.or_replace { "CREATE OR REPLACE AGGREGATE " } else { "CREATE AGGREGATE " });
        self.if_not_exists(aggregate.if_not_exists);
        self.function_name(&aggregate.name);
        self.enclosed("(", &aggregate.arguments, ")", Self::data_type);
        self.push(" SFUNC ");
        self.ident(&aggregate.state_function);
        self.push(" STYPE ");
        self.data_type(&aggregate.state_type);
        if let Some(function) = &aggregate.final_function {
            self.push(" FINALFUNC ");
            self.ident(function);
        }
        if let Some(initial) = &aggregate.initial {
            self.push(" INITCOND ");
            self.term(initial);
        }
    }

    pub(super) fn drop_named(&mut self, word: &str, drop: &DropNamed<'_>) {
        self.push(word);
        self.if_exists(drop.if_exists);
        self.qualified(&drop.name);
    }

    pub(super) fn drop_routine(&mut self, word: &str, drop: &DropRoutine<'_>) {
        self.push(word);
        self.if_exists(drop.if_exists);
        self.function_name(&drop.name);
        if let Some(arguments) = &drop.arguments {
            self.enclosed("(", arguments, ")", Self::data_type);
        }
    }
}
