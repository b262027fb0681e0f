//! The Rust driver by TLS and with a login: the cases of `../rust`, with the files and the names that `../README.md` lists.

#[path = "../rust/cases.rs"]
mod cases;
#[path = "../rust/run.rs"]
mod run;
#[path = "../rust/types.rs"]
mod types;

use std::env::var;
use std::process::ExitCode;

use openssl::error::ErrorStack;
use openssl::ssl::{SslConnector, SslConnectorBuilder, SslFiletype, SslMethod, SslVerifyMode};
use scylla::client::session::OpenSsl010Config;
use scylla::client::session_builder::SessionBuilder;

#[tokio::main]
async fn main() -> ExitCode {
    // Without the names this would be the other program, and its success would say nothing about TLS.
    let needed = ["DRIVER_CAFILE", "DRIVER_CERT", "DRIVER_KEY", "DRIVER_USER", "DRIVER_PASSWORD"];
    if let Some(name) = needed.iter().find(|name| var(name).is_err()) {
        println!("FAILED: {name} is not set");
        return ExitCode::FAILURE;
    }
    run::main().await
}

/// What every connection of this program has.
fn reach(builder: SessionBuilder) -> SessionBuilder {
    let value = |name: &str| var(name).expect("main has looked");
    let context = context(&value("DRIVER_CAFILE"), &value("DRIVER_CERT"), &value("DRIVER_KEY"));
    let context = context.unwrap_or_else(|error| panic!("the files of TLS: {error}"));
    builder
        .tls_context(Some(OpenSsl010Config::new(context)))
        .user(value("DRIVER_USER"), value("DRIVER_PASSWORD"))
}

fn context(ca: &str, certificate: &str, key: &str) -> Result<SslConnectorBuilder, ErrorStack> {
    let mut context = SslConnector::builder(SslMethod::tls_client())?;
    context.set_verify(SslVerifyMode::PEER);
    context.set_ca_file(ca)?;
    context.set_certificate_chain_file(certificate)?;
    context.set_private_key_file(key, SslFiletype::PEM)?;
    context.check_private_key()?;
    Ok(context)
}
