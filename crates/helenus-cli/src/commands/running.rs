//! Finds the servers that run on this machine, for tools that speak to the admin socket of one.
//!
//! A server says nothing to anybody when it starts. The kernel lists the sockets that are listened on, and each of the
//! caller's that could be an admin socket is asked.

use anyhow::{Result, bail};
use helenus_server::address::Address;
use helenus_server::admin::{AdminAnswer, AdminRequest, ServerStatus, ask, socket_for_data};
use rustix::fs::lstat;
use rustix::process::geteuid;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

/// The default data directory of `helenus serve` and its tools.
pub const DATA: &str = "./data";
/// The data directory of the server that the packages install.
const INSTALLED: &str = "/var/lib/helenus";
/// The flag of a socket that accepts connections, in the kernel's list (`__SO_ACCEPTCON`).
const ACCEPTS: &str = "00010000";

/// A server that has answered.
#[derive(Clone, Debug)]
pub struct RunningServer {
    pub socket: PathBuf,
    pub status: ServerStatus,
}

impl RunningServer {
    /// The server behind a socket, if one answers.
    pub fn at(socket: PathBuf) -> Option<RunningServer> {
        match ask(&socket, &AdminRequest::Status) {
            Ok(AdminAnswer::Status(status)) => Some(RunningServer { socket, status }),
            _ => None,
        }
    }

    /// Whether clients of CQL or RPC reach this server at `address`, whatever the port if it has none.
    pub fn is_at(&self, address: &Address) -> bool {
        let port = address.port();
        let found = (address.host(), port.unwrap_or(0)).to_socket_addrs();
        let targets: Vec<IpAddr> = found.into_iter().flatten().map(|target| target.ip()).collect();
        let listening = [Some(&self.status.listening), self.status.rpc.as_ref()].into_iter().flatten();
        let listening = listening.filter_map(|text| text.parse::<SocketAddr>().ok());
        listening.filter(|at| port.is_none_or(|port| at.port() == port)).any(|at| {
            let is_any = at.ip().is_unspecified();
            targets.iter().any(|target| at.ip() == *target || is_any && target.to_canonical().is_loopback())
        })
    }

    /// Where its data is and where it listens, for people.
    fn text(&self) -> String {
        let listening = &self.status.listening;
        // The directory's own path may be relative to another folder.
        match self.socket.parent().filter(|_| self.socket.ends_with("admin.sock")) {
            Some(directory) => format!("--data {}  (listens on {listening})", directory.display()),
            None => format!("--socket {}  (in memory, listens on {listening})", self.socket.display()),
        }
    }
}

/// All servers of this user that answer: the one in `./data` first.
pub fn running_servers() -> Vec<RunningServer> {
    let list = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let sockets = beside().into_iter().chain([socket_for_data(Path::new(INSTALLED))]);
    let mut found: Vec<RunningServer> = Vec::new();
    for socket in sockets.chain(listening(&list).filter(|path| is_ours(path))) {
        let Some(server) = RunningServer::at(socket) else { continue };
        // A directory may have several paths.
        if !found.iter().any(|known| known.status.pid == server.status.pid) {
            found.push(server);
        }
    }
    found
}

/// The socket of a server in the default directory.
fn beside() -> Option<PathBuf> {
    std::path::absolute(socket_for_data(Path::new(DATA))).ok()
}

/// The server that is meant if neither directory nor socket was named: the one at `address`; without it the one in
/// `./data`, else the only one there is.
///
/// # Errors
/// There is none, or there are several. The text says how to name one.
pub fn only_server(address: Option<&Address>) -> Result<RunningServer> {
    let all = running_servers();
    let mut fitting: Vec<_> =
        all.iter().filter(|server| address.is_none_or(|address| server.is_at(address))).collect();
    if fitting.first().is_some_and(|first| Some(&first.socket) == beside().as_ref()) {
        fitting.truncate(1);
    }
    let listed = |servers: &[&RunningServer]| {
        servers.iter().map(|server| format!("\n  {}", server.text())).collect::<String>()
    };
    match (fitting.as_slice(), address) {
        ([one], _) => Ok((*one).clone()),
        ([], None) => bail!(
            "no server of this user runs on this machine: start one with helenus serve; for a server of another user, \
             name its directory with --data"
        ),
        ([], Some(address)) => {
            let others: Vec<&RunningServer> = all.iter().collect();
            let these =
                if others.is_empty() { String::new() } else { format!("; these run:{}", listed(&others)) };
            bail!(
                "no server of this user on this machine listens on {address}, and this command speaks to its own machine \
                 alone (ssh HOST helenus ...){these}"
            )
        }
        (several, _) => bail!("{} servers run here; name one:{}", several.len(), listed(several)),
    }
}

/// The absolute paths of the kernel's list of sockets (`proc_pid_net(5)`) that an admin socket may have and that are
/// listened on.
fn listening(list: &str) -> impl Iterator<Item = PathBuf> + '_ {
    let path = |line: &str| {
        let mut rest = line;
        let mut columns = [""; 7];
        for column in &mut columns {
            let (word, after) = rest.trim_start().split_once(' ')?;
            (*column, rest) = (word, after);
        }
        let is_listening = columns.get(3).is_some_and(|flags| *flags == ACCEPTS);
        let path = Path::new(rest.trim_start());
        let folder = path.parent()?.file_name()?.to_str()?;
        let is_private = folder == "helenus" || folder.starts_with("helenus-");
        let is_admin = path.ends_with("admin.sock") || is_private && path.extension()? == "sock";
        (is_listening && is_admin && path.is_absolute()).then(|| path.to_owned())
    };
    list.lines().skip(1).filter_map(path)
}

/// Whether the socket is this user's: another user's could only pretend to be a server.
fn is_ours(path: &Path) -> bool {
    lstat(path).is_ok_and(|found| found.st_uid == geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(listening: &str) -> RunningServer {
        let text = format!(
            r#"{{"version":"","pid":1,"uptime_s":0,"host_id":"","listening":"{listening}","directory":null,"sync":null,
            "connections":0,"memtable_bytes":0,"cache_bytes":0,"log_segments":0,"flush_failure":null,"compactions":[],
            "compaction_failure":null,"tables":[]}}"#
        );
        RunningServer { socket: PathBuf::new(), status: serde_json::from_str(&text).unwrap() }
    }

    #[test]
    fn a_server_is_the_target_if_it_listens_there_or_everywhere_on_this_machine() {
        let is_at = |listening: &str, target: &str| server(listening).is_at(&target.parse().unwrap());
        for listening in ["127.0.0.1:9042", "0.0.0.0:9042", "[::]:9042"] {
            assert!(is_at(listening, "127.0.0.1:9042") && is_at(listening, ":9042"));
            assert!(is_at(listening, "localhost") && !is_at(listening, "127.0.0.1:9043"));
        }
        assert!(!is_at("127.0.0.1:9042", "127.0.0.2:9042") && !is_at("", "127.0.0.1"));
        assert!(!is_at("0.0.0.0:9042", "192.0.2.1:9042"));
    }

    #[test]
    fn admin_sockets_are_found_in_the_kernels_list() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 68042 /a b/data/admin.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 68043 /connected/admin.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 68044 data/admin.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 68045 /tmp/helenus-0/memory-9042.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 68046 /run/other.sock\n\
            0000000000000000: 00000002 00000000 00000000 0002 01 68047\n";
        let found: Vec<PathBuf> = listening(list).collect();
        assert_eq!(found, [Path::new("/a b/data/admin.sock"), Path::new("/tmp/helenus-0/memory-9042.sock")]);
    }
}
