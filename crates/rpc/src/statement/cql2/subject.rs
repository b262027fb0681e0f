//! Finds the subject of a CQL 2 statement for the audit log, as `helenus_cql` does for CQL 3. Names are as written: CQL 2 keeps their case.

use super::ast::{Change, FamilyName, Modify, Statement};
use super::parser::parse;
use helenus_cql::audit::{EventType, Part, Subject};

/// The subject of a text in a session with this keyspace; `None` if it is no statement.
pub(crate) fn subject(text: &str, keyspace: Option<&str>) -> Option<Subject> {
    let (statement, _) = parse(text).ok()?;
    let bare = Subject::bare;
    let of_keyspace = |event, name: &str| Subject { keyspace: Some(name.into()), ..bare(event) };
    let of_object = |event, name: Option<&str>| Subject {
        keyspace: keyspace.map(Into::into),
        scope: name.map(Into::into),
        ..bare(event)
    };
    let of_family = |event, family: &FamilyName| Subject {
        keyspace: keyspace_of(family, keyspace),
        scope: Some(family.name.as_str().into()),
        ..bare(event)
    };
    Some(match &statement {
        Statement::Use(name) => of_keyspace(EventType::UseKeyspace, name),
        Statement::Select(select) => of_family(EventType::Select, &select.family),
        Statement::Modify(modify) => of_family(event_of(modify), &modify.family),
        Statement::Batch(_, statements) => {
            let part = |modify: &Modify| Part {
                event: event_of(modify),
                keyspace: keyspace_of(&modify.family, keyspace),
                scope: Some(modify.family.name.as_str().into()),
                place: modify.place,
            };
            Subject { parts: statements.iter().map(part).collect(), ..bare(EventType::Batch) }
        }
        Statement::Truncate(family) => of_family(EventType::Truncate, family),
        Statement::CreateKeyspace(name, _) => of_keyspace(EventType::CreateKeyspace, name),
        Statement::DropKeyspace(name) => of_keyspace(EventType::DropKeyspace, name),
        Statement::CreateFamily { name, .. } => of_object(EventType::CreateTable, Some(name)),
        Statement::DropFamily(name) => of_object(EventType::DropTable, Some(name)),
        Statement::AlterFamily(name, _) => of_object(EventType::AlterTable, Some(name)),
        Statement::CreateIndex { name, .. } => of_object(EventType::CreateIndex, name.as_deref()),
        Statement::DropIndex(name) => of_object(EventType::DropIndex, Some(name)),
    })
}

fn event_of(modify: &Modify) -> EventType {
    match modify.change {
        Change::Set(_) => EventType::Update,
        Change::Delete(_) => EventType::Delete,
    }
}

fn keyspace_of(family: &FamilyName, keyspace: Option<&str>) -> Option<Box<str>> {
    family.keyspace.as_deref().or(keyspace).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each kind of statement with its event, keyspace and object, in a session with the keyspace `Used`.
    #[test]
    fn each_kind_of_statement_has_its_subject_and_names_keep_their_case() {
        for (text, event, keyspace, scope) in [
            ("USE Kept", EventType::UseKeyspace, "Kept", ""),
            ("SELECT * FROM Standard1 WHERE KEY = a", EventType::Select, "Used", "Standard1"),
            ("SELECT 'a'..'b' FROM K.Standard1", EventType::Select, "K", "Standard1"),
            ("INSERT INTO K.F (KEY, a) VALUES (k, 'secret')", EventType::Update, "K", "F"),
            ("UPDATE F SET a = b WHERE KEY = k", EventType::Update, "Used", "F"),
            ("DELETE a FROM F WHERE KEY = k", EventType::Delete, "Used", "F"),
            ("TRUNCATE K.F", EventType::Truncate, "K", "F"),
            ("CREATE KEYSPACE N WITH strategy_class = SimpleStrategy", EventType::CreateKeyspace, "N", ""),
            ("DROP KEYSPACE N", EventType::DropKeyspace, "N", ""),
            ("CREATE COLUMNFAMILY F (KEY text PRIMARY KEY)", EventType::CreateTable, "Used", "F"),
            ("DROP COLUMNFAMILY F", EventType::DropTable, "Used", "F"),
            ("ALTER COLUMNFAMILY F ADD a text", EventType::AlterTable, "Used", "F"),
            ("CREATE INDEX I ON F (a)", EventType::CreateIndex, "Used", "I"),
            ("CREATE INDEX ON F (a)", EventType::CreateIndex, "Used", ""),
            ("DROP INDEX I", EventType::DropIndex, "Used", "I"),
        ] {
            let found = subject(text, Some("Used")).unwrap();
            let shown =
                (found.event, found.keyspace.as_deref().unwrap_or(""), found.scope.as_deref().unwrap_or(""));
            assert_eq!(shown, (event, keyspace, scope), "{text}");
            assert!(found.parts.is_empty(), "{text}");
        }
        assert_eq!(subject("SELECT a", None), None);
    }

    #[test]
    fn a_batch_has_the_text_of_each_part() {
        let text = "/* é */ BEGIN BATCH UPDATE F SET a = 'é' WHERE KEY = 'APPLY' ; DELETE FROM K.G WHERE KEY = k\n APPLY BATCH;";
        let found = subject(text, Some("Used")).unwrap();
        assert_eq!((found.event, found.keyspace), (EventType::Batch, None));
        let parts: Vec<_> = found
            .parts
            .iter()
            .map(|part| {
                let text = text.get(part.place.0..part.place.1).unwrap().trim();
                (part.event, part.keyspace.as_deref().unwrap(), part.scope.as_deref().unwrap(), text)
            })
            .collect();
        assert_eq!(
            parts,
            [
                (EventType::Update, "Used", "F", "UPDATE F SET a = 'é' WHERE KEY = 'APPLY'"),
                (EventType::Delete, "K", "G", "DELETE FROM K.G WHERE KEY = k"),
            ]
        );
    }
}
