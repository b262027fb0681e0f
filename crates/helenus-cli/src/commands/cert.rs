//! `helenus cert`: makes an authority, and certificates of a server and a client that it signs, for a test.

use anyhow::{Context, Result, bail};
use clap::Args;
use helenus_host::Host;
use helenus_tls::{
    Authority, CertificateRequest, MadeCertificate, StoreSeal, Stores, key_store, trust_store,
};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "Examples:
  helenus cert                                   in ./certs, for localhost and the addresses of the loopback
  helenus cert certs --host db.example --host 10.0.0.7 --days 30
  helenus serve --tls-cert certs/server.pem --tls-client-ca certs/ca.pem
  openssl s_client -connect 127.0.0.1:9042 -CAfile certs/ca.pem -cert certs/client.pem

ca.pem is what both sides trust. server.pem and client.pem have a private key and its certificate, as Cassandra's
PEMBasedSslContextFactory reads them; .key and .crt have them apart. For Java, server.p12 and client.p12 are key stores
and ca.p12 is a trust store; those that end in .jks are the same in the older format. Whoever has ca.key can make more
certificates: for a network of others, use the authority of your own.";

/// Hosts that a server's certificate is for, unless others are given.
const OWN_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Options of the command.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct CertCommand {
    /// The folder for the files, which is created
    #[arg(value_name = "DIR", default_value = "certs")]
    directory: PathBuf,
    /// A name or address of the server, besides localhost, 127.0.0.1 and ::1
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// The name in the client's certificate
    #[arg(long, value_name = "NAME", default_value = "client")]
    client: String,
    /// A URI in the client's certificate, such as a SPIFFE identity
    #[arg(long, value_name = "URI")]
    client_uri: Vec<String>,
    /// The password of the stores
    #[arg(long, value_name = "PASSWORD", default_value = "changeit")]
    store_password: String,
    /// How long the certificates are valid
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(i64).range(1..=36_500))]
    days: i64,
}

/// Makes the certificates.
pub fn run(host: &Host, command: &CertCommand) -> Result<()> {
    let directory = &command.directory;
    let authority = Authority::new("Helenus test authority", host.clock.wall_us() / 1_000_000, command.days)?;
    let mut hosts: Vec<String> = OWN_HOSTS.map(str::to_owned).to_vec();
    hosts.extend(command.hosts.iter().filter(|host| !OWN_HOSTS.contains(&host.as_str())).cloned());
    let name = command.hosts.first().cloned().unwrap_or_else(|| "localhost".to_owned());
    let server = CertificateRequest { name, hosts, uris: Vec::new(), is_for_server: true };
    let client = CertificateRequest {
        name: command.client.clone(),
        hosts: Vec::new(),
        uris: command.client_uri.clone(),
        is_for_server: false,
    };
    let own = authority.own();
    let mut files = vec![
        ("ca.pem".to_owned(), own.certificate.clone().into_bytes()),
        ("ca.key".to_owned(), own.key.clone().into_bytes()),
    ];
    let seal = StoreSeal {
        password: &command.store_password,
        time_ms: u64::try_from(host.clock.wall_us() / 1000).unwrap_or_default(),
        fill: &|bytes| host.random.fill(bytes),
    };
    files.extend(stores("ca", trust_store(own, &seal)));
    for (name, request) in [("server", server), ("client", client)] {
        let made = authority.sign(&request)?;
        files.extend(texts(name, &made));
        files.extend(stores(name, key_store(&made, own, &seal)));
    }
    if let Some((name, _)) = files.iter().find(|(name, _)| host.disk.exists(&directory.join(name))) {
        bail!("{} is there already; give another folder, or remove it", directory.join(name).display());
    }
    host.disk.create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    for (name, bytes) in &files {
        let path = directory.join(name);
        write(host, &path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    say!("{}: {}", directory.display(), names.join(", "))?;
    let at = |name: &str| directory.join(name).display().to_string();
    say!("helenus serve --tls-cert {} --tls-client-ca {}", at("server.pem"), at("ca.pem"))?;
    say!("openssl s_client -connect 127.0.0.1:9042 -CAfile {} -cert {}", at("ca.pem"), at("client.pem"))?;
    Ok(())
}

fn texts(name: &str, made: &MadeCertificate) -> [(String, Vec<u8>); 3] {
    let both = format!("{}{}", made.key, made.certificate);
    [("pem", &both), ("crt", &made.certificate), ("key", &made.key)]
        .map(|(ending, text)| (format!("{name}.{ending}"), text.clone().into_bytes()))
}

fn stores(name: &str, stores: Stores) -> [(String, Vec<u8>); 2] {
    [(format!("{name}.p12"), stores.pkcs12), (format!("{name}.jks"), stores.jks)]
}

/// Writes a new file that only its owner may read.
fn write(host: &Host, path: &Path, bytes: &[u8]) -> Result<()> {
    let file = host.disk.create(path)?;
    file.write_all_at(bytes, 0)?;
    file.sync()?;
    Ok(())
}
