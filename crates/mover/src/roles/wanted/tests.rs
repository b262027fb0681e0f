//! Which statements make the roles of two sides the same.

use super::*;

const HASH: &str = "$2a$10$hash";

fn role(permissions: &[(&str, &[&str])]) -> Role {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Role {
        can_login: true,
        hash: Some(HASH.to_owned()),
        permissions: permissions.iter().map(|(of, names)| ((*of).to_owned(), set(names))).collect(),
        ..Role::default()
    }
}

fn named(roles: &[(&str, Role)]) -> Roles {
    roles.iter().map(|(name, role)| ((*name).to_owned(), role.clone())).collect()
}

fn compared(here: &Roles, there: &Roles, made: &[&str]) -> Wanted {
    let made = made.iter().map(|name| (*name).to_owned()).collect();
    let tables = [("shop".to_owned(), "orders".to_owned())].into();
    let facts = Facts { version: (5, 0), limits_datacenters: true, datacenters: ["dc1".to_owned()].into() };
    wanted((here, there), &made, &tables, &facts)
}

fn shown(wanted: &Wanted) -> Vec<&str> {
    wanted.shown().collect()
}

#[test]
fn a_new_role_goes_with_its_hash_its_memberships_and_what_it_may_do_with_moved_tables() {
    let mut app = role(&[
        ("data/shop/orders", &["SELECT", "MODIFY"]),
        ("data/shop", &["CREATE"]),
        ("data/shop/*", &["SELECT"]),
        ("data/shop/others", &["SELECT"]),
        ("data/system_auth/roles", &["SELECT"]),
        ("roles/Team", &["DESCRIBE"]),
    ]);
    app.member_of.insert("Team".to_owned());
    app.datacenters.insert("dc1".to_owned());
    let mut team = role(&[("data", &["SELECT"])]);
    (team.can_login, team.hash) = (false, None);
    team.datacenters.insert("elsewhere".to_owned());
    let here = named(&[("app", app), ("Team", team), ("cassandra", role(&[("data", &["DROP"])]))]);
    let wanted = compared(&here, &named(&[("cassandra", role(&[]))]), &[]);
    assert_eq!(
        shown(&wanted),
        [
            "CREATE ROLE IF NOT EXISTS \"Team\" WITH LOGIN = false AND SUPERUSER = false",
            "CREATE ROLE IF NOT EXISTS app WITH HASHED PASSWORD = '...' AND LOGIN = true AND SUPERUSER = false",
            "ALTER ROLE app WITH ACCESS TO DATACENTERS {'dc1'}",
            "GRANT \"Team\" TO app",
            "GRANT SELECT ON ALL KEYSPACES TO \"Team\"",
            "GRANT CREATE ON KEYSPACE shop TO app",
            "GRANT SELECT ON ALL TABLES IN KEYSPACE shop TO app",
            "GRANT MODIFY ON TABLE shop.orders TO app",
            "GRANT SELECT ON TABLE shop.orders TO app",
            "GRANT DESCRIBE ON ROLE \"Team\" TO app",
        ]
    );
    assert!(wanted.steps[1].text.contains(HASH));
    let notes = wanted.notes.join("\n");
    for part in
        ["cassandra is not moved", "data/shop/others", "data/system_auth/roles", "elsewhere", "what else"]
    {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert_eq!(wanted.made.len(), 2);
}

#[test]
fn a_role_that_the_target_has_is_left_alone_unless_it_is_the_same() {
    let here =
        named(&[("one", role(&[("data/shop", &["SELECT"])])), ("two", role(&[("data/shop", &["SELECT"])]))]);
    let mut other = role(&[]);
    other.hash = Some("else".to_owned());
    other.is_superuser = true;
    let wanted = compared(&here, &named(&[("one", role(&[])), ("two", other)]), &[]);
    assert_eq!(shown(&wanted), ["GRANT SELECT ON KEYSPACE shop TO one"]);
    assert!(wanted.notes[0].contains("one is at the target already, and is the same"));
    assert!(wanted.notes[1].contains("another password and SUPERUSER = true"), "{}", wanted.notes[1]);
    assert!(wanted.made.is_empty());
}

#[test]
fn a_role_that_the_move_has_made_follows_the_one_here() {
    let here = named(&[("app", role(&[("data/shop", &["SELECT"])]))]);
    let mut before =
        role(&[("data/shop", &["MODIFY"]), ("data/shop/orders", &["DROP"]), ("data/else", &["DROP"])]);
    before.hash = Some("before".to_owned());
    before.member_of.insert("team".to_owned());
    let there = named(&[("app", before), ("dropped", role(&[])), ("foreign", role(&[]))]);
    let wanted = compared(&here, &there, &["app", "dropped"]);
    assert_eq!(
        shown(&wanted),
        [
            "ALTER ROLE app WITH HASHED PASSWORD = '...' AND LOGIN = true AND SUPERUSER = false",
            "REVOKE team FROM app",
            "GRANT SELECT ON KEYSPACE shop TO app",
            "REVOKE MODIFY ON KEYSPACE shop FROM app",
            "REVOKE DROP ON TABLE shop.orders FROM app",
            "DROP ROLE IF EXISTS dropped",
        ]
    );
    // Once it was sent, there is nothing more to do.
    let wanted = compared(&here, &here, &["app"]);
    assert_eq!(shown(&wanted), [""; 0]);
}

#[test]
fn a_version_that_takes_no_hashes_is_a_problem() {
    let facts = Facts { version: (4, 0), ..Facts::default() };
    let roles = named(&[("app", role(&[]))]);
    let wanted = wanted((&roles, &Roles::new()), &BTreeSet::new(), &BTreeSet::new(), &facts);
    assert!(wanted.problems[0].contains("4.0 takes no HASHED PASSWORD"));
    assert!(wanted.steps.is_empty());
}

#[test]
fn a_role_with_a_quote_in_its_name_stays_here_and_is_not_dropped_there() {
    let mut member = role(&[]);
    member.member_of.insert("it's".to_owned());
    let here = named(&[("it's", role(&[])), ("app", member)]);
    let wanted = compared(&here, &named(&[]), &[]);
    assert!(shown(&wanted).iter().all(|text| !text.contains("it's")), "{:?}", shown(&wanted));
    assert!(
        wanted.notes.iter().any(|note| note.contains("the role it's is not moved")),
        "{:?}",
        wanted.notes
    );
    // A move that has tried to make it, before it was dropped here.
    let gone = compared(&named(&[]), &named(&[("it's", role(&[])), ("old", role(&[]))]), &["it's", "old"]);
    assert_eq!(shown(&gone), ["DROP ROLE IF EXISTS old"]);
}
