//! The face of Helenus as a library: an embedded wide-column database.
