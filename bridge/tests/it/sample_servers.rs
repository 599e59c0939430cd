//! Tool servers to test with: every kind of tool, resource and prompt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, Mutex},
};
use tokio::sync::Semaphore;
use tool_runtime::{
    Caller, Client, Content, Environment, Json, Log, Message, Output, Progress, ToolError,
    tool_server,
};

/// Where a test meets the tool that it has called.
pub(crate) struct Room {
    /// Has a permit for each call that has begun.
    begun: Semaphore,
    /// Lets one call end for each permit.
    released: Semaphore,
    /// Has a permit for each call that has ended, however.
    left: Semaphore,
}

impl Room {
    pub(crate) fn named(name: &str) -> Arc<Self> {
        static ROOMS: Mutex<Option<HashMap<String, Arc<Room>>>> = Mutex::new(None);

        let mut rooms = ROOMS.lock().unwrap();
        let rooms = rooms.get_or_insert_default();
        let room = rooms.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(Self {
                begun: Semaphore::new(0),
                released: Semaphore::new(0),
                left: Semaphore::new(0),
            })
        });
        room.clone()
    }

    pub(crate) async fn until_begun(&self) {
        one(&self.begun).await;
    }

    pub(crate) fn release(&self) {
        self.released.add_permits(1);
    }

    pub(crate) async fn until_left(&self) {
        one(&self.left).await;
    }

    pub(crate) fn is_left(&self) -> bool {
        self.left.available_permits() > 0
    }
}

async fn one(of: &Semaphore) {
    let permit = crate::client::soon(of.acquire()).await;
    permit.expect("it is never closed").forget();
}

struct Leaving(Arc<Room>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.left.add_permits(1);
    }
}

/// So many numbered lines.
pub(crate) fn lines_of(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        writeln!(text, "line {number:04}").expect("a String takes everything");
    }
    text
}

/// A place in the plane.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Point {
    x: i32,
    y: i32,
}

/// What a user fills in.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Guest {
    /// The name.
    name: String,
}

/// Who a tool was called by.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Seen {
    engine: String,
    project: String,
    session: String,
    principal: String,
}

/// Shows every kind of content.
#[tool_server(name = "gallery", version = "1.0.0")]
pub(crate) mod gallery {
    use super::{Content, Json, Message, Output, Point, ToolError, json, lines_of};

    /// Show a text.
    #[tool(read_only)]
    pub(crate) fn text() -> &'static str {
        "a text"
    }

    /// Show a picture, a sound, a document, bytes, and a link to more.
    #[tool(read_only)]
    pub(crate) fn everything() -> Vec<Content> {
        vec![
            Content::text("all of it"),
            Content::image([1, 2, 3], "image/png"),
            Content::audio([4, 5], "audio/wav"),
            Content::resource("gallery://motto", "text/plain", "ars longa"),
            Content::blob("gallery://logo", "image/png", [1, 2, 3]),
            Content::link("gallery://rooms/7", "the seventh room"),
        ]
    }

    /// Show a point, as data.
    #[tool(read_only, idempotent, open_world = false, title = "A point")]
    pub(crate) fn point(
        /// How far to the right.
        #[arg(range = -10..=10)]
        x: i32,
        /// How far up.
        #[arg(default = 1)]
        y: i32,
    ) -> Json<Point> {
        Json(Point { x, y })
    }

    /// Show data that is no object.
    #[tool(read_only)]
    pub(crate) fn numbers() -> Json<Vec<u32>> {
        Json(vec![1, 2, 3])
    }

    /// Show a long text.
    #[tool(read_only)]
    pub(crate) fn long_text(
        /// How many lines.
        lines: usize,
    ) -> String {
        lines_of(lines)
    }

    /// Switch a lamp on.
    #[tool(idempotent)]
    pub(crate) fn light(
        /// The number of the lamp.
        #[arg(header = "Lamp")]
        number: i64,
    ) -> String {
        format!("lamp {number} is on")
    }

    /// Words on the wall.
    #[resource(uri = "gallery://motto", mime_type = "text/plain", name = "motto")]
    pub(crate) fn motto() -> &'static str {
        "ars longa"
    }

    /// The picture on the door.
    #[resource(uri = "gallery://logo", mime_type = "image/png", name = "logo")]
    pub(crate) fn logo() -> Content {
        Content::image([1, 2, 3], "image/png")
    }

    /// The rooms as a page.
    #[resource(
        uri = "ui://gallery/plan",
        mime_type = "text/html;profile=mcp-app",
        name = "plan"
    )]
    pub(crate) fn plan() -> Output {
        let mut page = Output::text("<h1>Nine rooms</h1>");
        page.insert_meta("ui", json!({ "prefersBorder": true }));
        page
    }

    /// What hangs in a room.
    #[resource(
        uri = "gallery://rooms/{number}",
        mime_type = "text/plain",
        name = "room"
    )]
    pub(crate) fn room(
        /// The number of the room.
        number: u8,
    ) -> Result<String, ToolError> {
        if number > 9 {
            return Err("the gallery has nine rooms".into());
        }
        Ok(format!("room {number} is empty"))
    }

    /// Ask for a description.
    #[prompt(title = "Describe something")]
    pub(crate) fn describe(
        /// What to describe.
        subject: String,
        /// How many sentences.
        #[arg(default = 2)]
        sentences: u8,
    ) -> Vec<Message> {
        let question = format!("Describe {} in {sentences} sentences.", { subject });
        vec![Message::user(question), Message::assistant("Gladly.")]
    }
}

/// Does what tools do besides answering.
#[tool_server(name = "lab", version = "1.0.0")]
pub(crate) mod lab {
    use super::{Caller, Client, Guest, Json, Leaving, Log, Progress, Room, Seen, ToolError, json};

    /// Fail.
    #[tool(read_only)]
    pub(crate) fn fail() -> Result<String, ToolError> {
        Err("the flask is broken".into())
    }

    /// Crash.
    #[tool]
    pub(crate) fn crash() -> String {
        panic!("the secret is 42");
    }

    /// Tell who is calling.
    #[tool(read_only)]
    pub(crate) fn who(caller: &Caller) -> Json<Seen> {
        Json(Seen {
            engine: caller.engine.clone(),
            project: caller.project.clone(),
            session: caller.session.clone(),
            principal: caller.principal.clone(),
        })
    }

    /// Change something.
    #[tool]
    pub(crate) fn change() -> &'static str {
        "changed"
    }

    /// Work on the project.
    #[tool(read_only, requires(project))]
    pub(crate) fn in_project(caller: &Caller) -> String {
        format!("in {}", caller.project)
    }

    /// Wait in a room until somebody opens the door.
    #[tool(read_only)]
    pub(crate) async fn wait(
        /// The room.
        room: String,
    ) -> &'static str {
        let room = Room::named(&room);
        room.begun.add_permits(1);
        let _leaving = Leaving(room.clone());
        match room.released.acquire().await {
            Ok(permit) => permit.forget(),
            Err(_) => return "the room is gone",
        }
        "waited"
    }

    /// Stand in line.
    #[tool(read_only)]
    pub(crate) fn queue(
        /// Whether others come first.
        #[arg(default = false)]
        wait_for_previous: bool,
    ) -> &'static str {
        if wait_for_previous {
            "after the others"
        } else {
            "at once"
        }
    }

    /// Take longer than allowed.
    #[tool(read_only, timeout = "50ms")]
    pub(crate) async fn dawdle() -> &'static str {
        std::future::pending().await
    }

    /// Count to three, and say so.
    #[tool(read_only)]
    pub(crate) async fn count(progress: &Progress) -> &'static str {
        for done in 1..=3 {
            progress.report_with(done, 3, format!("counted {done}"));
            tokio::task::yield_now().await;
        }
        "counted"
    }

    /// Log at several levels.
    #[tool(read_only)]
    pub(crate) async fn chatter(log: &Log) -> &'static str {
        log.debug("a detail");
        log.info("a fact");
        tokio::task::yield_now().await;
        log.warning(json!({ "x": 3 }));
        log.error("a fault");
        "logged"
    }

    /// Ask the user for a name.
    #[tool(read_only)]
    pub(crate) async fn ask_user(client: &Client) -> Result<String, ToolError> {
        let guest: Guest = client.elicit("Who are you?").await?;
        Ok(format!("hello, {}", guest.name))
    }

    /// Ask the user to open a page.
    #[tool(read_only)]
    pub(crate) async fn ask_to_open(client: &Client) -> Result<&'static str, ToolError> {
        let page = "https://example.org/sign-in";
        client.elicit_url("Sign in, please.", page).await?;
        Ok("opened")
    }

    /// Ask the client's model.
    #[tool(read_only)]
    pub(crate) async fn ask_model(client: &Client) -> Result<String, ToolError> {
        let message = json!({ "role": "user", "content": { "type": "text", "text": "Why?" } });
        let params = json!({ "messages": [message], "maxTokens": 10 });
        let answer = client.sample(params).await?;
        Ok(format!("the model says {}", answer["content"]["text"]))
    }

    /// Ask for the folders of the client.
    #[tool(read_only)]
    pub(crate) async fn ask_roots(client: &Client) -> Result<String, ToolError> {
        let roots = client.roots().await?;
        let uris: Vec<String> = roots.into_iter().map(|it| it.uri).collect();
        Ok(uris.join(", "))
    }
}

/// Has a tool that the other twin has too.
#[tool_server(name = "left-twin", version = "1.0.0")]
pub(crate) mod left_twin {
    /// Tell which twin it is.
    #[tool(read_only)]
    pub(crate) fn greet() -> &'static str {
        "left"
    }
}

/// Has a tool that the other twin has too.
#[tool_server(name = "right-twin", version = "1.0.0")]
pub(crate) mod right_twin {
    /// Tell which twin it is.
    #[tool(read_only)]
    pub(crate) fn greet() -> &'static str {
        "right"
    }
}

/// Can't start without a key.
#[derive(Debug)]
pub(crate) struct Locked;

/// Needs a key.
#[tool_server(name = "locked", version = "1.0.0", start)]
impl Locked {
    /// Makes the server, where there is a key.
    #[expect(clippy::unused_async, reason = "`start` is async")]
    pub(crate) async fn start(environment: &Environment) -> Result<Self, ToolError> {
        environment.required("LOCKED_KEY")?;
        Ok(Self)
    }

    /// Open the door.
    #[tool(read_only)]
    pub(crate) fn open() -> &'static str {
        "open"
    }
}
