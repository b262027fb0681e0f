//! What the bytes between programs are: the native protocol, both halves, without sockets.
