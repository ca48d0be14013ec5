//! Bytes recorded from Go's own net/rpc with the packages of Argo Rollouts 1.10.1.

use serde_json::json;

use super::*;

/// Hexadecimal; blanks and `|` are for reading, quoted text stands for its bytes.
fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, part) in text.split('"').enumerate() {
        if number % 2 == 1 {
            out.extend_from_slice(part.as_bytes());
            continue;
        }
        let digits: Vec<u8> = part.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        out.extend(pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()));
    }
    out
}

const REQUEST: &str = "2e 7f 03 01 01 07 52657175657374 01 ff80 00 01 02 01 0d \
    536572766963654d6574686f64 01 0c 00 01 03 536571 01 06 00 00 00";
const RESPONSE: &str = "3a ff81 03 01 01 08 526573706f6e7365 01 ff82 00 01 03 01 0d \
    536572766963654d6574686f64 01 0c 00 01 03 536571 01 06 00 01 05 4572726f72 01 0c 00 00 00";

#[test]
fn the_calls_of_go_plugin_are_those_that_go_sends() {
    let mut client = RpcClient::with(Schema::argo(), 64);
    let dispense = format!(
        "{REQUEST} 17 ff80 01 12 44697370656e7365722e44697370656e7365 00 | \
         10 0c 00 0d 52706353746570506c7567696e"
    );
    let sent = client.call(7, "Dispenser.Dispense", Argument::Text("RpcStepPlugin")).unwrap();
    assert_eq!(sent, bytes(&dispense));
    let ping = "13 ff80 01 0c 436f6e74726f6c2e50696e67 01 01 00 | 03 02 00 01";
    assert_eq!(client.call(8, "Control.Ping", Argument::True).unwrap(), bytes(ping));
    client.call(9, "Control.Nope", Argument::True).unwrap();

    let answer = format!(
        "{RESPONSE} 17 ff82 01 12 44697370656e7365722e44697370656e7365 00 | 03 06 00 01 \
         13 ff82 01 0c 436f6e74726f6c2e50696e67 01 01 00 | 0a ff83 03 01 02 ff84 00 00 00 | \
         03 ff84 00 \
         38 ff82 01 0c 436f6e74726f6c2e4e6f7065 01 02 01 23 \
         \"rpc: can't find method Control.Nope\" 00 | 03 ff84 00"
    );
    let refused = CallError::Refused("rpc: can't find method Control.Nope".to_owned());
    let expected = [(7, Ok(Value::Uint(1))), (8, Ok(Value::Struct(Vec::new()))), (9, Err(refused))];
    let mut heard = Vec::new();
    for byte in bytes(&answer) {
        heard.extend(client.feed(&[byte]).unwrap()); // However it is cut.
    }
    assert_eq!(heard, expected);
}

#[test]
fn an_interface_without_an_argument_is_called_as_go_does() {
    let mut client = RpcClient::with(Schema::argo(), 64);
    let init =
        format!("{REQUEST} 16 ff80 01 11 506c7567696e2e496e6974506c7567696e 00 | 03 10 00 00");
    assert_eq!(client.call(0, "Plugin.InitPlugin", Argument::Nil).unwrap(), bytes(&init));
    let of_type = "12 ff80 01 0b 506c7567696e2e54797065 01 01 00 | 03 10 00 00";
    assert_eq!(client.call(1, "Plugin.Type", Argument::Nil).unwrap(), bytes(of_type));
    let head = "16 ff82 01 11 506c7567696e2e496e6974506c7567696e 00";
    let answer = format!(
        "{RESPONSE} {head} | 26 ff85 03 01 01 08 5270634572726f72 01 ff86 00 01 01 01 0b \
         4572726f72537472696e67 01 0c 00 00 00 | 03 ff86 00 \
         12 ff82 01 0b 506c7567696e2e54797065 01 01 00 | 04 0c 00 01 54"
    );
    let heard = client.feed(&bytes(&answer)).unwrap();
    assert_eq!(heard[0], (0, Ok(Value::Struct(Vec::new()))));
    assert_eq!(heard[1], (1, Ok(Value::Text("T".to_owned()))));
    client.call(2, "Plugin.InitPlugin", Argument::Nil).unwrap();
    let boom =
        "18 ff82 01 11 506c7567696e2e496e6974506c7567696e 01 02 00 09 ff86 01 04 626f6f6d 00";
    let (_, outcome) = &client.feed(&bytes(boom)).unwrap()[0];
    assert_eq!(outcome.as_ref().unwrap().text("ErrorString"), "boom");
}

#[test]
fn a_struct_goes_along_with_the_definitions_of_its_types() {
    let schema: &'static Schema = Box::leak(Box::new(Schema::parse(
        "SetWeightAndVerifyWeightArgs Rollout:Rollout DesiredWeight:i\n\
         Rollout ObjectMeta(metadata):ObjectMeta\n\
         ObjectMeta Name:s Namespace:s\n",
    )));
    let mut client = RpcClient::with(schema, 65);
    let name = "SetWeightAndVerifyWeightArgs";
    let metadata = json!({ "name": "web", "namespace": "ns1", "unknown": 7 });
    let value = json!({ "rollout": { "metadata": metadata }, "desiredWeight": 30 });
    let argument = Argument::Struct { registered: name, name, value: &value };
    let sent = client.call(0, "Plugin.SetWeight", argument).unwrap();
    let expected = "2f ff81 03 01 01 07 52657175657374 01 ff82 00 01 02 01 0d \
        536572766963654d6574686f64 01 0c 00 01 03 536571 01 06 00 00 00 \
        15 ff82 01 10 506c7567696e2e536574576569676874 00 \
        49 ff83 03 01 01 1c 536574576569676874416e6456657269667957656967687441726773 01 ff84 00 01 \
        02 01 07 526f6c6c6f7574 01 ff86 00 01 0d 44657369726564576569676874 01 04 00 00 00 \
        25 ff85 03 01 01 07 526f6c6c6f7574 01 ff86 00 01 01 01 0a 4f626a6563744d657461 01 ff88 00 00 \
        00 2f ff87 03 01 01 0a 4f626a6563744d657461 01 ff88 00 01 02 01 04 4e616d65 01 0c 00 01 09 \
        4e616d657370616365 01 0c 00 00 00 \
        33 10 00 1c 536574576569676874416e6456657269667957656967687441726773 ff84 11 01 01 01 03 \
        776562 01 03 6e7331 00 00 01 3c 00";
    assert_eq!(sent, bytes(expected));
    let again = client.call(1, "Plugin.SetWeight", argument).unwrap();
    let expected = "17 ff82 01 10 506c7567696e2e536574576569676874 01 01 00 \
        33 10 00 1c 536574576569676874416e6456657269667957656967687441726773 ff84 11 01 01 01 03 \
        776562 01 03 6e7331 00 00 01 3c 00";
    assert_eq!(again, bytes(expected), "definitions are sent once");
    let wrong = json!({ "rollout": { "metadata": { "name": 5 } } });
    let wrong = Argument::Struct { registered: name, name, value: &wrong };
    let error = client.call(2, "Plugin.SetWeight", wrong).unwrap_err();
    assert_eq!(error.to_string(), "rollout.metadata.name: expected a text");
}

/// The body of an answer, whose definitions come first.
fn body(definitions: &[&str], value: &str) -> Value {
    let mut decoder = Decoder::new();
    let mut messages = Messages::default();
    let text = [definitions, &[value]].concat().join(" ");
    messages.feed(&bytes(&text));
    let mut found = None;
    while let Some(message) = messages.next().unwrap() {
        found = decoder.take(&message).unwrap().or(found);
    }
    found.unwrap()
}

/// A definition of a struct as Go writes it.
fn define(id: i64, fields: &[(&str, i64)]) -> String {
    let text: Vec<String> = fields.iter().map(|(name, id)| format!("{name}:{id}")).collect();
    let mut out = vec![3, 1, 2];
    number(&mut out, id);
    out.extend_from_slice(&[0, 1, fields.len() as u8]);
    for (name, id) in fields {
        out.extend_from_slice(&[1, name.len() as u8]);
        out.extend_from_slice(name.as_bytes());
        out.push(1);
        number(&mut out, *id);
        out.push(0);
    }
    out.extend_from_slice(&[0, 0]);
    framed(id, &out, &text.join(" "))
}

fn framed(id: i64, body: &[u8], what: &str) -> String {
    let mut whole = Vec::new();
    number(&mut whole, -id);
    whole.extend_from_slice(body);
    assert!(whole.len() < 128, "{what}");
    let all = std::iter::once(whole.len() as u8).chain(whole);
    all.map(|byte| format!("{byte:02x}")).collect()
}

fn number(out: &mut Vec<u8>, number: i64) {
    let bits = if number < 0 { (!number as u64) << 1 | 1 } else { (number as u64) << 1 };
    match bits {
        0..=127 => out.push(bits as u8),
        128..=255 => out.extend_from_slice(&[0xff, bits as u8]),
        _ => out.extend_from_slice(&[0xfe, (bits >> 8) as u8, bits as u8]),
    }
}

#[test]
fn answers_are_read_as_go_sends_them() {
    let error = define(71, &[("ErrorString", 6)]);
    let verified = define(313, &[("Verified", 2), ("Err", 71)]);
    let value = body(&[&verified, &error], "08 fe0272 01 04 01 00 00");
    assert_eq!(value.int("Verified"), 2);
    assert_eq!(value.field("Err"), Some(&Value::Struct(Vec::new())));

    let fields = [("Phase", 6), ("Message", 6), ("RequeueAfter", 2), ("Status", 5)];
    let result = define(375, &fields);
    let response = define(374, &[("Result", 375), ("Error", 71)]);
    let definitions: [&str; 3] = [&response, &result, &error];
    let said = "21 fe02ec 01 01 07 \"Running\" 02 fb06fc23ac00 01 07 7b2261223a317d 00 01 00 00";
    let value = body(&definitions, said);
    let result = value.field("Result").unwrap();
    assert_eq!((result.text("Phase"), result.int("RequeueAfter")), ("Running", 15_000_000_000));
    assert_eq!(result.bytes("Status"), b"{\"a\":1}");
    let value = body(&definitions, "0b fe02ec 01 00 01 01 01 65 00 00");
    assert_eq!(value.field("Error").unwrap().text("ErrorString"), "e");
}

#[test]
fn a_measurement_keeps_its_times_and_its_metadata() {
    // The definition of the time says another id than the message that brings it.
    let time = "0b ff8f 05 01 02 fe02e4 00 00 00";
    let texts = framed(73, &[4, 1, 2, 0xff, 0x92, 0, 1, 12, 1, 12, 0, 0], "a map of texts");
    let fields = [("Phase", 6), ("Message", 6), ("StartedAt", 72), ("FinishedAt", 72)];
    let more = [("Value", 6), ("Metadata", 73), ("ResumeAt", 72)];
    let measurement = define(366, &[fields.as_slice(), more.as_slice()].concat());
    let said = "2a fe02dc 01 0a \"Successful\" 02 0f 01 0000000edce5e800 00000000 ffff 02 01 31 01 01 \
        01 6b 01 76 00";
    let value = body(&[&measurement, time, &texts], said);
    assert_eq!((value.text("Phase"), value.text("Value")), ("Successful", "1"));
    assert_eq!(value.bytes("StartedAt").len(), 15);
    let pair = (Value::Text("k".to_owned()), Value::Text("v".to_owned()));
    assert_eq!(value.field("Metadata"), Some(&Value::Map(vec![pair])));
    assert_eq!(body(&[&texts], "04 ff92 00 00"), Value::Map(Vec::new()), "GetMetadata, nil");
}
