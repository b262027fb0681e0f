//! What hinders a move at its target, and the tables that it concerns.
//!
//! `schema` finds problems; `plan` leaves out the tables that they concern, a run stops these, and a cut or a rollback is refused for them. The
//! other tables go.

use crate::type_parts::any_part;
use helenus_model::schema::Table;
use helenus_model::types::CqlType;

/// What a problem is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A table, by keyspace and name.
    Table(String, String),
    /// A user type, by keyspace and name.
    Type(String, String),
}

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) of: Scope,
    /// In words. That of a table begins with the table's name.
    pub(crate) text: String,
}

impl Problem {
    pub(crate) fn of_table(table: &Table, text: String) -> Problem {
        Problem { of: Scope::Table(table.keyspace.to_string(), table.name.to_string()), text }
    }

    /// Whether a table has it: a table has the problems of the user types that its columns use.
    pub(crate) fn concerns(&self, table: &Table) -> bool {
        match &self.of {
            Scope::Table(keyspace, name) => *keyspace == *table.keyspace && *name == *table.name,
            Scope::Type(keyspace, name) => {
                let is_it = |ty: &CqlType| match ty {
                    CqlType::Udt(udt) => *udt.keyspace == **keyspace && *udt.name == **name,
                    _ => false,
                };
                table.columns().any(|column| any_part(&column.ty, &is_it))
            }
        }
    }

    /// The text in a list of reasons of the table that it concerns.
    pub(crate) fn reason(&self, table: &Table) -> String {
        let name = format!("{}.{}: ", table.keyspace, table.name);
        self.text.strip_prefix(&name).unwrap_or(&self.text).to_owned()
    }
}

/// The texts of the problems that any of the tables has.
pub(crate) fn texts_for<'t>(
    problems: &[Problem],
    tables: impl Iterator<Item = &'t Table> + Clone,
) -> Vec<String> {
    let found = problems.iter().filter(|problem| tables.clone().any(|table| problem.concerns(table)));
    found.map(|problem| problem.text.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_model::schema::{Column, ColumnKind, TableId};
    use helenus_model::types::UserType;
    use std::sync::Arc;

    fn udt(name: &str, field: CqlType) -> CqlType {
        let fields = vec![("f".into(), field)];
        CqlType::Udt(Arc::new(UserType { keyspace: "ks".into(), name: name.into(), fields, frozen: true }))
    }

    #[test]
    fn a_type_concerns_the_tables_that_use_it_at_any_depth() {
        let place = || udt("place", CqlType::Int);
        let element = || Arc::new(place());
        let uses = [
            place(),
            CqlType::List { element: element(), frozen: false },
            CqlType::Set { element: element(), frozen: true },
            CqlType::Map { key: element(), value: Arc::new(CqlType::Int), frozen: false },
            CqlType::Map { key: Arc::new(CqlType::Int), value: element(), frozen: false },
            CqlType::Tuple([CqlType::Int, place()].into()),
            CqlType::Vector { element: element(), dimension: 2 },
            udt("home", CqlType::List { element: element(), frozen: true }),
        ];
        let others = [CqlType::Int, udt("other", CqlType::Int), CqlType::Tuple([CqlType::Int].into())];
        let problem = Problem { of: Scope::Type("ks".into(), "place".into()), text: "wrong".into() };
        let of = |ty: &CqlType| {
            let column = Column::new("v", ColumnKind::Regular, ty.clone());
            problem.concerns(&Table::new(("ks", "t"), TableId(Default::default()), [column]))
        };
        for ty in &uses {
            assert!(of(ty), "{ty}");
        }
        for ty in &others {
            assert!(!of(ty), "{ty}");
        }
    }

    #[test]
    fn a_tables_problem_is_of_this_table_alone_and_its_reason_does_not_repeat_the_name() {
        let table = |name: &str| Table::new(("ks", name), TableId(Default::default()), []);
        let problem = Problem::of_table(&table("t"), "ks.t: no column".to_owned());
        assert!(problem.concerns(&table("t")) && !problem.concerns(&table("t2")));
        assert_eq!(problem.reason(&table("t")), "no column");
        assert!(texts_for(std::slice::from_ref(&problem), [table("u")].iter()).is_empty());
        assert_eq!(texts_for(&[problem], [table("u"), table("t")].iter()), ["ks.t: no column"]);
    }
}
