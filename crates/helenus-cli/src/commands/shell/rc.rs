//! Reads cqlsh's files of defaults, `~/.cassandra/cqlshrc` and `~/.cassandra/credentials`: sections of `name = value`.
//!
//! [`Rc::apply`] and [`Rc::values`] define the known names. Other names are ignored, as in cqlsh, so that both shells
//! can share a file. Options of the command line and CQLSH_HOST take precedence over the file. Passwords are read only
//! from files that no other user can read.

use super::ShellOptions;
use super::value::{TimeFormat, ValueRules};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The content of a file: sections by name in lower case, with their values.
#[derive(Clone, Debug, Default)]
pub struct Rc {
    sections: BTreeMap<String, BTreeMap<String, String>>,
    /// The path of the file.
    file: PathBuf,
    /// Whether only the owner can read the file.
    is_private: bool,
}

impl Rc {
    /// Reads the defaults of this user, from `given` or from the usual path, where the file may be missing.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed.
    pub fn find(given: Option<&Path>) -> Result<Rc> {
        let usual = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cassandra/cqlshrc"));
        let read = |path: &Path, is_given: bool| match Rc::read(path) {
            Err(error)
                if !is_given
                    && error.downcast_ref::<std::io::Error>().is_some_and(|error| {
                        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied)
                    }) =>
            {
                // The file beside it may be there.
                Ok(Rc { file: path.to_owned(), ..Rc::default() })
            }
            other => other,
        };
        match (given, usual) {
            (Some(path), _) => read(path, true),
            (None, Some(path)) => read(&path, false),
            (None, None) => Ok(Rc::default()),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`Rc::find`].
    pub fn read(path: &Path) -> Result<Rc> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let is_private = std::fs::metadata(path).is_ok_and(|facts| facts.permissions().mode() & 0o077 == 0);
        Ok(Rc { sections: sections(path, &text)?, file: path.to_owned(), is_private })
    }

    fn get(&self, section: &str, name: &str) -> Option<&str> {
        self.sections.get(section)?.get(name).map(String::as_str)
    }

    /// Parses a number, or a switch by the rules of Python's ConfigParser.
    fn parsed<T: std::str::FromStr>(&self, section: &str, name: &str) -> Result<Option<T>> {
        let Some(text) = self.get(section, name) else { return Ok(None) };
        let lower = text.to_ascii_lowercase();
        let word = match lower.as_str() {
            "1" | "yes" | "on" if is_switch(name) => "true",
            "0" | "no" | "off" if is_switch(name) => "false",
            other => other,
        };
        match word.parse() {
            Ok(value) => Ok(Some(value)),
            // The value may be a password that stands in the wrong line.
            Err(_) => bail!("{}: [{section}] the value of {name} is not understood", self.file.display()),
        }
    }

    /// Sets the options that the command line leaves open. Appends messages for the user to `notes`.
    ///
    /// # Errors
    /// Values that cannot be parsed.
    pub fn apply(&self, options: &mut ShellOptions, notes: &mut Vec<String>) -> Result<()> {
        options.tls.tls |= self.parsed("connection", "ssl")?.unwrap_or(false);
        let text = |section: &str, name: &str| self.get(section, name).map(str::to_owned);
        if options.host.is_none() {
            options.host = self.parsed("connection", "hostname")?;
        }
        options.port = options.port.or(self.parsed("connection", "port")?);
        options.request_timeout = options.request_timeout.or(self.parsed("connection", "request_timeout")?);
        options.protocol_version = options.protocol_version.or(self.parsed("protocol", "version")?);
        options.keyspace = options.keyspace.take().or(text("authentication", "keyspace"));
        options.disable_history |= self.parsed("history", "disabled")?.unwrap_or(false);
        match self.parsed("ui", "color")? {
            Some(true) if !options.no_color => options.color = true,
            Some(false) if !options.color => options.no_color = true,
            _ => {}
        }
        if options.username.is_none() {
            self.log_in(options, notes)?;
        }
        self.encrypt(options, notes);
        Ok(())
    }

    /// Sets whom to trust and which certificate to show, if TLS is asked for, by the rules of cqlsh's `ssl_settings`
    /// (`cqlshlib/sslhandling.py`): variables of the environment first, any name of the server will do, and only `false`
    /// turns the check of its certificate off.
    fn encrypt(&self, options: &mut ShellOptions, notes: &mut Vec<String>) {
        if !options.tls.is_on() {
            return;
        }
        for section in ["connection", "ssl"] {
            if let Some(factory) = self.get(section, "factory") {
                let file = self.file.display();
                notes.push(format!(
                    "{file}: [{section}] factory = {factory}: it is for Python, and has no effect here"
                ));
            }
        }
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let setting = |name: &str| self.get("ssl", name).map(str::to_owned);
        let path = |text: String| super::interpreter::expand_home(&text);
        let host = options.host.as_ref().map_or("127.0.0.1", |address| address.host()).to_owned();
        let of_host = || self.get("certfiles", &host.to_ascii_lowercase()).map(str::to_owned);
        let tls = &mut options.tls;
        if !tls.insecure && tls.cafile.is_none() {
            let validate = variable("SSL_VALIDATE").or(setting("validate"));
            tls.insecure = validate.is_some_and(|text| text.eq_ignore_ascii_case("false"));
            let certfile = variable("SSL_CERTFILE").or_else(of_host).or(setting("certfile"));
            if let Some(file) = certfile.filter(|_| !tls.insecure) {
                (tls.cafile, tls.takes_any_name) = (Some(path(file)), true);
            }
        }
        if tls.cert.is_none() {
            tls.cert = setting("usercert").map(path);
            tls.key = tls.key.take().or(setting("userkey").map(path));
        }
    }

    /// Sets user and password, from the credentials file or from this file.
    fn log_in(&self, options: &mut ShellOptions, notes: &mut Vec<String>) -> Result<()> {
        let named = self.get("authentication", "credentials").map(super::interpreter::expand_home);
        let beside = self.file.parent().map(|folder| folder.join("credentials"));
        let usual = || named.or(beside).filter(|path| path.is_file());
        let path = options.credentials.clone().or_else(usual);
        let of_file = path.map(|path| Rc::read(&path)).transpose()?;
        let places = [(of_file.as_ref(), "plain_text_auth"), (Some(self), "authentication")];
        for (rc, section) in places.into_iter().filter_map(|(rc, section)| Some((rc?, section))) {
            let Some(user) = rc.get(section, "username") else { continue };
            options.username = Some(user.to_owned());
            match rc.get(section, "password") {
                Some(password) if rc.is_private => options.password = Some(password.to_owned()),
                Some(_) => notes.push(format!(
                    "{} can be read by others: its password is left aside; chmod 600 {0}",
                    rc.file.display()
                )),
                None => {}
            }
            return Ok(());
        }
        Ok(())
    }

    /// Sets the formatting of values: digits of numbers, the format of timestamps, the time zone.
    ///
    /// # Errors
    /// Values that cannot be parsed.
    pub fn values(&self, rules: &mut ValueRules, notes: &mut Vec<String>) -> Result<()> {
        if let Some(digits) = self.parsed("ui", "float_precision")? {
            rules.float = Some(digits);
        }
        if let Some(digits) = self.parsed("ui", "double_precision")? {
            rules.double = Some(digits);
        }
        if let Some(format) = self.get("ui", "time_format") {
            rules.timestamp = TimeFormat::new(format);
        }
        if let Some(zone) = self.get("ui", "timezone") {
            match offset_minutes(zone) {
                Some(minutes) => rules.timestamp.offset_minutes = minutes,
                None => notes.push(format!(
                    "{}: timezone {zone}: this shell knows UTC and offsets such as +02:00; timestamps are shown in UTC",
                    self.file.display()
                )),
            }
        }
        Ok(())
    }

    /// The options of a COPY for a table: those of the sections `copy`, `copy-to` or `copy-from`, then the table's own.
    /// Later ones take precedence.
    pub fn copy_options(&self, is_from: bool, table: &str) -> Vec<(String, String)> {
        let way = if is_from { "copy-from" } else { "copy-to" };
        let names = ["copy".to_owned(), way.to_owned(), format!("copy:{table}"), format!("{way}:{table}")];
        let sections = names.iter().filter_map(|name| self.sections.get(&name.to_ascii_lowercase()));
        sections.flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

fn is_switch(name: &str) -> bool {
    matches!(name, "ssl" | "disabled" | "color")
}

/// The offset of a time zone: `UTC`, or hours and minutes east of it.
fn offset_minutes(zone: &str) -> Option<i32> {
    if matches!(zone.to_ascii_uppercase().as_str(), "UTC" | "GMT" | "Z" | "ETC/UTC") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = zone.get(1..)?.chars().filter(|letter| *letter != ':').collect();
    let (hours, minutes) = match digits.len() {
        1 | 2 => (digits.parse::<i32>().ok()?, 0),
        4 => (digits.get(..2)?.parse().ok()?, digits.get(2..)?.parse().ok()?),
        _ => return None,
    };
    (hours <= 18 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// Parses lines of `[section]`, `name = value` or `name: value`, with comments after `;` and `#`.
fn sections(path: &Path, text: &str) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
    let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut section = None;
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let name = name.trim().to_ascii_lowercase();
            sections.entry(name.clone()).or_default();
            section = Some(name);
            continue;
        }
        let cut = line.find(['=', ':']).map(|at| line.split_at(at));
        let (Some((name, value)), Some(section)) = (cut, &section) else {
            // The line may have a password, so it is not shown.
            bail!("{}:{}: neither [section] nor name = value", path.display(), number + 1);
        };
        let value = value.get(1..).unwrap_or_default().trim();
        // A comment after a value begins with ` ;`.
        let value = value.split(" ;").next().unwrap_or_default().trim_end();
        let entries = sections.entry(section.clone()).or_default();
        entries.insert(name.trim().to_ascii_lowercase(), value.to_owned());
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rc(text: &str) -> Rc {
        Rc { sections: sections(Path::new("rc"), text).unwrap(), is_private: true, ..Rc::default() }
    }

    #[test]
    fn a_file_fills_in_what_the_command_line_leaves_open() {
        let rc = rc("; mine\n[connection]\nhostname = 10.0.0.7\nport: 9142 ; other\n[ui]\ncolor = off\n\
                     float_precision = 7\ntime_format = %d.%m.%Y\ntimezone = -03:30\n[authentication]\nusername = a\n\
                     password = x=y\nkeyspace = Feed\n[COPY-from]\nMAXBATCHSIZE = 5\n");
        let mut options = ShellOptions::of(&["-C"]);
        (options.color, options.port) = (false, Some(9043));
        let mut notes = Vec::new();
        rc.apply(&mut options, &mut notes).unwrap();
        assert_eq!(options.address(), "10.0.0.7:9043");
        assert!(options.no_color && options.keyspace.as_deref() == Some("Feed"));
        assert_eq!((options.username.as_deref(), options.password.as_deref()), (Some("a"), Some("x=y")));
        let mut rules = ValueRules::default();
        rc.values(&mut rules, &mut notes).unwrap();
        assert_eq!((rules.float, rules.double, rules.timestamp.offset_minutes), (Some(7), Some(5), -210));
        assert_eq!(rules.timestamp.print(0), "31.12.1969");
        assert_eq!(rc.copy_options(true, "ks.t"), [("maxbatchsize".to_owned(), "5".to_owned())]);
        assert!(rc.copy_options(false, "ks.t").is_empty() && notes.is_empty());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = sections(Path::new("rc"), "[ui]\nno sense\n").unwrap_err().to_string();
        assert_eq!(error, "rc:2: neither [section] nor name = value");
        let error = rc("[connection]\nport = x").apply(&mut ShellOptions::of(&[]), &mut Vec::new());
        assert!(error.unwrap_err().to_string().contains("[connection] the value of port is not understood"));
        let mut notes = Vec::new();
        rc("[ui]\ntimezone = Europe/Berlin").values(&mut ValueRules::default(), &mut notes).unwrap();
        assert!(notes[0].contains("Europe/Berlin") && notes[0].contains("+02:00"), "{notes:?}");
    }

    /// Each way to write a line wrongly, for each name that may stand in such a file.
    #[test]
    fn no_error_shows_a_password() {
        const SECRET: &str = "topsecret5";
        for name in ["password", "username", "userkey", "port", "ssl", "version", "color", "timezone"] {
            for shape in [
                "NAME SECRET",
                "NAME\tSECRET",
                "SECRET",
                "[NAME SECRET",
                "NAME] SECRET",
                "\"NAME\" \"SECRET\"",
                "NAME -> SECRET",
                "[plain_text_auth\nNAME = SECRET",
                "[connection]\nport = SECRET",
                "[connection]\nssl = SECRET",
                "[protocol]\nversion = NAME SECRET",
                "[ui]\nfloat_precision = SECRET",
            ] {
                let text = shape.replace("NAME", name).replace("SECRET", SECRET);
                for text in
                    [text.clone(), format!("[authentication]\n{text}"), format!("[ui]\ncolor = on\n{text}\n")]
                {
                    let mut notes = Vec::new();
                    let error = sections(Path::new("rc"), &text).and_then(|sections| {
                        let rc = Rc { sections, is_private: true, ..Rc::default() };
                        rc.apply(&mut ShellOptions::of(&[]), &mut notes)?;
                        rc.values(&mut ValueRules::default(), &mut notes)
                    });
                    let said = error.err().map(|error| format!("{error:#}")).unwrap_or_default();
                    assert!(
                        !said.contains(SECRET) && !notes.concat().contains(SECRET),
                        "{text}: {said} {notes:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_password_that_others_can_read_is_left_aside() {
        let mut open = rc("[authentication]\nusername = a\npassword = b\n");
        open.is_private = false;
        let (mut options, mut notes) = (ShellOptions::of(&[]), Vec::new());
        open.apply(&mut options, &mut notes).unwrap();
        assert!(options.password.is_none() && notes[0].contains("chmod 600"), "{notes:?}");
    }
}
