//! How a server gets into a cluster for `move` and `pull`: the login, and the files of TLS as it finds them.

use super::access::TlsOptions;
use super::passwords::LoginOptions;
use anyhow::{Context, Result};
use helenus_mover::TlsFiles;
use std::path::PathBuf;

/// The login and the files of TLS.
pub struct ClusterAccess {
    /// Role and password.
    pub login: Option<(String, String)>,
    /// The file that the password was read from, if it was.
    pub password_file: Option<String>,
    /// `None`: in the clear.
    pub tls: Option<TlsFiles>,
}

impl ClusterAccess {
    /// What the options of the command line say. The files are read here, so that a wrong one is told at once; the server reads them
    /// again.
    ///
    /// # Errors
    /// A file or the password cannot be read.
    pub fn of(login: &LoginOptions, tls: &TlsOptions) -> Result<ClusterAccess> {
        tls.client()?;
        let files = tls.is_on().then(|| -> Result<TlsFiles> {
            Ok(TlsFiles {
                cafile: tls.cafile.as_ref().map(absolute).transpose()?,
                cert: tls.cert.as_ref().map(absolute).transpose()?,
                key: tls.key.as_ref().map(absolute).transpose()?,
                insecure: tls.insecure,
            })
        });
        let password_file = login.password_file.as_ref().map(absolute).transpose()?;
        let login = login.login()?.map(|login| (login.user.clone(), login.password.clone()));
        Ok(ClusterAccess { login, password_file, tls: files.transpose()? })
    }
}

/// A path as the server finds it, which may have another working directory.
///
/// # Errors
/// There is no working directory, or the path is not UTF-8.
pub fn absolute(path: &PathBuf) -> Result<String> {
    let path = std::path::absolute(path)?;
    path.to_str().map(str::to_owned).context("a path that is not UTF-8")
}
