//! net/rpc: calls and answers on one stream, matched by their number.

use std::collections::BTreeMap;

use crate::gob::{Argument, Decoder, EncodeError, Encoder, GobError, Messages, Value};
use crate::schema::Schema;
use crate::session::CallError;

/// The first id that Go gives to a type of its own.
const FIRST_ID: i64 = 65;

/// The calling side of one stream.
#[derive(Debug)]
pub(crate) struct RpcClient {
    encoder: Encoder,
    decoder: Decoder,
    messages: Messages,
    next: u64,
    /// Calls without an answer, by number, and what the caller knows them by.
    pending: BTreeMap<u64, u64>,
    /// The head of an answer whose body has not come yet.
    head: Option<Head>,
}

#[derive(Debug)]
struct Head {
    number: u64,
    error: String,
}

/// A call and what came of it.
pub(crate) type Answered = (u64, Result<Value, CallError>);

impl RpcClient {
    pub fn new() -> Self {
        Self::with(Schema::argo(), FIRST_ID)
    }

    fn with(schema: &'static Schema, first_id: i64) -> Self {
        RpcClient {
            encoder: Encoder::new(schema, first_id),
            decoder: Decoder::new(),
            messages: Messages::default(),
            next: 0,
            pending: BTreeMap::new(),
            head: None,
        }
    }

    /// The bytes of a call that the caller knows by `name`.
    pub fn call(
        &mut self,
        name: u64,
        method: &str,
        argument: Argument<'_>,
    ) -> Result<Vec<u8>, EncodeError> {
        let number = self.next;
        // A definition is sent once: what cannot be encoded must leave none behind.
        self.encoder.check(argument)?;
        let mut bytes = self.encoder.request(method, number);
        bytes.extend(self.encoder.argument(argument)?);
        self.next += 1;
        self.pending.insert(number, name);
        Ok(bytes)
    }

    /// Takes in what the other side sent, and gives what it answers.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Answered>, GobError> {
        self.messages.feed(bytes);
        let mut answered = Vec::new();
        while let Some(message) = self.messages.next()? {
            let Some(value) = self.decoder.take(&message)? else { continue };
            match self.head.take() {
                None => {
                    let error = value.text("Error").to_owned();
                    let number = u64::try_from(value.int("Seq")).unwrap_or(u64::MAX);
                    self.head = Some(Head { number, error });
                }
                Some(Head { number, error }) => {
                    let Some(name) = self.pending.remove(&number) else { continue };
                    let outcome =
                        if error.is_empty() { Ok(value) } else { Err(CallError::Refused(error)) };
                    answered.push((name, outcome));
                }
            }
        }
        Ok(answered)
    }

    /// Bytes that are kept of messages that are not complete.
    pub fn held(&self) -> usize {
        self.messages.held()
    }

    /// Nobody answers any more.
    pub fn end(&mut self) -> Vec<Answered> {
        let pending = std::mem::take(&mut self.pending);
        pending.into_values().map(|name| (name, Err(CallError::Gone))).collect()
    }
}

#[cfg(test)]
mod tests;
