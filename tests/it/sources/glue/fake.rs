//! A Glue that pages, throttles, refuses and goes round in circles on demand: moto does none of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// What the fake does with a request.
pub(crate) enum Trick {
    /// Answers it.
    Serve,
    /// Answers it when the gate is opened.
    Hold,
    /// Answers with a status and a body.
    Answer(u16, Value),
    /// Sends the tables of the first page again and again, with the next of these tokens.
    Circle(&'static [&'static str]),
}

/// A request: its operation, the database, the table or page, how many times it was made.
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) times: usize,
}

type Tricks = Box<dyn Fn(&Request) -> Trick + Send + Sync>;

pub(crate) struct Fake {
    pub(crate) url: String,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

struct State {
    databases: BTreeMap<String, Vec<Value>>,
    page: usize,
    tricks: Tricks,
    gate: Semaphore,
    asked: Mutex<Vec<String>>,
    headers: Mutex<Vec<String>>,
}

impl Fake {
    /// Databases with their tables, so many on a page.
    pub(crate) async fn start(
        databases: BTreeMap<String, Vec<Value>>,
        page: usize,
        tricks: impl Fn(&Request) -> Trick + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (gate, asked, headers) = (Semaphore::new(0), Mutex::default(), Mutex::default());
        let state = Arc::new(State { databases, page, tricks: Box::new(tricks), gate, asked, headers });
        let shared = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, shared.clone()));
            }
        });
        Self { url, state, task }
    }

    /// The requests so far, such as `GetTables sales 2`, sorted.
    pub(crate) fn asked(&self) -> Vec<String> {
        let mut asked = self.state.asked.lock().unwrap().clone();
        asked.sort();
        asked
    }

    /// The heads of the requests so far.
    pub(crate) fn headers(&self) -> String {
        self.state.headers.lock().unwrap().join("\n")
    }

    pub(crate) fn open_the_gate(&self) {
        self.state.gate.add_permits(1000);
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Requests of one connection; ends with it, whatever the end was.
async fn serve(socket: TcpStream, state: Arc<State>) {
    let mut stream = BufReader::new(socket);
    while let Some((head, body)) = read(&mut stream).await {
        let (status, answer) = state.answer(&head, &body).await;
        let text = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/x-amz-json-1.1\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        if stream.write_all(format!("{head}{text}").as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (stream.read_line(&mut head).await.ok()? > 0).then_some(())?;
    }
    let mut body = vec![0; header(&head, "content-length")?.parse().ok()?];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, serde_json::from_slice(&body).ok()?))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = head.lines().filter_map(|line| line.split_once(':'));
    pairs.find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value.trim()))
}

impl State {
    async fn answer(&self, head: &str, body: &Value) -> (u16, Value) {
        let operation =
            header(head, "x-amz-target").and_then(|t| t.strip_prefix("AWSGlue.")).unwrap().to_owned();
        let text = |key: &str| body.get(key).and_then(Value::as_str);
        let page: usize =
            text("NextToken").and_then(|t| t.strip_prefix("page-")).map_or(1, |n| n.parse().unwrap_or(1));
        let (database, name) = (text("DatabaseName").unwrap_or_default(), text("Name"));
        let what = name.map_or_else(|| page.to_string(), str::to_owned);
        let catalog = text("CatalogId").map(|id| format!("{id}:")).unwrap_or_default();
        let line = format!("{operation} {catalog}{database} {what}").replace("  ", " ");
        let times = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(line.clone());
            self.headers.lock().unwrap().push(head.to_owned());
            asked.iter().filter(|l| **l == line).count()
        };
        let held = match (self.tricks)(&Request { line, times }) {
            Trick::Answer(status, body) => return (status, body),
            Trick::Circle(tokens) => {
                let at = tokens.iter().position(|t| Some(*t) == text("NextToken")).map_or(0, |at| at + 1);
                let key = if operation == "GetTables" { "TableList" } else { "DatabaseList" };
                return (200, json!({key: [], "NextToken": tokens[at % tokens.len()]}));
            }
            Trick::Hold => true,
            Trick::Serve => false,
        };
        if held {
            self.gate.acquire().await.unwrap().forget();
        }
        let missing = || (400, json!({"__type": "EntityNotFoundException", "Message": "Entity Not Found"}));
        let names: Vec<Value> = self.databases.keys().map(|name| json!({"Name": name})).collect();
        match (operation.as_str(), self.databases.get(database)) {
            ("GetDatabases", _) => (200, self.on_page("DatabaseList", &names, page)),
            ("GetTables", Some(tables)) => (200, self.on_page("TableList", tables, page)),
            ("GetTable", Some(tables)) => match tables.iter().find(|t| t["Name"].as_str() == name) {
                Some(table) => (200, json!({"Table": table})),
                None => missing(),
            },
            _ => missing(),
        }
    }

    fn on_page(&self, key: &str, all: &[Value], page: usize) -> Value {
        let items: Vec<&Value> = all.iter().skip((page - 1) * self.page).take(self.page).collect();
        match page * self.page < all.len() {
            true => json!({key: items, "NextToken": format!("page-{}", page + 1)}),
            false => json!({key: items}),
        }
    }
}
