//! What the model and the crash test have found, cut down and kept.

#[test]
fn what_was_found_once_does_not_come_back() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/found");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder of scripts") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a script");
        if let Err(failure) = proof::script(&text) {
            panic!("{}: {failure}", path.display());
        }
        count += 1;
    }
    assert!(count >= 4, "{count} scripts");
}
