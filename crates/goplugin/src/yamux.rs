//! yamux: several streams over one connection, each with a window in both directions.
//!
//! This is the side that opens streams. Those that the other side opens are refused: no plugin of Argo
//! Rollouts does.

use std::collections::BTreeMap;

use crate::session::ProtocolError;

/// Bytes that may be under way in one direction of a stream at first.
const WINDOW: u32 = 256 << 10;
/// The window is opened again when so much of it is used.
const REOPEN: u32 = WINDOW / 2;
/// The longest frame we send.
const CHUNK: usize = 32 << 10;
/// The most pings of the other side that are answered at once.
const PINGS_LIMIT: u32 = 64;
const HEAD: usize = 12;

const DATA: u8 = 0;
const UPDATE: u8 = 1;
const PING: u8 = 2;
const GO_AWAY: u8 = 3;

const SYN: u16 = 1;
const ACK: u16 = 2;
const FIN: u16 = 4;
const RST: u16 = 8;

/// What the other side did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// Bytes on a stream.
    Data(u32, Vec<u8>),
    /// A stream has ended.
    Closed(u32),
    /// A ping of ours was answered.
    Pong(u32),
    /// No more streams: it ends.
    Leaving,
}

/// The connection.
#[derive(Debug, Default)]
pub(crate) struct Yamux {
    input: Vec<u8>,
    output: Vec<u8>,
    streams: BTreeMap<u32, Stream>,
    opened: u32,
    pinged: u32,
}

#[derive(Debug)]
struct Stream {
    may_send: u32,
    waiting: Vec<u8>,
    /// Bytes received since the window was last opened.
    received: u32,
}

impl Yamux {
    /// Opens a stream.
    pub fn open(&mut self) -> u32 {
        let id = self.opened * 2 + 1;
        self.opened += 1;
        self.streams.insert(id, Stream { may_send: WINDOW, waiting: Vec::new(), received: 0 });
        self.put(UPDATE, SYN, id, 0);
        id
    }

    /// Sends bytes, as far as the other side allows; the rest follows when it does.
    pub fn send(&mut self, id: u32, bytes: &[u8]) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.waiting.extend_from_slice(bytes);
        }
        self.flush(id);
    }

    /// Asks whether the other side is there.
    pub fn ping(&mut self) -> u32 {
        self.pinged += 1;
        self.put(PING, SYN, 0, self.pinged);
        self.pinged
    }

    /// What must be sent.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Bytes that are kept, of what was received and of what must wait to be sent.
    pub fn held(&self) -> usize {
        let waiting: usize = self.streams.values().map(|stream| stream.waiting.len()).sum();
        self.input.len() + self.output.len() + waiting
    }

    /// Takes in what was received.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Incoming>, ProtocolError> {
        self.input.extend_from_slice(bytes);
        let mut incoming = Vec::new();
        let mut at = 0;
        let mut pings = 0;
        while let Some(head) = self.input.get(at..at + HEAD) {
            let frame = Frame::read(head)?;
            let length = frame.data_length()?;
            let Some(data) = self.input.get(at + HEAD..at + HEAD + length) else { break };
            let data = data.to_vec();
            at += HEAD + length;
            pings += u32::from(frame.kind == PING);
            if pings > PINGS_LIMIT {
                return Err(ProtocolError::Flood);
            }
            self.take(&frame, data, &mut incoming)?;
        }
        self.input.drain(..at);
        Ok(incoming)
    }

    fn take(
        &mut self,
        frame: &Frame,
        data: Vec<u8>,
        incoming: &mut Vec<Incoming>,
    ) -> Result<(), ProtocolError> {
        match frame.kind {
            PING if frame.flags & ACK != 0 => incoming.push(Incoming::Pong(frame.length)),
            PING => self.put(PING, ACK, 0, frame.length),
            GO_AWAY => incoming.push(Incoming::Leaving),
            _ if frame.flags & SYN != 0 => self.put(UPDATE, RST, frame.stream, 0),
            kind => {
                let Some(stream) = self.streams.get_mut(&frame.stream) else { return Ok(()) };
                if kind == UPDATE {
                    stream.may_send = stream.may_send.saturating_add(frame.length);
                    self.flush(frame.stream);
                } else if !data.is_empty() {
                    stream.received = stream.received.saturating_add(frame.length);
                    if stream.received > WINDOW {
                        return Err(ProtocolError::Window);
                    }
                    if stream.received >= REOPEN {
                        let used = std::mem::take(&mut stream.received);
                        self.put(UPDATE, 0, frame.stream, used);
                    }
                    incoming.push(Incoming::Data(frame.stream, data));
                }
            }
        }
        let is_over = frame.flags & (FIN | RST) != 0 && frame.kind <= UPDATE;
        if is_over && self.streams.remove(&frame.stream).is_some() {
            incoming.push(Incoming::Closed(frame.stream));
        }
        Ok(())
    }

    fn flush(&mut self, id: u32) {
        let Some(mut stream) = self.streams.remove(&id) else { return };
        let allowed = stream.waiting.len().min(stream.may_send as usize);
        for chunk in stream.waiting[..allowed].chunks(CHUNK) {
            self.put(DATA, 0, id, chunk.len() as u32);
            self.output.extend_from_slice(chunk);
        }
        stream.waiting.drain(..allowed);
        stream.may_send -= allowed as u32;
        self.streams.insert(id, stream);
    }

    fn put(&mut self, kind: u8, flags: u16, stream: u32, length: u32) {
        self.output.extend_from_slice(&[0, kind]);
        self.output.extend_from_slice(&flags.to_be_bytes());
        self.output.extend_from_slice(&stream.to_be_bytes());
        self.output.extend_from_slice(&length.to_be_bytes());
    }
}

struct Frame {
    kind: u8,
    flags: u16,
    stream: u32,
    length: u32,
}

impl Frame {
    fn read(head: &[u8]) -> Result<Frame, ProtocolError> {
        let [version, kind, f0, f1, s0, s1, s2, s3, l0, l1, l2, l3] = *head else {
            return Err(ProtocolError::Frame);
        };
        if version != 0 || kind > GO_AWAY {
            return Err(ProtocolError::Frame);
        }
        Ok(Frame {
            kind,
            flags: u16::from_be_bytes([f0, f1]),
            stream: u32::from_be_bytes([s0, s1, s2, s3]),
            length: u32::from_be_bytes([l0, l1, l2, l3]),
        })
    }

    /// Bytes that follow the head: no more than a window.
    fn data_length(&self) -> Result<usize, ProtocolError> {
        match self.kind {
            DATA if self.length > WINDOW => Err(ProtocolError::Window),
            DATA => Ok(self.length as usize),
            _ => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u16, stream: u32, length: u32, data: &[u8]) -> Vec<u8> {
        let mut link = Yamux::default();
        link.put(kind, flags, stream, length);
        [link.take_output(), data.to_vec()].concat()
    }

    #[test]
    fn a_stream_is_opened_by_an_update_and_written_within_its_window() {
        let mut link = Yamux::default();
        let id = link.open();
        assert_eq!(link.take_output(), frame(UPDATE, SYN, 1, 0, b""));
        assert_eq!((id, link.open()), (1, 3));
        link.take_output();
        link.send(id, &vec![7; WINDOW as usize + 10]);
        let sent = link.take_output().len();
        assert_eq!(sent, WINDOW as usize + 8 * HEAD, "eight frames, and no more than the window");
        link.feed(&frame(UPDATE, 0, id, 10, b"")).unwrap();
        assert_eq!(link.take_output(), frame(DATA, 0, id, 10, &[7; 10]), "the rest");
    }

    #[test]
    fn pings_are_answered_and_windows_opened_again() {
        let mut link = Yamux::default();
        let id = link.open();
        link.take_output();
        assert_eq!(link.feed(&frame(PING, SYN, 0, 9, b"")).unwrap(), []);
        assert_eq!(link.take_output(), frame(PING, ACK, 0, 9, b""));
        let half = vec![1; REOPEN as usize];
        let heard = link.feed(&frame(DATA, 0, id, REOPEN, &half)).unwrap();
        assert_eq!(heard, [Incoming::Data(id, half)]);
        assert_eq!(link.take_output(), frame(UPDATE, 0, id, REOPEN, b""));
        assert_eq!(link.ping(), 1);
        assert_eq!(link.feed(&frame(PING, ACK, 0, 1, b"")).unwrap(), [Incoming::Pong(1)]);
        link.take_output();
        link.feed(&frame(UPDATE, SYN, 2, 0, b"")).unwrap();
        assert_eq!(link.take_output(), frame(UPDATE, RST, 2, 0, b""), "theirs are refused");
        let closed = link.feed(&frame(UPDATE, FIN, id, 0, b"")).unwrap();
        assert_eq!(closed, [Incoming::Closed(id)]);
    }

    #[test]
    fn what_breaks_the_rules_ends_the_connection() {
        let cases = [
            ("another version", vec![1; HEAD], ProtocolError::Frame),
            ("an unknown kind", frame(9, 0, 1, 0, b""), ProtocolError::Frame),
            ("more than a window", frame(DATA, 0, 1, WINDOW + 1, b""), ProtocolError::Window),
            ("a flood of pings", frame(PING, SYN, 0, 1, b"").repeat(65), ProtocolError::Flood),
        ];
        for (what, bytes, expected) in cases {
            let mut link = Yamux::default();
            link.open();
            assert_eq!(link.feed(&bytes), Err(expected), "{what}");
        }
    }
}
