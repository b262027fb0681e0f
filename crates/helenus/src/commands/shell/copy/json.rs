//! Finds the objects in a JSON file: one a line, or the elements of an array.

/// Finds where objects begin and end, over bytes that come in pieces. What stands between them is passed over.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObjectScanner {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
}

/// What a byte is to the objects of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Between two.
    Between,
    Begins,
    Inside,
    Ends,
}

impl ObjectScanner {
    /// Looks at the next byte.
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
