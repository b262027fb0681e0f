//! Trust stores: for each store that OpenSSL and keytool write, and each kind of client's certificate, a server decides as Java does. Where
//! it is stricter, a table here says why; it is more lenient for stores alone that are empty for Java.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use helenus_tls::rustls::{ClientConnection, ServerConnection};
use helenus_tls::{
    ClientCertificates, ClientOptions, EncryptionOptions, Factory, PemParameters, ReadFile, ServerTls,
    ServerTrust, client_config, server_name,
};
use tempfile::TempDir;

const PASSWORD: &str = "changeit";

/// Certificates that Java trusts and a server refuses, and why.
const STRICTER: [(&str, &str); 3] = [
    (
        "any-purpose",
        "rustls wants the purpose of clients itself, not any purpose (RFC 5280, 4.2.1.12, permits that)",
    ),
    ("version-1", "rustls knows certificates of version 3 alone"),
    ("expired-self-signed", "Java looks at no date of a certificate that is itself in the store"),
];

/// What Java does not trust and a server does, and why. Stores that are wholly unmarked are not here: Java is asked of another store in
/// their place.
const MORE_LENIENT: [(&str, &str, &str); 1] = [(
    "keys-plain.p12",
    "server",
    "Java passes over a key that is not encrypted; here its own certificate is trusted, as that of any other key",
)];

/// A folder of keys, certificates and stores.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(TempDir::with_prefix("helenus-trust-").expect("a temporary directory"))
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn run(&self, line: &str) {
        let mut words = line.split_whitespace();
        let program = words.next().expect("a program");
        let done = Command::new(program).args(words).current_dir(self.0.path()).output().expect("a program");
        let errors = [&done.stdout[..], &done.stderr].concat();
        assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&errors));
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("written");
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).expect("a file")
    }

    /// A certificate that signs itself.
    fn self_signed(&self, name: &str, extensions: &str, days: i32) {
        self.request(name);
        self.put(&format!("{name}.ext"), extensions);
        self.run(&format!(
            "openssl x509 -req -in {name}.csr -signkey {name}.key -days {days} -extfile {name}.ext -out {name}.crt"
        ));
        self.put(&format!("{name}.pem"), &self.text(&format!("{name}.crt")));
    }

    /// A certificate of another's key. No extensions: one of version 1.
    fn signed(&self, name: &str, issuer: &str, extensions: Option<&str>, days: i32) {
        self.request(name);
        let mut line = format!(
            "openssl x509 -req -in {name}.csr -CA {issuer}.crt -CAkey {issuer}.key -CAcreateserial -days {days} -out {name}.crt"
        );
        if let Some(extensions) = extensions {
            self.put(&format!("{name}.ext"), extensions);
            line += &format!(" -extfile {name}.ext");
        }
        self.run(&line);
        self.put(&format!("{name}.pem"), &self.text(&format!("{name}.crt")));
    }

    fn request(&self, name: &str) {
        self.run(&format!("openssl ecparam -name prime256v1 -genkey -noout -out {name}.ec"));
        self.run(&format!("openssl pkcs8 -topk8 -nocrypt -in {name}.ec -out {name}.key"));
        self.run(&format!("openssl req -new -key {name}.key -subj /CN={name} -out {name}.csr"));
    }

    /// Whether a server with this trust store lets in a client that shows a certificate, by the handshake itself.
    fn lets_in(&self, options: &EncryptionOptions, certificate: &str) -> Result<(), String> {
        let folder = self.0.path().to_owned();
        let read: ReadFile = Arc::new(move |path: &Path| fs::read(folder.join(path)));
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64;
        let server = ServerTls::load(options, Arc::clone(&read), now_s).map_err(|error| error.to_string())?;
        let client = ClientOptions {
            trust: ServerTrust::Anybody,
            certificate: Some(format!("{certificate}.pem")),
            key: Some(format!("{certificate}.key")),
        };
        let config = client_config(&client, &read).map_err(|error| error.to_string())?;
        let name = server_name("localhost").expect("a name");
        let mut client = ClientConnection::new(config, name).expect("a client");
        let mut server =
            ServerConnection::new(server.expect("TLS is on").config()).expect("a session of the server");
        client.writer().write_all(b"ping").expect("kept");
        for _ in 0..8 {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).expect("kept");
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                server.read_tls(&mut rest).expect("read");
                server.process_new_packets().map_err(|error| error.to_string())?;
            }
            let mut bytes = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut bytes).expect("kept");
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                client.read_tls(&mut rest).expect("read");
                client.process_new_packets().map_err(|error| error.to_string())?;
            }
        }
        let mut word = [0; 4];
        server.reader().read_exact(&mut word).map_err(|error| error.to_string())
    }
}

fn options(truststore: &str, password: Option<&str>) -> EncryptionOptions {
    EncryptionOptions {
        enabled: true,
        keystore: Some("keys.p12".to_owned()),
        keystore_password: Some(PASSWORD.to_owned()),
        truststore: Some(truststore.to_owned()),
        truststore_password: password.map(str::to_owned),
        client_certificates: ClientCertificates::Required,
        factory: match truststore.ends_with(".pem") {
            true => Factory::Pem(PemParameters::default()),
            false => Factory::Stores,
        },
        ..EncryptionOptions::default()
    }
}

/// What Java says of each store, password and certificate.
fn java(folder: &Folder, questions: &[(&str, Option<&str>, &str)]) -> Vec<String> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/java/Trusts.java");
    let mut command = Command::new("java");
    command.arg(program).current_dir(folder.0.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("run java");
    let lines: String = questions
        .iter()
        .map(|(store, password, certificate)| {
            format!("{store}\t{}\t{certificate}.pem\n", password.unwrap_or("-"))
        })
        .collect();
    let mut stdin = child.stdin.take().expect("its input");
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).expect("write to java"));
    let output = child.wait_with_output().expect("wait for java");
    writer.join().expect("all written");
    assert!(output.status.success(), "java failed");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

const CA: &str = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n";
const CLIENT: &str = "keyUsage=digitalSignature\nextendedKeyUsage=clientAuth\n";
const BOTH: &str = "keyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n";

/// Clients' certificates of every kind; all but the first two must be named by a store to be trusted, or never are.
const CERTIFICATES: [&str; 14] = [
    "of-ca",
    "of-intermediate",
    "of-other",
    "of-server-key",
    "of-self-signed",
    "server",
    "self-signed",
    "expired-self-signed",
    "server-only",
    "no-signature",
    "any-purpose",
    "no-purpose",
    "version-1",
    "expired",
];

fn make_certificates(folder: &Folder) {
    folder.self_signed("ca", CA, 30);
    folder.self_signed("other-ca", CA, 30);
    folder.self_signed("self-signed", "keyUsage=digitalSignature\n", 30);
    folder.self_signed("expired-self-signed", "keyUsage=digitalSignature\n", -1);
    folder.signed("intermediate", "ca", Some(CA), 30);
    folder.signed("server", "ca", Some(BOTH), 30);
    for (name, issuer, extensions) in [
        ("of-ca", "ca", CLIENT),
        ("of-intermediate", "intermediate", CLIENT),
        ("of-other", "other-ca", CLIENT),
        ("of-server-key", "server", CLIENT),
        ("of-self-signed", "self-signed", CLIENT),
        ("server-only", "ca", "keyUsage=digitalSignature\nextendedKeyUsage=serverAuth\n"),
        ("no-signature", "ca", "keyUsage=keyEncipherment\nextendedKeyUsage=clientAuth\n"),
        ("any-purpose", "ca", "extendedKeyUsage=anyExtendedKeyUsage\n"),
        ("no-purpose", "ca", "subjectKeyIdentifier=hash\n"),
    ] {
        folder.signed(name, issuer, Some(extensions), 30);
    }
    folder.signed("version-1", "ca", None, 30);
    folder.signed("expired", "ca", Some(CLIENT), -1);
    for (name, issuer) in
        [("of-intermediate", "intermediate"), ("of-server-key", "server"), ("of-self-signed", "self-signed")]
    {
        let chain = folder.text(&format!("{name}.crt")) + &folder.text(&format!("{issuer}.crt"));
        folder.put(&format!("{name}.pem"), &chain);
    }
}

/// Makes the stores. Each comes with the store that Java is asked of in its place.
fn make_stores(folder: &Folder) -> Vec<(&'static str, &'static str)> {
    let with = format!("-passout pass:{PASSWORD}");
    let export = "openssl pkcs12 -export -inkey server.key -in server.crt";
    folder.run(&format!("{export} {with} -out keys.p12"));
    folder.run(&format!("{export} {with} -certfile ca.crt -out keys-ca.p12"));
    folder.run(&format!("{export} {with} -certfile ca.crt -name one -out keys-named.p12"));
    folder.run(&format!("{export} {with} -certfile ca.crt -keypbe NONE -certpbe NONE -out keys-plain.p12"));
    folder.run(&format!("{export} {with} -certfile ca.crt -legacy -out keys-legacy.p12"));
    let key_alone = "openssl pkcs12 -export -inkey server.key -nocerts";
    folder.run(&format!("{key_alone} {with} -out key-alone.p12"));
    let trust = "openssl pkcs12 -export -nokeys -in";
    folder.run(&format!("{trust} ca.crt {with} -out trust-unmarked.p12"));
    folder.put("two.crt", &(folder.text("ca.crt") + &folder.text("self-signed.crt")));
    folder.run(&format!("{trust} two.crt {with} -out two-unmarked.p12"));

    let access = format!("-storepass {PASSWORD} -noprompt");
    let import = |store: &str, kind: &str, certificate: &str| {
        folder.run(&format!(
            "keytool -importcert -keystore {store} -storetype {kind} -alias {certificate} -file {certificate}.crt {access}"
        ));
    };
    for (kind, end) in [("PKCS12", "p12"), ("JKS", "jks")] {
        import(&format!("trust.{end}"), kind, "ca");
        for name in ["server", "self-signed", "expired-self-signed"] {
            import(&format!("known.{end}"), kind, name);
        }
        let convert = |from: &str, to: &str| {
            folder.run(&format!(
                "keytool -importkeystore -srckeystore {from} -srcstoretype PKCS12 -srcstorepass {PASSWORD} -destkeystore {to} \
                 -deststoretype {kind} -deststorepass {PASSWORD} -noprompt"
            ));
        };
        convert("keys-ca.p12", &format!("converted.{end}"));
        // A key whose chain has the authority, and another authority that is trusted.
        convert("keys-ca.p12", &format!("mixed.{end}"));
        import(&format!("mixed.{end}"), kind, "other-ca");
    }
    import("two-marked.p12", "PKCS12", "ca");
    import("two-marked.p12", "PKCS12", "self-signed");
    // Another key, whose certificate was signed by another authority.
    folder.run(
        "openssl pkcs12 -export -inkey of-other.key -in of-other.crt -certfile other-ca.crt -name second \
         -passout pass:changeit -out second.p12",
    );
    fs::copy(folder.at("keys-named.p12"), folder.at("two-keys.p12")).expect("a copy");
    folder.run(&format!(
        "keytool -importkeystore -srckeystore second.p12 -srcstoretype PKCS12 -srcstorepass {PASSWORD} -destkeystore two-keys.p12 \
         -deststoretype PKCS12 -deststorepass {PASSWORD} -noprompt"
    ));
    vec![
        ("keys.p12", "keys.p12"),
        ("keys-ca.p12", "keys-ca.p12"),
        ("keys-named.p12", "keys-named.p12"),
        ("keys-plain.p12", "keys-plain.p12"),
        ("keys-legacy.p12", "keys-legacy.p12"),
        ("key-alone.p12", "key-alone.p12"),
        // These are empty for Java: no certificate is marked, and there is no key.
        ("trust-unmarked.p12", "trust.p12"),
        ("two-unmarked.p12", "two-marked.p12"),
        ("two-marked.p12", "two-marked.p12"),
        ("two-keys.p12", "two-keys.p12"),
        ("trust.p12", "trust.p12"),
        ("trust.jks", "trust.jks"),
        ("known.p12", "known.p12"),
        ("known.jks", "known.jks"),
        ("converted.p12", "converted.p12"),
        ("converted.jks", "converted.jks"),
        ("mixed.p12", "mixed.p12"),
        ("mixed.jks", "mixed.jks"),
    ]
}

#[test]
fn a_server_trusts_by_every_store_whom_java_trusts() {
    let folder = Folder::new();
    make_certificates(&folder);
    let mut questions = Vec::new();
    for (store, asked) in make_stores(&folder) {
        for password in [Some(PASSWORD), None] {
            // Without the password a store of PKCS#12 cannot be read as far as it is encrypted.
            if password.is_some() || store.ends_with("jks") || store == "keys-plain.p12" {
                questions.extend(CERTIFICATES.map(|certificate| ((store, password, certificate), asked)));
            }
        }
    }
    let asked: Vec<_> = questions
        .iter()
        .map(|((_, password, certificate), asked)| (*asked, *password, *certificate))
        .collect();
    let verdicts = java(&folder, &asked);
    assert_eq!(verdicts.len(), questions.len());
    let (mut wrong, mut strict, mut trusted) = (Vec::new(), Vec::new(), 0);
    for (((store, password, certificate), _), java) in questions.iter().zip(&verdicts) {
        let ours = folder.lets_in(&options(store, *password), certificate);
        trusted += usize::from(ours.is_ok());
        let is_stricter = STRICTER.iter().any(|(name, _)| name == certificate);
        match (&ours, java.as_str()) {
            (Ok(()), "trusted") => {}
            (Err(_), "trusted") if is_stricter => strict.push(*certificate),
            (Err(_), java) if java != "trusted" => {}
            (Ok(()), _) if MORE_LENIENT.iter().any(|(at, name, _)| at == store && name == certificate) => {}
            _ => wrong.push(format!("{store} {password:?} {certificate}: {ours:?}, Java: {java}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(STRICTER.iter().all(|(name, _)| strict.contains(name)), "no longer stricter: {strict:?}");
    assert!(trusted > 20, "{trusted}");
}

#[test]
fn a_store_of_pem_trusts_all_its_certificates_and_says_so_where_it_has_a_key() {
    let folder = Folder::new();
    make_certificates(&folder);
    folder.run(&format!(
        "openssl pkcs12 -export -inkey server.key -in server.crt -passout pass:{PASSWORD} -out keys.p12"
    ));
    folder.put("trust.pem", &folder.text("ca.crt"));
    folder.put("two.pem", &(folder.text("server.crt") + &folder.text("self-signed.crt")));
    let keys = folder.text("server.key") + &folder.text("server.crt") + &folder.text("ca.crt");
    folder.put("keys.pem", &keys);
    let mut questions = Vec::new();
    for store in ["trust.pem", "two.pem", "keys.pem"] {
        questions.extend(CERTIFICATES.map(|certificate| (store, None, certificate)));
    }
    for ((store, _, certificate), java) in questions.iter().zip(java(&folder, &questions)) {
        let options = EncryptionOptions { keystore: Some("keys.pem".to_owned()), ..options(store, None) };
        let ours = folder.lets_in(&options, certificate);
        let is_stricter = STRICTER.iter().any(|(name, _)| name == certificate);
        assert!(
            ours.is_ok() == (java == "trusted") || is_stricter && ours.is_err(),
            "{store} {certificate}: {ours:?}, Java: {java}"
        );
    }
    let folder_path = folder.0.path().to_owned();
    let read: ReadFile = Arc::new(move |path: &Path| fs::read(folder_path.join(path)));
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64;
    for (store, is_said) in [("trust.pem", false), ("keys.pem", true)] {
        let options = EncryptionOptions { keystore: Some("keys.pem".to_owned()), ..options(store, None) };
        let server = ServerTls::load(&options, Arc::clone(&read), now_s).expect("settings").expect("TLS");
        assert_eq!(server.notices().iter().any(|text| text.contains("all its certificates")), is_said);
    }
}

#[test]
fn revoked_certificates_are_refused_and_lists_must_be_there_and_valid() {
    let folder = Folder::new();
    make_certificates(&folder);
    make_stores(&folder);
    folder.signed("second", "ca", Some(CLIENT), 30);
    for (name, crl_days) in [("ca", "-crldays 30"), ("other-ca", "-crldays 30")] {
        folder.put(
            &format!("{name}.cnf"),
            &format!(
                "[ca]\ndefault_ca = own\n[own]\ndatabase = {name}.index\ncrlnumber = {name}.number\ndefault_md = sha256\n\
                 certificate = {name}.crt\nprivate_key = {name}.key\n"
            ),
        );
        folder.put(&format!("{name}.index"), "");
        folder.put(&format!("{name}.number"), "01\n");
        if name == "ca" {
            folder.run("openssl ca -config ca.cnf -revoke of-ca.crt");
            folder.run("openssl ca -config ca.cnf -revoke server.crt");
        }
        folder.run(&format!("openssl ca -config {name}.cnf -gencrl {crl_days} -out {name}.crl"));
    }
    folder.run(
        "openssl ca -config ca.cnf -gencrl -crl_lastupdate 20200101000000Z -crl_nextupdate 20200201000000Z -out old.crl",
    );
    folder.run("openssl crl -in ca.crl -outform DER -out der.crl");
    folder.put("both.crl", &(folder.text("other-ca.crl") + &folder.text("ca.crl")));
    folder.put("none.crl", "");
    let with = |store: &str, list: &str, certificate: &str| {
        let options =
            EncryptionOptions { revocation_lists: Some(list.to_owned()), ..options(store, Some(PASSWORD)) };
        folder.lets_in(&options, certificate)
    };
    for list in ["ca.crl", "der.crl", "both.crl"] {
        with("trust.p12", list, "second").unwrap_or_else(|error| panic!("{list}: {error}"));
        let error = with("trust.p12", list, "of-ca").expect_err("revoked");
        assert!(error.contains("Revoked") || error.contains("revoked"), "{error}");
    }
    // A certificate that is itself in the store, and was revoked by its authority.
    with("known.p12", "other-ca.crl", "server").expect("not in this list");
    with("known.p12", "ca.crl", "server").expect_err("revoked");
    with("known.p12", "ca.crl", "self-signed").expect("named by the store, and in no list");
    // A list that is missing or old is no reason to trust.
    with("trust.p12", "other-ca.crl", "second").expect_err("no list of its issuer");
    with("trust.p12", "old.crl", "second").expect_err("an old list");
    let error = with("trust.p12", "none.crl", "second").expect_err("no list at all");
    assert!(error.contains("tls_client_crl none.crl: it has no list"), "{error}");
}
