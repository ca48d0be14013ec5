//! The protocol of Argo Rollouts' plugins, as HashiCorp's go-plugin speaks it: a line on stdout, then
//! net/rpc with gob over yamux. Bytes in, bytes out: no I/O, no clock, and whatever a plugin sends
//! neither panics nor takes more memory than the limits below.
//!
//! A [`Session`] is one connection. [`Session::feed`] takes what the plugin sent,
//! [`Session::take_output`] gives what it must be sent, [`Session::take_events`] says what happened.

mod gob;
mod handshake;
mod rpc;
mod schema;
mod session;
mod yamux;

pub use gob::{EncodeError, GobError, Value};
pub use handshake::{Address, HandshakeError, parse_handshake};
pub use session::{CallError, Event, PluginKind, Printed, ProtocolError, Session};

/// The longest gob message that is read, in bytes: a status that is larger cannot be stored anyway.
pub const MESSAGE_LIMIT: usize = 4 << 20;
/// The longest text or byte string in a message.
pub const TEXT_LIMIT: usize = 1 << 20;
/// The most values in one message, whatever their size.
pub const VALUE_LIMIT: usize = 1 << 16;
/// How deep values may be nested.
pub const DEPTH_LIMIT: usize = 32;
/// The most bytes of type definitions on one stream; Go's own need 21 KB.
pub const DEFINITION_LIMIT: usize = 1 << 20;
/// The longest line of a handshake.
pub const HANDSHAKE_LIMIT: usize = 4096;
