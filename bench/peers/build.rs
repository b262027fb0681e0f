//! Says where the program finds a RocksDB that was not compiled into it: in `ROCKSDB_LIB_DIR`, from which it was linked.

fn main() {
    println!("cargo:rerun-if-env-changed=ROCKSDB_LIB_DIR");
    if let Ok(folder) = std::env::var("ROCKSDB_LIB_DIR") {
        println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{folder}");
    }
}
