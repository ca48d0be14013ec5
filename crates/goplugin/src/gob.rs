//! Go's gob: values that describe their own types.

mod decode;
mod encode;
mod wire;

pub use decode::{GobError, Value};
pub use encode::EncodeError;

pub(crate) use decode::{Decoder, Messages};
pub(crate) use encode::{Argument, Encoder};
