//! The options of access control, under the names of Cassandra's classes.

use std::time::Duration;

/// How clients prove who they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authenticator {
    /// They need not.
    #[default]
    AllowAll,
    /// By name and password.
    Password,
    /// By the certificate that they show to TLS.
    MutualTls(CertificateValidator),
    /// By their certificate, or without one by name and password.
    MutualTlsOrPassword(CertificateValidator),
}

impl Authenticator {
    /// The names of the classes, without their package.
    pub const NAMES: &'static [&'static str] = &[
        "AllowAllAuthenticator",
        "PasswordAuthenticator",
        "MutualTlsAuthenticator",
        "MutualTlsWithPasswordFallbackAuthenticator",
    ];

    /// The authenticator of a class; `None` for a class that is not built, and for one that needs a validator without it.
    pub fn of_name(name: &str, validator: Option<CertificateValidator>) -> Option<Authenticator> {
        match name {
            "AllowAllAuthenticator" => Some(Authenticator::AllowAll),
            "PasswordAuthenticator" => Some(Authenticator::Password),
            "MutualTlsAuthenticator" => validator.map(Authenticator::MutualTls),
            "MutualTlsWithPasswordFallbackAuthenticator" => validator.map(Authenticator::MutualTlsOrPassword),
            _ => None,
        }
    }

    /// Whether clients may log in by name and password.
    pub fn takes_passwords(self) -> bool {
        matches!(self, Authenticator::Password | Authenticator::MutualTlsOrPassword(_))
    }

    /// What reads identities from certificates, if clients may log in by them.
    pub fn validator(self) -> Option<CertificateValidator> {
        match self {
            Authenticator::AllowAll | Authenticator::Password => None,
            Authenticator::MutualTls(validator) | Authenticator::MutualTlsOrPassword(validator) => {
                Some(validator)
            }
        }
    }

    /// The full name of the class, by which drivers choose how to log in.
    pub fn class(self) -> &'static str {
        match self {
            Authenticator::AllowAll => "org.apache.cassandra.auth.AllowAllAuthenticator",
            Authenticator::Password => "org.apache.cassandra.auth.PasswordAuthenticator",
            Authenticator::MutualTls(_) => "org.apache.cassandra.auth.MutualTlsAuthenticator",
            Authenticator::MutualTlsOrPassword(_) => {
                "org.apache.cassandra.auth.MutualTlsWithPasswordFallbackAuthenticator"
            }
        }
    }
}

/// What reads the identity of a client from its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateValidator {
    /// The first URI of its alternative names that begins with `spiffe://`.
    Spiffe,
    /// Its common name. Not a class of Cassandra.
    CommonName,
}

impl CertificateValidator {
    /// The names of the classes, without their package.
    pub const NAMES: &'static [&'static str] =
        &["SpiffeCertificateValidator", "CommonNameCertificateValidator"];

    /// The validator of a class; `None` for a class that is not built.
    pub fn of_name(name: &str) -> Option<CertificateValidator> {
        match name {
            "SpiffeCertificateValidator" => Some(CertificateValidator::Spiffe),
            "CommonNameCertificateValidator" => Some(CertificateValidator::CommonName),
            _ => None,
        }
    }
}

/// What roles are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorizer {
    /// Everything.
    #[default]
    AllowAll,
    /// What has been granted to them.
    Cassandra,
}

impl Authorizer {
    /// The names of the classes, without their package.
    pub const NAMES: &'static [&'static str] = &["AllowAllAuthorizer", "CassandraAuthorizer"];

    /// The authorizer of a class; `None` for a class that is not built.
    pub fn of_name(name: &str) -> Option<Authorizer> {
        match name {
            "AllowAllAuthorizer" => Some(Authorizer::AllowAll),
            "CassandraAuthorizer" => Some(Authorizer::Cassandra),
            _ => None,
        }
    }
}

/// Whether roles may be limited to datacenters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkAuthorizer {
    /// They may not: every role has access to all.
    #[default]
    AllowAll,
    /// ACCESS TO DATACENTERS counts.
    Cassandra,
}

impl NetworkAuthorizer {
    /// The names of the classes, without their package.
    pub const NAMES: &'static [&'static str] = &["AllowAllNetworkAuthorizer", "CassandraNetworkAuthorizer"];

    /// The authorizer of a class; `None` for a class that is not built.
    pub fn of_name(name: &str) -> Option<NetworkAuthorizer> {
        match name {
            "AllowAllNetworkAuthorizer" => Some(NetworkAuthorizer::AllowAll),
            "CassandraNetworkAuthorizer" => Some(NetworkAuthorizer::Cassandra),
            _ => None,
        }
    }
}

/// What the networks to which roles are limited mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CidrAuthorizer {
    /// Nothing: every role has access from everywhere.
    #[default]
    AllowAll,
    /// Access from elsewhere is reported and allowed.
    Monitor,
    /// Access from elsewhere is refused.
    Enforce,
}

/// The options of access control.
#[derive(Clone, Debug)]
pub struct AccessOptions {
    /// How clients prove who they are.
    pub authenticator: Authenticator,
    /// What roles are allowed.
    pub authorizer: Authorizer,
    /// How long the roles of a role are cached; zero for not at all.
    pub roles_validity: Duration,
    /// How long the permissions of a role are cached.
    pub permissions_validity: Duration,
    /// How long the hash of a password is cached.
    pub credentials_validity: Duration,
    /// Whether roles may be limited to datacenters.
    pub network: NetworkAuthorizer,
    /// What the networks to which roles are limited mean.
    pub cidr: CidrAuthorizer,
    /// Whether superusers are limited to networks too.
    pub checks_cidrs_of_superusers: bool,
    /// How long the groups of networks are cached.
    pub cidr_groups_interval: Duration,
    /// The least time between two changes of a role's password
    /// (`cassandra.role_password_update_min_interval_in_ms`).
    pub password_interval: Duration,
    /// The cost of new hashes of passwords, one of `PASSWORD_COSTS`. A login stores the hash again if its cost is another.
    pub password_cost: u32,
    /// Whether the default password of the role `cassandra` is accepted from other machines.
    pub allows_default_password: bool,
}

impl Default for AccessOptions {
    /// No logins, and the times of Cassandra 5.0.9.
    fn default() -> AccessOptions {
        AccessOptions {
            authenticator: Authenticator::AllowAll,
            authorizer: Authorizer::AllowAll,
            roles_validity: Duration::from_secs(2),
            permissions_validity: Duration::from_secs(2),
            credentials_validity: Duration::from_secs(2),
            network: NetworkAuthorizer::AllowAll,
            cidr: CidrAuthorizer::AllowAll,
            checks_cidrs_of_superusers: false,
            cidr_groups_interval: Duration::from_mins(5),
            password_interval: Duration::from_secs(5),
            password_cost: super::passwords::COST_DEFAULT,
            allows_default_password: false,
        }
    }
}
