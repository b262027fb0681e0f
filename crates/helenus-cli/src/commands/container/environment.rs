//! Turns the environment of Cassandra's official image into options of `helenus serve`.
//!
//! The variables and their defaults are those of `docker-entrypoint.sh` of the image `cassandra:5.0`, which writes them
//! into `cassandra.yaml` and `cassandra-rackdc.properties`. Here they win over the files without a change of them, so
//! that the files may be read-only. Variables of the JVM and of a cluster have no effect.

use super::place::{class, property, top_level};
use super::seeds;
use anyhow::{Result, bail};
use helenus_server::config::OPTIONS;

/// What a node finds around it.
pub struct Surroundings<'a> {
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of `cassandra.yaml`.
    pub yaml: &'a str,
    /// The text of `cassandra-rackdc.properties`; empty if there is none.
    pub rackdc: &'a str,
    /// The address of this machine that others reach.
    pub own_address: &'a dyn Fn() -> String,
    /// Whether a name or an address is this machine's.
    pub is_own: &'a dyn Fn(&str) -> bool,
}

/// Options of `helenus serve`, and notes for the log.
#[derive(Debug, Default)]
pub struct Options {
    /// Keys with their values, which win over the configuration file.
    pub set: Vec<(&'static str, String)>,
    /// Variables whose effect a user may miss.
    pub notes: Vec<String>,
    /// The password of the role that `password_role` names.
    pub password: Option<String>,
}

impl Options {
    /// Adds the options that variables `HELENUS_KEY` set.
    pub fn add_own(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        for option in OPTIONS {
            let value = variable(&format!("HELENUS_{}", option.key.to_ascii_uppercase()));
            self.set.extend(value.filter(|value| !value.is_empty()).map(|value| (option.key, value)));
        }
    }
}

impl Options {
    /// Serves whoever reaches the container, as the official images do, unless something turns logins on: then the server is as careful
    /// as anywhere else, and the default password counts inside the container alone. Variables of the server's options still win.
    pub fn let_in_without_logins(&mut self, yaml: &str) {
        let given =
            |wanted: &str| self.set.iter().rfind(|(key, _)| *key == wanted).map(|(_, value)| value.as_str());
        let authenticator = given("authenticator").or_else(|| class(yaml, "authenticator"));
        let is_open =
            authenticator.is_none_or(|class| class.rsplit('.').next() == Some("AllowAllAuthenticator"));
        let has_password = given("password_file").is_some() || self.password.is_some();
        if is_open && !has_password && given("insecure_no_login").is_none() {
            self.set.push(("insecure_no_login", "true".to_owned()));
        }
    }
}

/// Variables with an address by which others reach this node, the one for clients first.
const OWN_ADDRESSES: [&str; 3] =
    ["CASSANDRA_BROADCAST_RPC_ADDRESS", "CASSANDRA_BROADCAST_ADDRESS", "CASSANDRA_LISTEN_ADDRESS"];

impl Surroundings<'_> {
    /// A variable that is set and not empty.
    fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// The options that the environment means.
    ///
    /// # Errors
    /// A name is given without its password; a seed is another machine.
    pub fn options(&self) -> Result<Options> {
        let mut options = Options::default();
        let mut set = |key, value| options.set.push((key, value));
        set("log_format", "cassandra".to_owned());
        set("rpc_address", self.get("CASSANDRA_RPC_ADDRESS").unwrap_or_else(|| "0.0.0.0".to_owned()));
        set("broadcast_rpc_address", self.told_address());
        if let Some(name) = self.get("CASSANDRA_CLUSTER_NAME") {
            set("cluster_name", name);
        }
        if let Some(switch) = self.get("CASSANDRA_START_RPC") {
            set("start_rpc", switch);
        }
        self.place_names(&mut options);
        if let Some(seeds) = self.get("CASSANDRA_SEEDS") {
            let is_allowed = self.get(seeds::ALLOWED).is_some_and(|value| value == "true");
            // Others may reach this node by an address that no socket of a container can have.
            let told = OWN_ADDRESSES.map(|name| self.get(name));
            let is_own = |seed: &str| told.iter().flatten().any(|own| own == seed) || (self.is_own)(seed);
            options.notes.extend(seeds::check(("CASSANDRA_SEEDS", &seeds), &is_own, is_allowed)?);
        }
        self.logins(&mut options)?;
        options.add_own(self.variable);
        options.let_in_without_logins(self.yaml);
        Ok(options)
    }

    /// The address that clients are told: `CASSANDRA_BROADCAST_RPC_ADDRESS`, else the one for other nodes, which is the
    /// container's by default.
    fn told_address(&self) -> String {
        let given =
            OWN_ADDRESSES.into_iter().find_map(|name| self.get(name)).filter(|address| address != "auto");
        given.unwrap_or_else(|| (self.own_address)())
    }

    /// Data center and rack. SimpleSnitch, Cassandra's default, has fixed names and reads neither file nor variable.
    fn place_names(&self, options: &mut Options) {
        let snitch = self.get("CASSANDRA_ENDPOINT_SNITCH");
        let snitch = snitch.as_deref().or_else(|| top_level(self.yaml, "endpoint_snitch"));
        let is_simple = snitch.is_none_or(|name| name.rsplit('.').next() == Some("SimpleSnitch"));
        for (key, name, in_file) in [("datacenter", "CASSANDRA_DC", "dc"), ("rack", "CASSANDRA_RACK", "rack")]
        {
            let given = self.get(name);
            if !is_simple {
                let in_file = || property(self.rackdc, in_file).map(str::to_owned);
                options.set.extend(given.or_else(in_file).map(|value| (key, value)));
            } else if let Some(value) = given {
                options.notes.push(format!(
                    "{name}={value} has no effect with SimpleSnitch, as in Cassandra: set \
                     CASSANDRA_ENDPOINT_SNITCH=GossipingPropertyFileSnitch"
                ));
            }
        }
    }

    /// Turns logins on for a name and password. The pair `cassandra` alone changes nothing: some test tools always set it, and
    /// Cassandra's image takes any login.
    fn logins(&self, options: &mut Options) -> Result<()> {
        let [name, password] = ["CASSANDRA_USERNAME", "CASSANDRA_PASSWORD"].map(|name| self.get(name));
        let is_default = |word: &Option<String>| word.as_deref().is_none_or(|word| word == "cassandra");
        if is_default(&name) && is_default(&password) {
            return Ok(());
        }
        let name = name.unwrap_or_else(|| "cassandra".to_owned());
        let Some(password) = password else {
            bail!(
                "CASSANDRA_USERNAME={name} without CASSANDRA_PASSWORD: give both, or neither to go on without logins"
            )
        };
        if password.contains('\n') {
            bail!("CASSANDRA_PASSWORD has several lines; give one");
        }
        options.set.push(("authenticator", "PasswordAuthenticator".to_owned()));
        options.set.push(("password_role", name));
        options.password = Some(password);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(variables: &[(&str, &str)], yaml: &str, rackdc: &str) -> Result<Options> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let own_address = || "172.17.0.2".to_owned();
        let is_own = |name: &str| name == "db";
        Surroundings { variable: &variable, yaml, rackdc, own_address: &own_address, is_own: &is_own }
            .options()
    }

    fn value(options: &Options, key: &str) -> Option<String> {
        // The last one wins, as on the command line.
        options.set.iter().rfind(|(known, _)| *known == key).map(|(_, value)| value.clone())
    }

    #[test]
    fn the_variables_of_a_testcontainers_module_set_the_data_center() {
        let variables = [
            ("JVM_OPTS", "-Dcassandra.skip_wait_for_gossip_to_settle=0"),
            ("CASSANDRA_ENDPOINT_SNITCH", "GossipingPropertyFileSnitch"),
            ("CASSANDRA_DC", "dc7"),
        ];
        let found = options(&variables, "endpoint_snitch: SimpleSnitch\n", "dc=dc1\nrack=r4\n").unwrap();
        assert_eq!(value(&found, "datacenter").as_deref(), Some("dc7"));
        assert_eq!(value(&found, "rack").as_deref(), Some("r4"));
        assert_eq!(value(&found, "rpc_address").as_deref(), Some("0.0.0.0"));
        assert_eq!(value(&found, "broadcast_rpc_address").as_deref(), Some("172.17.0.2"));
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }

    #[test]
    fn a_seed_that_is_another_machine_is_refused() {
        let with = |given: &[(&str, &str)]| options(given, "", "");
        assert!(with(&[("CASSANDRA_SEEDS", "db")]).unwrap().notes.is_empty());
        let told = [("CASSANDRA_SEEDS", "203.0.113.7"), ("CASSANDRA_BROADCAST_ADDRESS", "203.0.113.7")];
        assert!(with(&told).unwrap().notes.is_empty(), "its own address, behind another machine's");
        let text = with(&[("CASSANDRA_SEEDS", "db,e1")]).unwrap_err().to_string();
        assert!(text.contains("another machine, e1"), "{text}");
        let allowed = with(&[("CASSANDRA_SEEDS", "e1"), ("HELENUS_IGNORE_SEEDS", "true")]).unwrap();
        assert_eq!(allowed.notes.len(), 1);
    }

    #[test]
    fn only_without_logins_is_everybody_let_in() {
        const OFF: &str = "authenticator: AllowAllAuthenticator\n";
        // As Cassandra 5.0 has it.
        const OFF_MAP: &str = "authenticator:\n  class_name : AllowAllAuthenticator\n# parameters:\nx: y\n";
        const ON: &str = "authenticator: PasswordAuthenticator\n";
        const MAP: &str = "authenticator:\n  - class_name: org.apache.cassandra.auth.PasswordAuthenticator\n";
        let password = [("CASSANDRA_PASSWORD", "secret")];
        let class = [("HELENUS_AUTHENTICATOR", "PasswordAuthenticator")];
        let file = [("HELENUS_PASSWORD_FILE", "/run/secrets/password")];
        let off = [("HELENUS_AUTHENTICATOR", "AllowAllAuthenticator")];
        for (variables, yaml, is_open) in [
            (&[][..], OFF, true),
            (&[], OFF_MAP, true),
            (&[], "", true),
            (&[], "authenticator:\nx: y\n", true),
            (&off, ON, true),
            (&[], ON, false),
            (&[], MAP, false),
            (&password, OFF, false),
            (&class, OFF, false),
            (&file, OFF, false),
        ] {
            let found = options(variables, yaml, "").unwrap();
            assert_eq!(value(&found, "insecure_no_login").is_some(), is_open, "{variables:?} {yaml}");
            assert_eq!(value(&found, "allow_default_password"), None, "{variables:?} {yaml}");
        }
        let chosen = [("HELENUS_ALLOW_DEFAULT_PASSWORD", "true")];
        let found = options(&chosen, ON, "").unwrap();
        assert_eq!(value(&found, "allow_default_password").as_deref(), Some("true"));
    }

    #[test]
    fn simple_snitch_ignores_the_data_center_and_says_so() {
        let found =
            options(&[("CASSANDRA_DC", "dc7")], "endpoint_snitch: SimpleSnitch\n", "dc=dc1\n").unwrap();
        assert_eq!(value(&found, "datacenter"), None);
        assert!(found.notes.iter().any(|note| note.contains("SimpleSnitch")), "{:?}", found.notes);
    }

    #[test]
    fn any_option_has_a_variable_which_wins() {
        let variables = [
            ("CASSANDRA_BROADCAST_ADDRESS", "auto"),
            ("CASSANDRA_CLUSTER_NAME", "c"),
            ("HELENUS_MEMORY_LIMIT", "64MiB"),
            ("HELENUS_CLUSTER_NAME", "d"),
        ];
        let found = options(&variables, "", "").unwrap();
        assert_eq!(value(&found, "memory_limit").as_deref(), Some("64MiB"));
        assert_eq!(value(&found, "cluster_name").as_deref(), Some("d"));
        assert_eq!(value(&found, "broadcast_rpc_address").as_deref(), Some("172.17.0.2"));
    }

    #[test]
    fn a_name_and_a_password_turn_logins_on_and_those_of_test_tools_do_not() {
        let with = |given: &[(&str, &str)]| {
            let variables: Vec<(&str, &str)> = given.to_vec();
            options(&variables, "authenticator: AllowAllAuthenticator\n", "").map(|found| {
                let role = value(&found, "password_role");
                (value(&found, "authenticator").is_some(), role, found.password)
            })
        };
        let (name, password) = ("CASSANDRA_USERNAME", "CASSANDRA_PASSWORD");
        assert_eq!(with(&[(name, "cassandra"), (password, "cassandra")]).unwrap(), (false, None, None));
        let role = |text: &str| Some(text.to_owned());
        assert_eq!(with(&[(password, "secret")]).unwrap(), (true, role("cassandra"), role("secret")));
        assert_eq!(with(&[(name, "me"), (password, "pw")]).unwrap(), (true, role("me"), role("pw")));
        assert!(with(&[(name, "me")]).unwrap_err().to_string().contains("CASSANDRA_PASSWORD"));
        assert!(with(&[(password, "a\nb")]).is_err());
    }
}
