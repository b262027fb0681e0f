//! Threads, open files and address space that run out: the server says so in words and ends, or refuses what needs more, and obeys
//! SIGTERM at any time.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use end_to_end::{Server, binary};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Longer than any start of this test, and than the time in which a signal must end a process.
const SOON: Duration = Duration::from_secs(40);

/// Starts a server after a command of the shell. Returns whether it listened, and what it printed. One that listens gets SIGTERM, and
/// must end.
fn attempt(before: &str, arguments: &[&str]) -> (bool, String) {
    let folder = TempDir::with_prefix("helenus-resources-").expect("a temporary directory");
    let output = folder.path().join("output");
    let file = fs::File::create(&output).expect("a file");
    let script =
        format!("{before}; exec \"$0\" serve --data \"$1\" --listen 127.0.0.1:0 {}", arguments.join(" "));
    let mut child = Command::new("bash")
        .args(["-c", &script])
        .arg(binary())
        .arg(folder.path().join("data"))
        .stdout(Stdio::from(file.try_clone().expect("a file")))
        .stderr(Stdio::from(file))
        .spawn()
        .expect("bash");
    let (begin, mut listened) = (Instant::now(), false);
    loop {
        let printed = fs::read_to_string(&output).expect("its output");
        if let Some(status) = child.try_wait().expect("its state") {
            assert!(listened || !status.success(), "{before}: {printed}");
            return (listened, printed);
        }
        if !listened && printed.contains("listening") {
            listened = true;
            kill_process(Pid::from_child(&child), Signal::TERM).expect("a signal");
        }
        if begin.elapsed() > SOON {
            child.kill().expect("kill");
            panic!("{before}: neither ended nor listened\n{printed}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a person finds in a refusal: what is missing, and how to allow more. Never a bug.
fn check(before: &str, words: &[&str], (listened, printed): (bool, String)) {
    println!("{before}: {} {printed}", if listened { "listened" } else { "refused" });
    assert!(!printed.contains("a bug") && !printed.contains("panic"), "{before}: {printed}");
    if !listened {
        let lines: Vec<&str> = printed.lines().filter(|line| line.starts_with("helenus: ")).collect();
        assert!(lines.iter().any(|line| words.iter().all(|word| line.contains(word))), "{before}: {printed}");
    }
}

#[test]
fn too_few_open_files_are_refused_in_words() {
    for files in [12, 20, 32, 48, 63, 64, 80, 128] {
        let before = format!("ulimit -n {files}");
        let found = attempt(&before, &["--rpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        assert_eq!(found.0, files >= 64, "{before}: {}", found.1);
        check(&before, &["open files", "ulimit -n"], found);
    }
}

#[test]
fn too_little_address_space_is_refused_in_words() {
    for mebibytes in [300, 400, 600, 1000, 1500, 3000] {
        let before = format!("ulimit -v {}", mebibytes << 10);
        let found = attempt(&before, &["--rpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        check(&before, &["ulimit -"], found);
    }
    let found = attempt("ulimit -v 1000000", &["--set", "memory_limit=4GiB"]);
    assert!(!found.0, "{}", found.1);
    check("memory_limit beyond the address space", &["address space", "memory_limit", "ulimit -v"], found);
}

/// A limit on threads holds for a user who is not root.
#[test]
fn too_few_threads_are_refused_in_words() {
    if !rustix::process::geteuid().is_root() || Command::new("setpriv").arg("--version").output().is_err() {
        println!("skipped: neither root nor setpriv");
        return;
    }
    // A user of whom there is nothing else.
    const USER: u32 = 54_321;
    for threads in [2, 6, 12, 18, 24, 40] {
        let before = format!(
            "chown {USER} \"${{1%/data}}\"; cp \"$0\" \"${{1%data}}helenus\"; chmod 755 \"${{1%data}}helenus\"; \
             exec setpriv --reuid {USER} --clear-groups bash -c 'ulimit -u {threads}; exec \"$0\" serve --data \"$1\" --listen \
             127.0.0.1:0 --rpc 127.0.0.1:0 --http 127.0.0.1:0' \"${{1%data}}helenus\" \"$1\""
        );
        let found = attempt(&before, &[]);
        assert!(found.0 || threads < 40, "{}", found.1);
        check(&format!("ulimit -u {threads}"), &["threads", "ulimit -u"], found);
    }
}

#[test]
fn a_pipe_in_the_place_of_a_certificate_holds_nothing_up() {
    let folder = TempDir::with_prefix("helenus-pipe-").expect("a temporary directory");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let made = Command::new(binary()).args(["cert", &at("tls")]).output().expect("helenus cert");
    if !made.status.success() {
        panic!("{}", String::from_utf8_lossy(&made.stderr));
    }
    let cert = at("tls/server.pem");
    let mut server = Server::start_with(&["--tls-cert", &cert]);
    fs::remove_file(&cert).expect("remove");
    let made = Command::new("mkfifo").arg(&cert).status().expect("mkfifo");
    assert!(made.success());
    let data = server.data();
    let mut reload = Command::new(binary());
    let begin = Instant::now();
    let told = reload.args(["admin", "reloadssl", "--data"]).arg(&data).output().expect("reloadssl");
    assert!(!told.status.success() && String::from_utf8_lossy(&told.stderr).contains("pipe"), "{told:?}");
    assert!(begin.elapsed() < SOON);
    assert!(server.admin(&["overview"]).contains("listening"));
    assert!(server.stop().success());
}
