//! A proxy in front of a store, which does to requests what networks and busy servers do to them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::http::{Answer, Request, Server};

/// What becomes of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// Nothing: it is passed on, and so is its answer.
    None,
    /// The server acts, and the connection is closed without an answer.
    AnswerLost,
    /// The server acts, and the connection breaks off in the middle of the answer.
    AnswerCut,
    /// The server acts, and the connection is reset.
    ResetAfter,
    /// The connection is reset, and the server has seen nothing.
    ResetBefore,
    /// The server has seen nothing: 503, and a request to slow down.
    Throttled,
    /// The server has seen nothing: 403.
    Forbidden,
    /// The server acts this much later, whether or not somebody still waits for the answer.
    Late(Duration),
    /// The connection is closed at once, and the server acts this much later all the same.
    LostThenLate(Duration),
    /// The connection is reset at once, and the server acts this much later all the same.
    ResetThenLate(Duration),
}

/// Starts a proxy for the server at `upstream`, a URL without a path; `decide` says what becomes of each
/// request.
pub(crate) fn proxy(upstream: &str, decide: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> Server {
    let upstream = upstream.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    Server::start(move |request| match decide(request) {
        Fault::None => Answer::raw(pass_on(&upstream, request)),
        Fault::AnswerLost => {
            pass_on(&upstream, request);
            Answer::raw(Vec::new())
        }
        Fault::AnswerCut => {
            let mut answer = pass_on(&upstream, request);
            answer.truncate(answer.len() / 2);
            Answer::raw(answer)
        }
        Fault::ResetAfter => {
            pass_on(&upstream, request);
            Answer::reset()
        }
        Fault::ResetBefore => Answer::reset(),
        Fault::Throttled => refusal(503, "SlowDown"),
        Fault::Forbidden => refusal(403, "AccessDenied"),
        Fault::Late(time) => {
            std::thread::sleep(time);
            Answer::raw(pass_on(&upstream, request))
        }
        Fault::LostThenLate(time) => {
            pass_on_later(&upstream, request, time);
            Answer::raw(Vec::new())
        }
        Fault::ResetThenLate(time) => {
            pass_on_later(&upstream, request, time);
            Answer::reset()
        }
    })
}

/// As S3 words it.
fn refusal(status: u16, code: &str) -> Answer {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>");
    Answer::new(status, body).header("content-type", "application/xml")
}

fn pass_on_later(upstream: &str, request: &Request, time: Duration) {
    let (upstream, request) = (upstream.to_owned(), request.clone());
    std::thread::spawn(move || {
        std::thread::sleep(time);
        pass_on(&upstream, &request)
    });
}

/// Whether a request puts a log entry.
pub(crate) fn puts_entry(request: &Request) -> bool {
    request.method == "PUT" && request.path.contains("/_delta_log/") && request.path.ends_with(".json")
}

/// The server's answer, byte for byte. A server that is gone answers nothing.
fn pass_on(upstream: &str, request: &Request) -> Vec<u8> {
    let exchange = || -> std::io::Result<Vec<u8>> {
        let mut server = TcpStream::connect(upstream)?;
        let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
        for (name, value) in request.headers.iter().filter(|(name, _)| *name != "connection") {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // The answer ends where the connection does.
        head.push_str("connection: close\r\n\r\n");
        server.write_all(&[head.as_bytes(), &request.body].concat())?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        Ok(answer)
    };
    exchange().unwrap_or_default()
}
