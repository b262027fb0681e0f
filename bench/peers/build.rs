//! Lets the bindings link against an older RocksDB of the system, when `ROCKSDB_LIB_DIR` names one.
//!
//! Debian 12's 7.8 lacks one function of those that the bindings name: what frees a write buffer manager, which this
//! program makes none of. `src/stores/rocks.rs` then defines it.

fn main() {
    println!("cargo:rustc-check-cfg=cfg(rocksdb_is_old)");
    println!("cargo:rerun-if-env-changed=ROCKSDB_LIB_DIR");
    println!("cargo:rerun-if-env-changed=ROCKSDB_INCLUDE_DIR");
    let include = std::env::var("ROCKSDB_INCLUDE_DIR").unwrap_or_else(|_| "/usr/include".into());
    let header = std::fs::read_to_string(format!("{include}/rocksdb/c.h"));
    let lacks = header.is_ok_and(|header| !header.contains("rocksdb_write_buffer_manager_destroy"));
    if std::env::var_os("ROCKSDB_LIB_DIR").is_some() && lacks {
        println!("cargo:rustc-cfg=rocksdb_is_old");
    }
}
