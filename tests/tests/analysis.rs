//! Exports tables of every type for analysis, reads them with pyarrow and DuckDB, and compares them with a driver's
//! answers. `cargo xtask analysis` runs this test.

use std::fs;

use end_to_end::{Server, analysis, tool};
use tempfile::TempDir;

#[test]
#[ignore = "needs a binary with the feature `analysis`, pyarrow and DuckDB: run `cargo xtask analysis`"]
fn what_is_exported_for_analysis_reads_as_a_select_answers() {
    const KEYSPACE: &str = "for_analysis";
    let server = Server::start();
    analysis(&["make", server.address(), KEYSPACE]);
    let scratch = TempDir::with_prefix("helenus-analysis-").expect("a temporary directory");
    let data = server.data();
    let folder = |name: &str| scratch.path().join(name);
    let text = |path: &std::path::Path| path.to_str().expect("a path in UTF-8").to_owned();
    for form in ["parquet", "arrow"] {
        let told =
            tool(&["export", &text(&folder(form)), KEYSPACE, &format!("--{form}"), "--data", &text(&data)]);
        assert!(told.contains("for_analysis.ManyRows: 3000 rows"), "{told}");
    }
    // The comparison expects both forms of a table in the same folder.
    let arrow = fs::read_dir(folder("arrow").join(KEYSPACE)).expect("the exported folder");
    for file in arrow.map(|entry| entry.expect("an entry").path()) {
        let name = file.file_name().expect("a name");
        fs::rename(&file, folder("parquet").join(KEYSPACE).join(name)).expect("put it beside the other");
    }
    let told = analysis(&["check", server.address(), KEYSPACE, &text(&folder("parquet"))]);
    println!("{}", told.trim_end());
    assert!(told.trim_end().ends_with(" values compared, 0 differ"), "{told}");
}
