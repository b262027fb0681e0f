//! How a command reaches a server: the options of login and TLS that all clients share.

use super::passwords::{Login, LoginOptions};
use anyhow::{Context, Result, bail};
use clap::Args;
use helenus_tls::{ClientOptions, ReadFile, ServerTrust, TlsClient};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The login and the TLS settings of a connection; `None` in each: without.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access<'a> {
    pub login: Option<&'a Login>,
    pub tls: Option<&'a TlsClient>,
}

/// The options of both.
#[derive(Args, Clone, Debug, Default)]
pub struct AccessOptions {
    #[command(flatten)]
    login: LoginOptions,
    #[command(flatten)]
    tls: TlsOptions,
}

impl AccessOptions {
    /// The options that lead to this access.
    pub fn of(access: Access<'_>) -> AccessOptions {
        AccessOptions {
            login: LoginOptions::of(access.login.cloned()),
            tls: TlsOptions { found: OnceLock::from(access.tls.cloned()), ..TlsOptions::default() },
        }
    }

    /// The login, if a name was given, and the TLS settings, if TLS is asked for. The first call may ask for a password at
    /// the terminal, and reads the files of certificates.
    ///
    /// # Errors
    /// There is no password; a file cannot be used.
    pub fn access(&self) -> Result<Access<'_>> {
        Ok(Access { tls: self.tls.client()?, login: self.login.login()? })
    }
}

/// The options of TLS.
#[derive(Args, Clone, Debug, Default)]
pub struct TlsOptions {
    /// Connect by TLS
    #[arg(long, alias = "ssl", global = true)]
    pub tls: bool,
    /// PEM file with the certificates to trust; those of this machine by default. Turns TLS on
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "insecure")]
    pub cafile: Option<PathBuf>,
    /// PEM file with this client's certificate, and its key unless --key is given. Turns TLS on
    #[arg(long, global = true, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// PEM file with the key of --cert
    #[arg(long, global = true, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// TLS with whatever server answers: its certificate is not checked. Turns TLS on
    #[arg(long, global = true)]
    pub insecure: bool,
    /// Whether the server's certificate may be for another host than the one asked for.
    #[arg(skip)]
    pub takes_any_name: bool,
    #[arg(skip)]
    found: OnceLock<Option<TlsClient>>,
}

impl TlsOptions {
    /// Whether TLS is asked for.
    pub fn is_on(&self) -> bool {
        self.tls || self.insecure || self.cafile.is_some() || self.cert.is_some() || self.key.is_some()
    }

    /// The TLS settings, if TLS is asked for. The first call reads the files.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn client(&self) -> Result<Option<&TlsClient>> {
        if let Some(found) = self.found.get() {
            return Ok(found.as_ref());
        }
        let found = match self.is_on() {
            true => Some(self.read()?),
            false => None,
        };
        Ok(self.found.get_or_init(|| found).as_ref())
    }

    fn read(&self) -> Result<TlsClient> {
        if self.key.is_some() && self.cert.is_none() {
            bail!("--key without --cert: give the file of the certificate too");
        }
        let text = |path: &PathBuf| path.to_str().map(str::to_owned).context("a path that is not UTF-8");
        let cafile = self.cafile.as_ref().map(text).transpose()?;
        let trust = match (cafile, self.insecure) {
            (_, true) => ServerTrust::Anybody,
            (None, false) => ServerTrust::Machine,
            (Some(file), false) if self.takes_any_name => ServerTrust::FileForAnyName(file),
            (Some(file), false) => ServerTrust::File(file),
        };
        let certificate = self.cert.as_ref().map(text).transpose()?;
        let key = self.key.as_ref().map(text).transpose()?;
        let read: ReadFile = Arc::new(|path| std::fs::read(path));
        Ok(TlsClient::new(ClientOptions { trust, certificate, key }, &read)?)
    }
}
