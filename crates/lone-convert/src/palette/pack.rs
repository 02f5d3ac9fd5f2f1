//! Indices as one stream of bits, the first in the lowest: how blobs hold numbers narrower than a byte.

/// Packs numbers of `bits` bits, at most 8.
#[derive(Debug)]
pub(super) struct BitStream {
    bits: u32,
    bytes: Vec<u8>,
    /// Bits that do not fill a byte yet, and how many there are.
    pending: u32,
    filled: u32,
}

impl BitStream {
    /// An empty stream, with room for `elements` numbers.
    pub(super) fn new(bits: u32, elements: usize) -> Self {
        let bytes = Vec::with_capacity((elements * bits as usize).div_ceil(8));
        BitStream { bits, bytes, pending: 0, filled: 0 }
    }

    pub(super) fn extend(&mut self, numbers: impl IntoIterator<Item = u8>) {
        for number in numbers {
            self.pending |= u32::from(number) << self.filled;
            self.filled += self.bits;
            if self.filled >= 8 {
                self.bytes.push(self.pending as u8);
                self.pending >>= 8;
                self.filled -= 8;
            }
        }
    }

    /// The bytes; unused bits of the last are 0.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

/// Number `at` of a stream of `bits` bits each, at most 8.
pub(super) fn unpack(bytes: &[u8], bits: u32, at: usize) -> u8 {
    let first = at * bits as usize;
    let next = bytes.get(first / 8 + 1).copied().unwrap_or(0);
    let two = u16::from_le_bytes([bytes[first / 8], next]);
    (two >> (first % 8) & ((1 << bits) - 1)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(bits: u32, numbers: &[u8]) -> Vec<u8> {
        let mut stream = BitStream::new(bits, numbers.len());
        let (first, rest) = numbers.split_at(numbers.len() / 2);
        stream.extend(first.iter().copied());
        stream.extend(rest.iter().copied());
        let bytes = stream.finish();
        assert!(numbers.iter().enumerate().all(|(at, &number)| unpack(&bytes, bits, at) == number));
        bytes
    }

    #[test]
    fn streams_are_those_of_coremltools() {
        assert_eq!(packed(4, &[1, 2, 3, 4, 15]), [0x21, 0x43, 0x0f]);
        assert_eq!(packed(6, &[1, 2, 3, 4, 63]), [0x81, 0x30, 0x10, 0x3f]);
        let long = [0x15, 0x2a, 0x3f, 0x01, 0x20, 0x11, 0x3e, 0, 0, 0, 1];
        assert_eq!(packed(6, &long), [0x95, 0xfa, 0x07, 0x60, 0xe4, 0x03, 0x00, 0x10, 0x00]);
        assert_eq!(packed(8, &[7, 255]), [7, 255]);
    }
}
