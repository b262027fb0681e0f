//! The 16 kinds of trie nodes, and the choice of the kind for a node (Cassandra's `TrieNode`).
//!
//! The first byte of a node contains its kind in the upper four bits and its payload's flags in the lower. Then follow
//! the bytes and the pointers of its children; a pointer is the distance back to the child. Then follows the payload.

use super::sized_int::write_unsigned;

/// How the children are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// No children.
    PayloadOnly,
    /// One child: its byte, its pointer. A pointer of 4 or 12 bits takes the bits of the payload's flags.
    Single,
    /// The number of children, their bytes, their pointers.
    Sparse,
    /// The first byte, the number of consecutive bytes less one, and a pointer for each byte, which is 0 without a
    /// child.
    Dense,
}

/// The width of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    Bits4,
    Bits12,
    Bytes(u8),
}

impl Pointer {
    /// Whether a distance fits.
    pub(super) fn fits(self, distance: u64) -> bool {
        match self {
            Pointer::Bits4 => distance <= 0xF,
            Pointer::Bits12 => distance <= 0xFFF,
            Pointer::Bytes(bytes) => bytes >= 8 || distance < 1 << (8 * bytes),
        }
    }

    /// Size of `count` pointers in bytes.
    pub(super) fn bytes(self, count: usize) -> usize {
        match self {
            Pointer::Bits4 => 0,
            Pointer::Bits12 => (3 * count).div_ceil(2),
            Pointer::Bytes(bytes) => count * usize::from(bytes),
        }
    }

    /// Appends pointers. Two pointers of 12 bits take three bytes; an odd last one is followed by four zero bits.
    fn write(self, distances: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
        if let Pointer::Bytes(width) = self {
            distances.for_each(|distance| write_unsigned(distance, usize::from(width), out));
            return;
        }
        let mut half = None;
        for distance in distances {
            match half.take() {
                None => {
                    out.push((distance >> 4) as u8);
                    half = Some((distance << 4) as u8);
                }
                Some(high) => out.extend_from_slice(&[high | (distance >> 8) as u8, distance as u8]),
            }
        }
        out.extend(half);
    }
}

/// A kind of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeType {
    /// The number in the node's first byte.
    pub(super) ordinal: u8,
    pub(super) shape: Shape,
    pub(super) pointer: Pointer,
}

const fn kind(ordinal: u8, shape: Shape, pointer: Pointer) -> NodeType {
    NodeType { ordinal, shape, pointer }
}

/// The kinds by ordinal.
pub(super) static NODE_TYPES: [NodeType; 16] = [
    kind(0, Shape::PayloadOnly, Pointer::Bits4),
    kind(1, Shape::Single, Pointer::Bits4),
    kind(2, Shape::Single, Pointer::Bytes(1)),
    kind(3, Shape::Single, Pointer::Bits12),
    kind(4, Shape::Single, Pointer::Bytes(2)),
    kind(5, Shape::Sparse, Pointer::Bytes(1)),
    kind(6, Shape::Sparse, Pointer::Bits12),
    kind(7, Shape::Sparse, Pointer::Bytes(2)),
    kind(8, Shape::Sparse, Pointer::Bytes(3)),
    kind(9, Shape::Sparse, Pointer::Bytes(5)),
    kind(10, Shape::Dense, Pointer::Bits12),
    kind(11, Shape::Dense, Pointer::Bytes(2)),
    kind(12, Shape::Dense, Pointer::Bytes(3)),
    kind(13, Shape::Dense, Pointer::Bytes(4)),
    kind(14, Shape::Dense, Pointer::Bytes(5)),
    kind(15, Shape::Dense, Pointer::Bytes(8)),
];

/// The kinds of each shape by the width class of the farthest pointer. If a shape does not have a width, a wider one is
/// used.
const SINGLES: [u8; 8] = [1, 2, 3, 4, 12, 13, 14, 15];
const SPARSES: [u8; 8] = [5, 5, 6, 7, 8, 9, 9, 15];
const DENSES: [u8; 8] = [10, 10, 10, 11, 12, 13, 14, 15];

/// The properties of a node that decide its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline {
    pub(super) child_count: usize,
    /// The first and the last child's byte.
    pub(super) span: (u8, u8),
    /// The distance to the farthest child.
    pub(super) distance_max: u64,
    pub(super) has_payload: bool,
}

impl NodeType {
    /// The kind that Cassandra gives a node (`TrieNode.typeFor`).
    pub(super) fn choose(outline: &Outline) -> NodeType {
        let of = |ordinal: u8| NODE_TYPES[usize::from(ordinal & 0xF)];
        if outline.child_count == 0 {
            return of(0);
        }
        let fits = |ordinal: &u8| of(*ordinal).pointer.fits(outline.distance_max);
        let class = SINGLES.iter().position(fits).unwrap_or(SINGLES.len() - 1);
        if outline.child_count == 1 {
            // Singles with pointers of 4 and 12 bits cannot store the payload's flags; the next wider kind can.
            let single = of(SINGLES[class]);
            let cannot = outline.has_payload && !matches!(single.pointer, Pointer::Bytes(_));
            return if cannot { of(SINGLES[class + 1]) } else { single };
        }
        let (sparse, dense) = (of(SPARSES[class]), of(DENSES[class]));
        if sparse.size(outline) < dense.size(outline) { sparse } else { dense }
    }

    /// Size of a node of this kind in bytes, without its payload.
    pub(super) fn size(self, outline: &Outline) -> usize {
        let count = outline.child_count;
        match self.shape {
            Shape::PayloadOnly => 1,
            Shape::Single => match self.pointer {
                Pointer::Bits4 => 2,
                Pointer::Bits12 => 3,
                Pointer::Bytes(bytes) => 2 + usize::from(bytes),
            },
            Shape::Sparse => 2 + count + self.pointer.bytes(count),
            Shape::Dense => {
                let (first, last) = outline.span;
                3 + self.pointer.bytes(usize::from(last - first) + 1)
            }
        }
    }

    /// Appends a node of this kind without its payload. `children` are the bytes and distances, in ascending order of
    /// bytes.
    pub(super) fn write(
        self,
        outline: &Outline,
        flags: u8,
        mut children: impl Iterator<Item = (u8, u64)> + Clone,
        out: &mut Vec<u8>,
    ) {
        let head = self.ordinal << 4;
        match self.shape {
            Shape::PayloadOnly => out.push(head | flags),
            Shape::Single => {
                let (byte, distance) = children.next().unwrap_or_default();
                match self.pointer {
                    Pointer::Bits4 => out.extend_from_slice(&[head | distance as u8, byte]),
                    Pointer::Bits12 => {
                        out.extend_from_slice(&[head | (distance >> 8) as u8, distance as u8, byte]);
                    }
                    Pointer::Bytes(width) => {
                        out.extend_from_slice(&[head | flags, byte]);
                        write_unsigned(distance, usize::from(width), out);
                    }
                }
            }
            Shape::Sparse => {
                out.extend_from_slice(&[head | flags, outline.child_count as u8]);
                out.extend(children.clone().map(|(byte, _)| byte));
                self.pointer.write(children.map(|(_, distance)| distance), out);
            }
            Shape::Dense => {
                let (first, last) = outline.span;
                out.extend_from_slice(&[head | flags, first, last - first]);
                let mut children = children.peekable();
                let child = |byte| children.next_if(|child| child.0 == byte).map_or(0, |child| child.1);
                self.pointer.write((first..=last).map(child), out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordinal(child_count: usize, span: (u8, u8), distance_max: u64, has_payload: bool) -> u8 {
        NodeType::choose(&Outline { child_count, span, distance_max, has_payload }).ordinal
    }

    #[test]
    fn one_child_takes_the_narrowest_single_that_leaves_room_for_the_payload() {
        let distances = [15, 16, 255, 256, 4095, 4096, 65_535, 65_536, 1 << 24, 1 << 32, 1 << 40];
        let plain = distances.map(|distance| ordinal(1, (7, 7), distance, false));
        assert_eq!(plain, [1, 2, 2, 3, 3, 4, 4, 12, 13, 14, 15]);
        let with_payload = distances.map(|distance| ordinal(1, (7, 7), distance, true));
        assert_eq!(with_payload, [2, 2, 2, 4, 4, 4, 4, 12, 13, 14, 15]);
    }

    #[test]
    fn several_children_take_the_smaller_shape_and_dense_on_a_tie() {
        assert_eq!(ordinal(2, (0, 1), 100, false), 10);
        assert_eq!(ordinal(2, (0, 9), 100, false), 5);
        assert_eq!(ordinal(2, (0, 9), 1000, false), 6);
        assert_eq!(ordinal(2, (0, 9), 1 << 30, false), 9);
        assert_eq!(ordinal(256, (0, 255), 200, false), 10);
        // Two children of two bytes: sparse 2 + 2 + 4 = 8; dense of 2 and 3 bytes span: 3 + 4 = 7 and 3 + 6 = 9.
        assert_eq!(ordinal(2, (0, 1), 5000, false), 11);
        assert_eq!(ordinal(2, (0, 2), 5000, false), 7);
    }
}
