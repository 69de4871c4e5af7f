//! Log lines on their way to stderr, which may be a pipe that nobody reads, or a file on a full disk.
//!
//! Who logs never waits for who reads: a thread of its own writes, and what does not fit into a bounded queue meanwhile is
//! left out and counted. Written where it is logged, one line that nobody takes would stop every worker.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem::take;
use std::sync::Once;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tracing::warn;

/// What may wait. One line may have some ten kilobytes, and most have some hundred bytes.
const MOST_BYTES: usize = 1 << 20;

/// Lines that wait to be written, first in, first out.
pub(super) struct Lines {
    state: Mutex<State>,
    arrived: Condvar,
    written: Condvar,
    writer: Once,
}

struct State {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// One was taken out and is not written yet.
    is_writing: bool,
    lost: u64,
}

impl Lines {
    pub(super) const fn new() -> Self {
        Self {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                bytes: 0,
                is_writing: false,
                lost: 0,
            }),
            arrived: Condvar::new(),
            written: Condvar::new(),
            writer: Once::new(),
        }
    }

    /// Takes a line, and never waits. The first one starts the thread that writes; without one, nothing is logged.
    pub(super) fn push(&'static self, line: Vec<u8>) {
        self.writer.call_once(|| {
            let writing = thread::Builder::new().name("log".to_owned());
            let _ = writing.spawn(move || self.write_all(&mut io::stderr()));
        });
        self.put(line);
    }

    fn put(&self, line: Vec<u8>) {
        let mut state = self.lock();
        if state.bytes + line.len() > MOST_BYTES {
            state.lost += 1;
            return;
        }
        state.bytes += line.len();
        state.waiting.push_back(line);
        self.arrived.notify_one();
    }

    fn write_all(&self, to: &mut impl Write) {
        loop {
            self.write_next(to);
        }
    }

    /// Writes one line. When lines were lost and one is written again, that is said in a line of its own.
    fn write_next(&self, to: &mut impl Write) {
        let line = self.next();
        let written = to.write_all(&line).and_then(|()| to.flush());
        let mut state = self.lock();
        state.is_writing = false;
        let lost = if written.is_ok() {
            take(&mut state.lost)
        } else {
            state.lost += 1;
            0
        };
        self.written.notify_all();
        drop(state);
        if lost > 0 {
            warn!(
                lost,
                "log lines were lost: there was nobody to take them, or no room for them"
            );
        }
    }

    fn next(&self) -> Vec<u8> {
        let mut state = self.lock();
        loop {
            if let Some(line) = state.waiting.pop_front() {
                state.bytes -= line.len();
                state.is_writing = true;
                return line;
            }
            self.arrived.wait(&mut state);
        }
    }

    /// Waits until all is written, but no longer than this.
    pub(super) fn wait(&self, limit: Duration) {
        let unwritten = |state: &mut State| state.is_writing || !state.waiting.is_empty();
        // Whether it was in time makes no difference.
        let _ = (self.written).wait_while_for(&mut self.lock(), unwritten, limit);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Takes what is written to it as one line.
pub(super) struct Line(pub(super) &'static Lines);

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LogLevel, logged};
    use super::*;

    fn line(number: usize) -> Vec<u8> {
        format!("{number:01000}\n").into_bytes()
    }

    #[test]
    fn lines_are_written_in_their_order() {
        let lines = Lines::new();
        let mut written = Vec::new();
        for number in 0..3 {
            lines.put(line(number));
        }
        for _ in 0..3 {
            lines.write_next(&mut written);
        }
        assert_eq!(written, [line(0), line(1), line(2)].concat());
        lines.wait(Duration::from_hours(1));
    }

    #[test]
    fn what_nobody_takes_is_left_out_and_told_once_somebody_does() {
        let lines = Lines::new();
        let many = 2 * MOST_BYTES / 1000;
        for number in 0..many {
            lines.put(line(number));
        }
        let kept = lines.lock().waiting.len();
        assert!(lines.lock().bytes <= MOST_BYTES && kept < many);
        // Nobody is waited for for ever.
        lines.wait(Duration::from_millis(1));

        let told = logged(LogLevel::Info, false, |_| {
            for _ in 0..kept {
                lines.write_next(&mut Vec::new());
            }
        });
        let lost = format!("\"lost\":{}", many - kept);
        assert_eq!(told.matches("\"lost\":").count(), 1, "{told}");
        assert!(told.contains(&lost), "{told}");
        lines.put(line(0));
        lines.write_next(&mut Vec::new());
    }

    #[test]
    fn a_line_that_cannot_be_written_is_lost_and_nothing_else() {
        let lines = Lines::new();
        let told = logged(LogLevel::Info, false, |_| {
            lines.put(line(0));
            // There is no room in it.
            lines.write_next(&mut [0_u8; 10].as_mut_slice());
            assert_eq!(lines.lock().lost, 1);
            lines.put(line(1));
            lines.write_next(&mut Vec::new());
        });
        assert!(told.contains("\"lost\":1"), "{told}");
    }
}
