//! The other end of a go-plugin connection, as Argo Rollouts' plugins have it, up to the moment where one
//! goes wrong. The program that is started prints where it is; the test's own process listens there.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It takes the connection and says nothing.
    Silence,
    /// It speaks something else.
    Garbage,
    /// Its answer to Run is announced as 10 GB long.
    TenGigabytes,
    /// It answers Run with more than anybody has asked for.
    Flood,
    /// It closes the connection while Run is under way.
    Exit,
    /// It never answers Run, nor whether it is there.
    Hang,
    /// It answers Run after its time.
    Late,
    /// It ends its interface while Run is under way, and keeps the connection.
    Leave,
}

/// Definitions of net/rpc's `Response`, as Go sends them.
const RESPONSE: &[u8] =
    b"\x3a\xff\x81\x03\x01\x01\x08Response\x01\xff\x82\x00\x01\x03\x01\x0dServiceMethod\
    \x01\x0c\x00\x01\x03Seq\x01\x06\x00\x01\x05Error\x01\x0c\x00\x00\x00";
const DISPENSED: &[u8] = b"\x17\xff\x82\x01\x12Dispenser.Dispense\x00\x03\x06\x00\x01";
/// The answer to InitPlugin, with the definition of `RpcError`.
const STARTED: &[u8] = b"\x16\xff\x82\x01\x11Plugin.InitPlugin\x00\
    \x26\xff\x85\x03\x01\x01\x08RpcError\x01\xff\x86\x00\x01\x01\x01\x0bErrorString\
    \x01\x0c\x00\x00\x00\x03\xff\x86\x00";
/// The answer to Control.Ping, with the definition of its empty struct.
const THERE: &[u8] = b"\x13\xff\x82\x01\x0cControl.Ping\x01\x01\x00\
    \x0a\xff\x83\x03\x01\x02\xff\x84\x00\x00\x00\x03\xff\x84\x00";
const TYPE: &[u8] = b"\x12\xff\x82\x01\x0bPlugin.Type\x01\x01\x00\x04\x0c\x00\x01T";
const TEN_GIGABYTES: &[u8] = &[0xfb, 0x02, 0x54, 0x0b, 0xe4, 0x00];

/// The stream of the interface, and how the host opens it.
const INTERFACE: u32 = 7;
const OPENED: &[u8] = &[0, 1, 0, 1, 0, 0, 0, 7];
/// How the other side ends it.
const LEAVING: &[u8] = &[0, 1, 0, 4, 0, 0, 0, 7, 0, 0, 0, 0];

/// Listens for the controller, however often it comes back.
pub fn serve(socket: PathBuf, fault: Fault) {
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // The controller may leave at any moment.
            std::thread::spawn(move || play(stream, fault).ok());
        }
    });
}

fn play(mut stream: UnixStream, fault: Fault) -> std::io::Result<()> {
    match fault {
        Fault::Silence => return drain(&mut stream),
        Fault::Garbage => {
            stream.write_all(&[0xa5; 4096])?;
            return drain(&mut stream);
        }
        _ => {}
    }
    await_bytes(&mut stream, b"Dispenser.Dispense")?;
    send(&mut stream, 1, &[RESPONSE, DISPENSED].concat())?;
    await_bytes(&mut stream, OPENED)?;
    send(&mut stream, INTERFACE, &1u32.to_le_bytes())?;
    await_bytes(&mut stream, b"Plugin.InitPlugin")?;
    send(&mut stream, INTERFACE, &[RESPONSE, STARTED].concat())?;
    await_bytes(&mut stream, b"Control.Ping")?;
    send(&mut stream, 1, THERE)?;
    await_bytes(&mut stream, b"Plugin.Run")?;
    match fault {
        Fault::TenGigabytes => send(&mut stream, INTERFACE, TEN_GIGABYTES)?,
        Fault::Flood => loop {
            send(&mut stream, INTERFACE, &[0x7f; 16 << 10])?;
        },
        Fault::Exit => return Ok(()),
        Fault::Leave => stream.write_all(LEAVING)?,
        Fault::Late => {
            std::thread::sleep(Duration::from_secs(8));
            send(&mut stream, INTERFACE, TYPE)?;
        }
        _ => {}
    }
    drain(&mut stream)
}

/// One frame of data.
fn send(stream: &mut UnixStream, id: u32, bytes: &[u8]) -> std::io::Result<()> {
    let mut frame = vec![0, 0, 0, 0];
    frame.extend_from_slice(&id.to_be_bytes());
    frame.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(bytes);
    stream.write_all(&frame)
}

/// Reads until these bytes have come, and all that has come with them.
fn await_bytes(stream: &mut UnixStream, wanted: &[u8]) -> std::io::Result<()> {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while !seen.windows(wanted.len()).any(|window| window == wanted) {
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => seen.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(())
}

fn drain(stream: &mut UnixStream) -> std::io::Result<()> {
    std::io::copy(stream, &mut std::io::sink()).map(|_| ())
}
