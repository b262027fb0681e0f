//! Turns the environment of Cassandra's official image into options of `helenus serve`.
//!
//! The variables and their defaults are those of `docker-entrypoint.sh` of the image `cassandra:5.0`, which writes them
//! into `cassandra.yaml` and `cassandra-rackdc.properties`. Here they win over the files without a change of them, so
//! that the files may be read-only. Variables of the JVM and of a cluster have no effect.

use super::place::{property, top_level};
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
}

/// Options of `helenus serve`, and notes for the log.
#[derive(Debug, Default)]
pub struct Options {
    /// Keys with their values, which win over the configuration file.
    pub set: Vec<(&'static str, String)>,
    /// Variables whose effect a user may miss.
    pub notes: Vec<String>,
}

impl Surroundings<'_> {
    /// A variable that is set and not empty.
    fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// The options that the environment means.
    ///
    /// # Errors
    /// A variable asks for a login in a way that this server does not have.
    pub fn options(&self) -> Result<Options> {
        self.refuse_logins()?;
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
        // As in the official image, whoever reaches the container is served, and the default password is one.
        set("insecure_no_login", "true".to_owned());
        set("allow_default_password", "true".to_owned());
        self.place_names(&mut options);
        if let Some(seeds) = self.get("CASSANDRA_SEEDS") {
            options.notes.push(format!(
                "CASSANDRA_SEEDS={seeds}: this node joins no cluster; it is one node with all the data"
            ));
        }
        for option in OPTIONS {
            if let Some(value) = self.get(&format!("HELENUS_{}", option.key.to_ascii_uppercase())) {
                options.set.push((option.key, value));
            }
        }
        Ok(options)
    }

    /// The address that clients are told: `CASSANDRA_BROADCAST_RPC_ADDRESS`, else the one for other nodes, which is the
    /// container's by default.
    fn told_address(&self) -> String {
        let names =
            ["CASSANDRA_BROADCAST_RPC_ADDRESS", "CASSANDRA_BROADCAST_ADDRESS", "CASSANDRA_LISTEN_ADDRESS"];
        let given = names.into_iter().find_map(|name| self.get(name)).filter(|address| address != "auto");
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

    /// Refuses a name and password, which a user expects to be asked for. The pair `cassandra` is let through: some test
    /// tools always set it, and Cassandra's image takes any login.
    fn refuse_logins(&self) -> Result<()> {
        let [name, password] = ["CASSANDRA_USERNAME", "CASSANDRA_PASSWORD"].map(|name| self.get(name));
        let is_default = |word: &Option<String>| word.as_deref().is_none_or(|word| word == "cassandra");
        if is_default(&name) && is_default(&password) {
            return Ok(());
        }
        bail!(
            "CASSANDRA_USERNAME and CASSANDRA_PASSWORD have no effect; for logins set HELENUS_AUTHENTICATOR=PasswordAuthenticator \
             and HELENUS_PASSWORD_FILE=FILE, whose first line is the password of cassandra; or remove both to go on without \
             logins"
        )
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
        Surroundings { variable: &variable, yaml, rackdc, own_address: &own_address }.options()
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
    fn a_login_other_than_the_default_is_refused() {
        let with = |name, password| {
            options(&[("CASSANDRA_USERNAME", name), ("CASSANDRA_PASSWORD", password)], "", "")
        };
        assert!(with("cassandra", "cassandra").is_ok());
        assert!(with("cassandra", "secret").is_err());
        assert!(with("me", "cassandra").unwrap_err().to_string().contains("HELENUS_PASSWORD_FILE"));
    }
}
