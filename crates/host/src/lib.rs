//! What the machine is: files, clocks, randomness and background work behind small traits.
