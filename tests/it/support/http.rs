//! A small HTTP server that answers as a test says, and keeps what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use url::Url;

/// What the server was asked.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query as they were sent.
    pub(crate) target: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    /// By lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// Method, path and query on one line, for comparison.
    pub(crate) fn line(&self) -> String {
        let query: Vec<String> = self.query.iter().map(|(k, v)| format!("{k}={v}")).collect();
        format!("{} {}?{}", self.method, self.path, query.join("&"))
    }
}

/// What the server answers.
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    end: End,
}

/// What becomes of the connection.
#[derive(PartialEq)]
enum End {
    /// It is there for the next request.
    Stays,
    /// It is closed one byte before the end that was promised.
    Cut,
    /// The body is all that is sent, head and all; then it is closed.
    Raw,
    /// It is reset without an answer.
    Reset,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), end: End::Stays }
    }

    /// These bytes and nothing else; then the connection is closed.
    #[cfg(feature = "s3")]
    pub(crate) fn raw(bytes: Vec<u8>) -> Self {
        Self { end: End::Raw, ..Self::new(0, bytes) }
    }

    /// The connection is reset.
    #[cfg(feature = "s3")]
    pub(crate) fn reset() -> Self {
        Self { end: End::Reset, ..Self::new(0, "") }
    }

    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::new(status, body.to_string()).header("content-type", "application/json")
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Breaks off before the end.
    pub(crate) fn cut(mut self) -> Self {
        self.end = End::Cut;
        self
    }
}

/// The server; it ends when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Request>>>,
    is_over: Arc<AtomicBool>,
}

impl Server {
    /// Listens on a free port of this machine. The closure runs on a thread of its own for each
    /// connection, so it may wait.
    pub(crate) fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, is_over) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(false)));
        let (log, over, answer) = (Arc::clone(&asked), Arc::clone(&is_over), Arc::new(answer));
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                // A client that goes away is its own affair.
                std::thread::spawn(move || connection.and_then(|c| serve(c, &log, &*answer)));
            }
        });
        Self { address, asked, is_over }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All that it was asked until now, in order.
    pub(crate) fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(
    mut connection: TcpStream,
    log: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(&Request) -> Answer + Send + Sync),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    while let Some(request) = read(&mut reader)? {
        log.lock().unwrap().push(request.clone());
        let Answer { status, headers, body, end } = answer(&request);
        match end {
            End::Raw => return connection.write_all(&body),
            // Without any time to linger, what is closed is reset.
            End::Reset => return socket2::SockRef::from(&connection).set_linger(Some(Duration::ZERO)),
            End::Stays | End::Cut => {}
        }
        let length = body.len() + usize::from(end == End::Cut);
        let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // In one piece: a second one would wait for the first to be acknowledged.
        connection.write_all(&[format!("{head}\r\n").as_bytes(), &body].concat())?;
        if end == End::Cut {
            return connection.shutdown(std::net::Shutdown::Both);
        }
    }
    Ok(())
}

fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) =
        (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or("/").to_owned());
    let url = Url::parse("http://server").unwrap().join(&target).unwrap();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers.get("content-length").map_or(0, |n| n.parse().unwrap())];
    reader.read_exact(&mut body)?;
    let query = url.query_pairs().into_owned().collect();
    Ok(Some(Request { method, target, path: url.path().to_owned(), query, headers, body }))
}
