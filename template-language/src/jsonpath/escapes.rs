//! Quoted text with the escapes of Go, in either kind of quotes.
//!
//! | escape | stands for |
//! |---|---|
//! | `\a` `\b` `\f` `\n` `\r` `\t` `\v` `\\` | control characters, a backslash |
//! | `\'` or `\"`, as the quotes are | the quote |
//! | `\x4a`, `\112` | a byte, in two hexadecimal or three octal digits |
//! | `\u00e4`, `\U0001f600` | a character |
//!
//! Any other escape is an error, and so is the quote itself without one.

use std::str::Chars;

/// What a quoted text, quotes included, stands for; `None` if an escape is wrong.
pub(super) fn unquote(quoted: &str, quote: char) -> Option<String> {
    let text = quoted.strip_prefix(quote)?.strip_suffix(quote)?;
    // Escapes may name single bytes, so that only the whole is text.
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '\\' => unescape(&mut rest, quote, &mut bytes)?,
            _ if character == quote => return None,
            _ => push(&mut bytes, character),
        }
    }
    Some(lossy(&bytes))
}

/// What follows a backslash.
fn unescape(rest: &mut Chars<'_>, quote: char, bytes: &mut Vec<u8>) -> Option<()> {
    let escape = rest.next()?;
    match escape {
        'a' => bytes.push(0x07),
        'b' => bytes.push(0x08),
        'f' => bytes.push(0x0c),
        'n' => bytes.push(b'\n'),
        'r' => bytes.push(b'\r'),
        't' => bytes.push(b'\t'),
        'v' => bytes.push(0x0b),
        '\\' => bytes.push(b'\\'),
        'x' => bytes.push(u8::try_from(code(rest, 2, 16)?).ok()?),
        'u' => push(bytes, char::from_u32(code(rest, 4, 16)?)?),
        'U' => push(bytes, char::from_u32(code(rest, 8, 16)?)?),
        '0'..='7' => {
            let high = escape.to_digit(8)? * 64;
            bytes.push(u8::try_from(high + code(rest, 2, 8)?).ok()?);
        }
        _ if escape == quote => push(bytes, quote),
        _ => return None,
    }
    Some(())
}

/// A number of exactly so many digits.
fn code(rest: &mut Chars<'_>, digits: u32, radix: u32) -> Option<u32> {
    (0..digits).try_fold(0_u32, |code, _| {
        code.checked_mul(radix)?
            .checked_add(rest.next()?.to_digit(radix)?)
    })
}

fn push(bytes: &mut Vec<u8>, character: char) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// One replacement character for every byte that belongs to no character, as Go has it.
fn lossy(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}
