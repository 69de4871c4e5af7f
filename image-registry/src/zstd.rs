//! What is packed with zstd, as it comes: any number of frames, one after the other.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ruzstd::decoding::errors::{FrameDecoderError, FrameHeaderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// How many bytes back what is packed may refer, at the most: as many as RFC 8878 asks of everybody
/// who unpacks. They are held.
pub(crate) const WINDOW: u64 = 8 << 20;
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What a frame begins with that is to be skipped, but for the lower half of its first byte.
const SKIPPED: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];

/// Whether something that begins like this is packed with zstd.
pub(crate) fn is_zstd(head: &[u8]) -> bool {
    let skipped = |head: &[u8]| head[0] & 0xf0 == SKIPPED[0] && head[1..4] == SKIPPED[1..];
    head.starts_with(&MAGIC) || (head.len() >= 4 && skipped(head))
}

/// Reads what was packed. Its checksums are not compared: a digest is.
pub(crate) struct Zstd<R: Read> {
    packed: BufReader<R>,
    frame: FrameDecoder,
}

impl<R: Read> Zstd<R> {
    pub(crate) fn new(packed: R) -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(WINDOW);
        Self {
            packed: BufReader::new(packed),
            frame,
        }
    }

    /// Goes on to the next frame. Whether there is one.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.packed.fill_buf()?.is_empty() {
            let length = match self.frame.reset(&mut self.packed) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => u64::from(length),
                Err(
                    error @ (FrameDecoderError::WindowSizeTooBig { .. }
                    | FrameDecoderError::FrameHeaderError(FrameHeaderError::WindowTooBig {
                        ..
                    })),
                ) => {
                    return Err(io::Error::new(ErrorKind::Unsupported, error));
                }
                Err(error) => return Err(io::Error::other(error)),
            };
            let skipped = io::copy(&mut (&mut self.packed).take(length), &mut io::sink())?;
            if skipped < length {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(false)
    }

    fn next_block(&mut self) -> io::Result<()> {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        // The library asserts some of what it believes of a block.
        let decoded = catch_unwind(AssertUnwindSafe(|| {
            self.frame.decode_blocks(&mut self.packed, one)
        }));
        match decoded {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(io::Error::other(error)),
            Err(_) => Err(ErrorKind::InvalidData.into()),
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.frame.can_collect() == 0 {
            if !self.frame.is_finished() {
                self.next_block()?;
            } else if !self.next_frame()? {
                return Ok(0);
            }
        }
        self.frame.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    /// By the reference implementation, version 1.5.4, level 19.
    const PACKED: &[u8] =
        b"\x28\xb5\x2f\xfd\x24\x18\xc1\x00\x00hello bill of materials\n\xe7\xe9\x5b\xab";
    const UNPACKED: &[u8] = b"hello bill of materials\n";

    fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut unpacked = Vec::new();
        let mut zstd = Zstd::new(packed).take(1 << 20);
        zstd.read_to_end(&mut unpacked).map(|_| unpacked)
    }

    fn skipped(content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_le_bytes();
        [&[0x5f, 0x2a, 0x4d, 0x18][..], &length, content].concat()
    }

    #[test]
    fn frames_are_read_one_after_the_other_and_some_are_skipped() {
        let twice = [UNPACKED, UNPACKED].concat();
        assert_eq!(unpack(PACKED).unwrap(), UNPACKED);
        let all = [
            &skipped(b"index"),
            PACKED,
            &skipped(b""),
            PACKED,
            &skipped(b"x"),
        ]
        .concat();
        assert!(is_zstd(&all) && is_zstd(PACKED));
        assert_eq!(unpack(&all).unwrap(), twice);
        assert_eq!(unpack(&skipped(b"only")).unwrap(), b"");
        for broken in [
            &PACKED[..PACKED.len() - 5],
            &all[..all.len() - 1],
            &[PACKED, b"x"].concat(),
        ] {
            unpack(broken).unwrap_err();
        }
        for other in [&b"\x1f\x8b\x08\x00"[..], b"", b"\x28\xb5\x2f", b"{}  "] {
            assert!(!is_zstd(other));
        }
    }

    #[test]
    fn what_refers_far_back_is_read_and_what_refers_further_back_is_not() {
        // One block of the same byte, 128 KiB of it.
        let of = |window: u8| {
            let head = [0x28, 0xb5, 0x2f, 0xfd, 0x00, window];
            let zeros = [0x03, 0x00, 0x10, 0x00];
            [&head[..], &zeros].concat()
        };
        assert_eq!(unpack(&of(13 << 3)).unwrap(), vec![0; 128 << 10]);
        for further in [13 << 3 | 1, 0xff] {
            let refused = unpack(&of(further)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unsupported);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            at in any::<prop::sample::Index>(),
            change in any::<u8>(),
            text in "[a-d]{0,2000}",
        ) {
            let _ = unpack(&bytes);
            let mut packed = compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
            prop_assert_eq!(unpack(&packed).unwrap(), text.as_bytes());
            let at = at.index(packed.len());
            packed[at] ^= change;
            let _ = unpack(&packed);
            packed.truncate(at);
            let _ = unpack(&packed);
            let _ = unpack(&[&MAGIC[..], &bytes].concat());
        }
    }
}
