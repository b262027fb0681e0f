//! Decides which events are written (`AuditLogFilter`).
//!
//! Keyspaces, categories and roles are included and excluded as in Cassandra, with one difference: failed logins,
//! refused statements, DDL, DCL and writes to the tables of `system_auth` are written whatever keyspaces are included or excluded, and whatever categories and
//! roles are included. In Cassandra they are dropped too, so a client hides its refused statements by `USE system`, a
//! keyspace that is excluded by default. `excluded_categories` and `excluded_users` hide them here as well. A keyspace counts only
//! if a statement is about its data: that of the session excludes nothing.

use std::collections::BTreeSet;

use helenus_cql::audit::{Category, EventType};

use super::entry::AuditEntry;
use super::options::{AuditOptions, InOut};

/// The names that are included and excluded.
#[derive(Clone, Debug)]
pub struct Filter {
    keyspaces: Names,
    categories: Names,
    users: Names,
}

#[derive(Clone, Debug)]
struct Names {
    included: BTreeSet<String>,
    excluded: BTreeSet<String>,
}

impl Names {
    fn of(lists: &InOut) -> Names {
        let set = |names: &str| {
            names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect::<BTreeSet<_>>()
        };
        Names { included: set(&lists.included), excluded: set(&lists.excluded) }
    }

    fn excludes(&self, name: Option<&str>) -> bool {
        name.is_some_and(|name| self.excluded.contains(name))
    }

    /// Whether others are included and this is not.
    fn leaves_out(&self, name: Option<&str>) -> bool {
        !self.included.is_empty() && !name.is_some_and(|name| self.included.contains(name))
    }
}

/// The keyspace of the tables of roles and rights.
const ACCESS_KEYSPACE: &str = "system_auth";

/// Whether an event is written whatever is included: a failed login, a refused statement, DDL, DCL, or a write that
/// changes rights without a statement about them.
pub fn is_always_written(entry: &AuditEntry<'_>) -> bool {
    match entry.event.category() {
        Category::Ddl | Category::Dcl => true,
        Category::Auth => entry.event != EventType::LoginSuccess,
        Category::Dml => own_keyspace(entry) == Some(ACCESS_KEYSPACE),
        Category::Query | Category::Other | Category::Error | Category::Prepare => false,
    }
}

/// The keyspace that a statement is about. That of its session says nothing about it.
fn own_keyspace<'a>(entry: &AuditEntry<'a>) -> Option<&'a str> {
    entry.keyspace.filter(|_| !entry.is_of_session)
}

/// Whether the lists of keyspaces are asked about an event: statements that failed, USE and DESCRIBE are not about the data of a
/// keyspace, and a batch is about those of its parts, which have entries of their own.
fn is_of_keyspaces(event: EventType) -> bool {
    let category = event.category();
    event != EventType::Batch && !matches!(category, Category::Error | Category::Other)
}

impl Filter {
    /// The filter of some options.
    pub fn new(options: &AuditOptions) -> Filter {
        Filter {
            keyspaces: Names::of(&options.keyspaces),
            categories: Names::of(&options.categories),
            users: Names::of(&options.users),
        }
    }

    /// Whether an event is written.
    pub fn passes(&self, entry: &AuditEntry<'_>) -> bool {
        let category = Some(entry.event.category().name());
        let user = entry.user.name();
        let user = user.as_deref();
        if self.categories.excludes(category) || self.users.excludes(user) {
            return false;
        }
        let keyspace = own_keyspace(entry);
        let is_of_others = is_of_keyspaces(entry.event)
            && (self.keyspaces.excludes(keyspace) || self.keyspaces.leaves_out(keyspace));
        is_always_written(entry)
            || !(is_of_others || self.categories.leaves_out(category) || self.users.leaves_out(user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::AuditUser;

    fn entry<'a>(event: EventType, user: &'a str, keyspace: Option<&'a str>) -> AuditEntry<'a> {
        AuditEntry {
            event,
            user: AuditUser::Role(user),
            source: None,
            timestamp_ms: 0,
            batch: None,
            keyspace,
            is_of_session: false,
            scope: None,
            operation: "x",
        }
    }

    #[test]
    fn excluded_wins_over_included_and_nothing_given_is_everything_but_system_keyspaces() {
        let filter = Filter::new(&AuditOptions::default());
        assert!(filter.passes(&entry(EventType::Select, "a", Some("k"))));
        assert!(filter.passes(&entry(EventType::Select, "a", None)));
        assert!(!filter.passes(&entry(EventType::Select, "a", Some("system"))));
        let keyspaces = InOut { included: "k,l".to_owned(), excluded: "l".to_owned() };
        let options = AuditOptions { keyspaces, ..AuditOptions::default() };
        let filter = Filter::new(&options);
        assert!(filter.passes(&entry(EventType::Select, "a", Some("k"))));
        assert!(!filter.passes(&entry(EventType::Select, "a", Some("l"))));
        assert!(!filter.passes(&entry(EventType::Select, "a", Some("m"))));
        assert!(!filter.passes(&entry(EventType::Select, "a", None)));
    }

    #[test]
    fn the_keyspace_of_a_session_hides_nothing() {
        let keyspaces = InOut { included: "k".to_owned(), excluded: "system".to_owned() };
        let filter = Filter::new(&AuditOptions { keyspaces, ..AuditOptions::default() });
        for event in
            [EventType::Batch, EventType::Describe, EventType::UseKeyspace, EventType::RequestFailure]
        {
            for keyspace in ["system", "k", "l"] {
                for is_of_session in [true, false] {
                    let entry = AuditEntry { is_of_session, ..entry(event, "a", Some(keyspace)) };
                    assert!(filter.passes(&entry), "{entry:?}");
                }
            }
        }
        let of_session =
            AuditEntry { is_of_session: true, ..entry(EventType::Update, "a", Some("system_auth")) };
        assert!(!is_always_written(&of_session));
        assert!(!filter.passes(&entry(EventType::Update, "a", Some("system"))));
    }

    #[test]
    fn refusals_and_changes_of_rights_are_hidden_by_no_keyspace() {
        let users = InOut { included: "b".to_owned(), excluded: "c".to_owned() };
        let mut options = AuditOptions { users, ..AuditOptions::default() };
        options.categories.included = "QUERY".to_owned();
        let filter = Filter::new(&options);
        assert!(filter.passes(&entry(EventType::Update, "a", Some("system_auth"))));
        for event in
            [EventType::UnauthorizedAttempt, EventType::LoginError, EventType::Grant, EventType::DropTable]
        {
            assert!(filter.passes(&entry(event, "a", Some("system"))), "{event:?}");
            assert!(!filter.passes(&entry(event, "c", Some("k"))), "{event:?}");
        }
        assert!(!filter.passes(&entry(EventType::LoginSuccess, "a", None)));
        options.categories.excluded = "DDL".to_owned();
        assert!(!Filter::new(&options).passes(&entry(EventType::DropTable, "a", Some("k"))));
    }
}
