//! End-to-end tests: the real binary over a real socket.
