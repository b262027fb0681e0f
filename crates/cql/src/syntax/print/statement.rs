//! Prints a statement by its kind.

use super::super::ast::{Describe, DescribeWhat, StatementKind};
use super::printer::Printer;

impl Printer<'_> {
    pub(super) fn statement(&mut self, statement: &StatementKind<'_>) {
        match statement {
            StatementKind::Select(select) => self.select(select),
            StatementKind::Insert(insert) => self.insert(insert),
            StatementKind::Update(update) => self.update(update),
            StatementKind::Delete(delete) => self.delete(delete),
            StatementKind::Batch(batch) => self.batch(batch),
            StatementKind::Use(keyspace) => {
                self.push("USE ");
                self.ident(keyspace);
            }
            StatementKind::Truncate(table) => {
                self.push("TRUNCATE TABLE ");
                self.qualified(table);
            }
            StatementKind::Explain(explain) => {
                self.push("EXPLAIN ");
                self.push_if(explain.analyze, "ANALYZE ");
                self.push_if(explain.json, "FORMAT JSON ");
                self.statement(&explain.statement);
            }
            StatementKind::Describe(describe) => self.describe(describe),
            other => self.schema_statement(other),
        }
    }

    fn schema_statement(&mut self, statement: &StatementKind<'_>) {
        match statement {
            StatementKind::CreateKeyspace(keyspace) => {
                self.push("CREATE KEYSPACE ");
                self.if_not_exists(keyspace.if_not_exists);
                self.ident(&keyspace.name);
                self.properties(&keyspace.properties);
            }
            StatementKind::AlterKeyspace { name, if_exists, properties } => {
                self.push("ALTER KEYSPACE ");
                self.if_exists(*if_exists);
                self.ident(name);
                self.properties(properties);
            }
            StatementKind::DropKeyspace { name, if_exists } => {
                self.push("DROP KEYSPACE ");
                self.if_exists(*if_exists);
                self.ident(name);
            }
            StatementKind::CreateTable(table) => self.create_table(table),
            StatementKind::AlterTable(alter) => self.alter_table(alter),
            StatementKind::DropTable(drop) => self.drop_named("DROP TABLE ", drop),
            StatementKind::CreateType(create) => self.create_type(create),
            StatementKind::AlterType(alter) => self.alter_type(alter),
            StatementKind::DropType(drop) => self.drop_named("DROP TYPE ", drop),
            StatementKind::CreateIndex(index) => self.create_index(index),
            StatementKind::DropIndex(drop) => self.drop_named("DROP INDEX ", drop),
            StatementKind::CreateView(view) => self.create_view(view),
            StatementKind::AlterView(view) => {
                self.push("ALTER MATERIALIZED VIEW ");
                self.if_exists(view.if_exists);
                self.qualified(&view.name);
                self.properties(&view.properties);
            }
            StatementKind::DropView(drop) => self.drop_named("DROP MATERIALIZED VIEW ", drop),
            StatementKind::CreateTrigger(trigger) => {
                self.push("CREATE TRIGGER ");
                self.if_not_exists(trigger.if_not_exists);
                self.ident(&trigger.name);
                self.push(" ON ");
                self.qualified(&trigger.table);
                self.push(" USING ");
                self.literal(&trigger.class);
            }
            StatementKind::DropTrigger(trigger) => {
                self.push("DROP TRIGGER ");
                self.if_exists(trigger.if_exists);
                self.ident(&trigger.name);
                self.push(" ON ");
                self.qualified(&trigger.table);
            }
            StatementKind::CreateFunction(function) => self.create_function(function),
            StatementKind::DropFunction(drop) => self.drop_routine("DROP FUNCTION ", drop),
            StatementKind::CreateAggregate(aggregate) => self.create_aggregate(aggregate),
            StatementKind::DropAggregate(drop) => self.drop_routine("DROP AGGREGATE ", drop),
            other => self.access_statement(other),
        }
    }

    fn access_statement(&mut self, statement: &StatementKind<'_>) {
        match statement {
            StatementKind::GrantPermissions(grant) => self.grant_permissions("GRANT ", grant, " TO "),
            StatementKind::RevokePermissions(grant) => self.grant_permissions("REVOKE ", grant, " FROM "),
            StatementKind::ListPermissions(list) => self.list_permissions(list),
            StatementKind::GrantRole(grant) => self.grant_role("GRANT ", grant, " TO "),
            StatementKind::RevokeRole(grant) => self.grant_role("REVOKE ", grant, " FROM "),
            StatementKind::ListRoles(list) => self.list_roles(list),
            StatementKind::ListUsers => self.push("LIST USERS"),
            StatementKind::CreateRole(role) => {
                self.push("CREATE ROLE ");
                self.if_not_exists(role.guarded);
                self.role(role);
            }
            StatementKind::AlterRole(role) => {
                self.push("ALTER ROLE ");
                self.if_exists(role.guarded);
                self.role(role);
            }
            StatementKind::CreateUser(user) => {
                self.push("CREATE USER ");
                self.if_not_exists(user.guarded);
                self.user(user);
            }
            StatementKind::AlterUser(user) => {
                self.push("ALTER USER ");
                self.if_exists(user.guarded);
                self.user(user);
            }
            StatementKind::DropRole { name, if_exists } => {
                self.push("DROP ROLE ");
                self.if_exists(*if_exists);
                self.role_name(name);
            }
            StatementKind::DropUser { name, if_exists } => {
                self.push("DROP USER ");
                self.if_exists(*if_exists);
                self.role_name(name);
            }
            StatementKind::AddIdentity { identity, role, if_not_exists } => {
                self.push("ADD IDENTITY ");
                self.if_not_exists(*if_not_exists);
                self.role_name(identity);
                self.push(" TO ROLE ");
                self.role_name(role);
            }
            StatementKind::DropIdentity { identity, if_exists } => {
                self.push("DROP IDENTITY ");
                self.if_exists(*if_exists);
                self.role_name(identity);
            }
            // The two functions above print all other kinds and pass on only those of this one.
            _ => {}
        }
    }

    fn describe(&mut self, describe: &Describe<'_>) {
        self.push("DESCRIBE ");
        match &describe.what {
            DescribeWhat::Cluster => self.push("CLUSTER"),
            DescribeWhat::Schema { full } => self.push(if *full { "FULL SCHEMA" } else { "SCHEMA" }),
            DescribeWhat::Keyspaces => self.push("KEYSPACES"),
            DescribeWhat::Keyspace { only, name } => {
                self.push(if *only { "ONLY KEYSPACE" } else { "KEYSPACE" });
                if let Some(name) = name {
                    self.push(" ");
                    self.ident(name);
                }
            }
            DescribeWhat::Tables => self.push("TABLES"),
            DescribeWhat::Table(name) => {
                self.push("TABLE ");
                self.qualified(name);
            }
            DescribeWhat::Index(name) => {
                self.push("INDEX ");
                self.qualified(name);
            }
            DescribeWhat::View(name) => {
                self.push("MATERIALIZED VIEW ");
                self.qualified(name);
            }
            DescribeWhat::Types => self.push("TYPES"),
            DescribeWhat::Type(name) => {
                self.push("TYPE ");
                self.qualified(name);
            }
            DescribeWhat::Functions => self.push("FUNCTIONS"),
            DescribeWhat::Function(name) => {
                self.push("FUNCTION ");
                self.function_name(name);
            }
            DescribeWhat::Aggregates => self.push("AGGREGATES"),
            DescribeWhat::Aggregate(name) => {
                self.push("AGGREGATE ");
                self.function_name(name);
            }
            DescribeWhat::Any(name) => self.qualified(name),
        }
        self.push_if(describe.internals, " WITH INTERNALS");
    }
}
