//! Finds the objects in a JSON file: one object a line, or the elements of an array.

/// Finds the begin and end of objects in bytes that arrive in pieces. Bytes between objects are ignored.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObjectScanner {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
}

/// The position of a byte relative to the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Between two objects.
    Between,
    Begins,
    Inside,
    Ends,
}

impl ObjectScanner {
    /// Classifies the next byte.
    #[inline]
    pub fn look(&mut self, byte: u8) -> Place {
        if self.is_escaped {
            self.is_escaped = false;
            return Place::Inside;
        }
        match (byte, self.in_text) {
            (b'\\', true) => self.is_escaped = true,
            (b'"', _) if self.depth > 0 => self.in_text = !self.in_text,
            (_, true) => {}
            (b'{', _) => {
                self.depth += 1;
                if self.depth == 1 {
                    return Place::Begins;
                }
            }
            (b'}', _) if self.depth > 0 => {
                self.depth -= 1;
                if self.depth == 0 {
                    return Place::Ends;
                }
            }
            _ => {}
        }
        if self.depth == 0 { Place::Between } else { Place::Inside }
    }
}
