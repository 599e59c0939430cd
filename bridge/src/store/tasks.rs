//! Tasks of the protocol's extension for long calls, each run by one of the bridges on this database.
//!
//! A bridge holds a lease on what it runs. When it stops, it lets go; when it dies, the lease runs out, or it is known to
//! be dead before. Then another bridge adopts the task.

use super::{DatabaseError, Store, from_json, to_json};
use serde_json::{Map, Value};
use sqlx::{Row as _, any::AnyRow};
use std::{collections::BTreeSet, fmt};
use thiserror::Error;

/// What a [`StoredTask`] is read from.
macro_rules! columns {
    () => {
        "id, principal, tool, arguments, caller, idempotent, status, status_message, created_at, updated_at, ttl_ms, \
         poll_interval_ms, input_requests, input_responses, input_taken, cancel_requested, result, error, owner, \
         lease_until, revision"
    };
}

/// The condition that a task has not ended.
macro_rules! is_open {
    () => {
        "status IN ('working', 'input_required')"
    };
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// It runs.
    Working,
    /// It waits for answers of the client.
    InputRequired,
    /// The tool has answered, perhaps with an error of its own.
    Completed,
    /// The call did not happen.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

impl TaskStatus {
    const ALL: [Self; 5] = [
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Returns its name in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Says whether nothing will change any more.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A task to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// Who made the call; nobody else may see the task.
    pub principal: String,
    /// The full name of the tool.
    pub tool: String,
    /// The arguments of the call: JSON.
    pub arguments: String,
    /// What must be known of the caller to make the call again: JSON.
    pub caller: String,
    /// Whether the call may be made again where nobody knows how far it came.
    pub idempotent: bool,
    /// How long it is kept from now on, in milliseconds; `None` is for ever.
    pub ttl_ms: Option<i64>,
    /// How long a client should wait between two looks, in milliseconds.
    pub poll_interval_ms: Option<i64>,
    /// The process that runs it: a name that no other process has or had.
    pub owner: String,
    /// Until when others leave it to its owner, in milliseconds since 1970.
    pub lease_until: i64,
}

/// A task, as the database keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTask {
    /// What the client calls it by: 128 random bits.
    pub id: String,
    /// Who made the call.
    pub principal: String,
    /// The full name of the tool.
    pub tool: String,
    /// The arguments of the call: JSON.
    pub arguments: String,
    /// What must be known of the caller to make the call again: JSON.
    pub caller: String,
    /// Whether the call may be made again where nobody knows how far it came.
    pub idempotent: bool,
    /// How far it is.
    pub status: TaskStatus,
    /// What there is to say about the status.
    pub status_message: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// When the client could last see a change.
    pub updated_at: i64,
    /// How long it is kept, counted from when it was made, in milliseconds; `None` is for ever.
    pub ttl_ms: Option<i64>,
    /// How long a client should wait between two looks, in milliseconds.
    pub poll_interval_ms: Option<i64>,
    /// What the client was ever asked, by key.
    pub input_requests: Map<String, Value>,
    /// What the client answered, by key.
    pub input_responses: Map<String, Value>,
    /// The keys whose answers the owner has taken.
    pub input_taken: BTreeSet<String>,
    /// Whether the client wants it to end.
    pub cancel_requested: bool,
    /// What the tool answered, once completed: JSON.
    pub result: Option<String>,
    /// The error of the protocol, once failed: JSON.
    pub error: Option<String>,
    /// The process that runs it.
    pub owner: Option<String>,
    /// Until when others leave it to its owner.
    pub lease_until: Option<i64>,
    revision: i64,
}

impl StoredTask {
    /// Returns what the client is still to answer, by key.
    pub fn open_requests(&self) -> impl Iterator<Item = (&str, &Value)> {
        let asks = self.status == TaskStatus::InputRequired;
        self.input_requests
            .iter()
            .filter(move |(key, _)| asks && !self.input_responses.contains_key(*key))
            .map(|(key, request)| (key.as_str(), request))
    }

    fn waits(&self) -> bool {
        self.input_requests
            .keys()
            .any(|key| !self.input_responses.contains_key(key))
    }
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tool answered with this JSON.
    Completed(String),
    /// The call did not happen, for this error of the protocol: JSON.
    Failed(String),
    /// It was cancelled.
    Cancelled,
}

/// What the runner of a task finds when it looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Answers that it has not had, by key.
    pub answers: Map<String, Value>,
    /// Whether the client wants the task to end.
    pub cancel_requested: bool,
}

/// A task that is still its owner's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Renewed {
    /// The task.
    pub id: String,
    /// Whether the client wants it to end.
    pub cancel_requested: bool,
}

/// Why a task wasn't kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CreateTaskError {
    /// The system has no randomness to give.
    #[error("the system gives no random bytes for a task")]
    Random(#[from] getrandom::Error),
    /// The database failed.
    #[error("can't keep the task")]
    Database(#[from] DatabaseError),
}

impl Store {
    /// Keeps a task that starts now.
    pub async fn create_task(&self, new: NewTask, now: i64) -> Result<StoredTask, CreateTaskError> {
        let row = sqlx::query(concat!(
            "INSERT INTO tasks (",
            columns!(),
            ") VALUES ($1, $2, $3, $4, $5, $6, 'working', NULL, $7, $7, $8, $9, '{}', '{}', '[]', 0, NULL, NULL,
                $10, $11, 0)
             RETURNING ",
            columns!()
        ))
        .bind(super::tokens::random_id::<16>()?)
        .bind(new.principal)
        .bind(new.tool)
        .bind(new.arguments)
        .bind(new.caller)
        .bind(i64::from(new.idempotent))
        .bind(now)
        .bind(new.ttl_ms)
        .bind(new.poll_interval_ms)
        .bind(new.owner)
        .bind(new.lease_until)
        .fetch_one(&self.pool)
        .await
        .map_err(DatabaseError::from)?;
        Ok(task(&row).map_err(DatabaseError::from)?)
    }

    /// Finds a task. One of another principal looks like none.
    pub async fn find_task(
        &self,
        id: &str,
        principal: &str,
    ) -> Result<Option<StoredTask>, DatabaseError> {
        if !super::can_be_text(id) {
            return Ok(None);
        }
        let row = sqlx::query(concat!(
            "SELECT ",
            columns!(),
            " FROM tasks WHERE id = $1 AND principal = $2"
        ))
        .bind(id.to_owned())
        .bind(principal.to_owned())
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.as_ref().map(task).transpose()?)
    }

    /// Asks the client for input, by key. What was asked by the same key before stays as it was, with its answer.
    ///
    /// Returns the task, or `None` where it has ended or isn't this owner's.
    pub async fn ask_task(
        &self,
        id: &str,
        owner: &str,
        requests: &Map<String, Value>,
        now: i64,
    ) -> Result<Option<StoredTask>, DatabaseError> {
        loop {
            let Some(mut task) = self.owned_task(id, owner).await? else {
                return Ok(None);
            };
            for (key, request) in requests {
                if !task.input_requests.contains_key(key) {
                    task.input_requests.insert(key.clone(), request.clone());
                }
            }
            if let Some(task) = self.update_input(task, now).await? {
                return Ok(Some(task));
            }
        }
    }

    /// Keeps what the client answers. Only what was asked has an answer, and only the first one counts. When nothing
    /// is left to answer, the task works on.
    ///
    /// Returns the task, also where it has ended and the answers come too late; one of another principal is `None`.
    pub async fn answer_task(
        &self,
        id: &str,
        principal: &str,
        responses: &Map<String, Value>,
        now: i64,
    ) -> Result<Option<StoredTask>, DatabaseError> {
        loop {
            let Some(mut task) = self.find_task(id, principal).await? else {
                return Ok(None);
            };
            let known = task.input_responses.len();
            for (key, response) in responses {
                if task.input_requests.contains_key(key) && !task.input_responses.contains_key(key)
                {
                    task.input_responses.insert(key.clone(), response.clone());
                }
            }
            if task.status.is_final() || task.input_responses.len() == known {
                return self.find_task(id, principal).await;
            }
            if let Some(task) = self.update_input(task, now).await? {
                return Ok(Some(task));
            }
        }
    }

    /// Hands the owner the answers that it has not had.
    ///
    /// Returns `None` where the task has ended or isn't this owner's any more: then nobody waits for it.
    pub async fn take_answers(
        &self,
        id: &str,
        owner: &str,
    ) -> Result<Option<Answers>, DatabaseError> {
        loop {
            let Some(mut task) = self.owned_task(id, owner).await? else {
                return Ok(None);
            };
            let mut answers = Map::new();
            for (key, response) in &task.input_responses {
                if task.input_taken.insert(key.clone()) {
                    answers.insert(key.clone(), response.clone());
                }
            }
            let answers = Answers {
                cancel_requested: task.cancel_requested,
                answers,
            };
            let (updated_at, none_new) = (task.updated_at, answers.answers.is_empty());
            if none_new || self.update_input(task, updated_at).await?.is_some() {
                return Ok(Some(answers));
            }
        }
    }

    /// Notes that the client wants a task to end; its owner finds out when it looks.
    ///
    /// Returns the task, also where it has ended already; one of another principal is `None`.
    pub async fn request_cancel(
        &self,
        id: &str,
        principal: &str,
        now: i64,
    ) -> Result<Option<StoredTask>, DatabaseError> {
        if !super::can_be_text(id) {
            return Ok(None);
        }
        let row = sqlx::query(concat!(
            "UPDATE tasks SET cancel_requested = 1, updated_at = $1, revision = revision + 1
             WHERE id = $2 AND principal = $3 AND cancel_requested = 0 AND ",
            is_open!(),
            " RETURNING ",
            columns!()
        ))
        .bind(now)
        .bind(id.to_owned())
        .bind(principal.to_owned())
        .fetch_optional(&self.pool)
        .await?;
        match row {
            Some(row) => Ok(Some(task(&row)?)),
            None => self.find_task(id, principal).await,
        }
    }

    /// Ends a task. Says whether it did: a task ends once, and only at the hands of its owner.
    pub async fn finish_task(
        &self,
        id: &str,
        owner: &str,
        outcome: Outcome,
        message: Option<&str>,
        now: i64,
    ) -> Result<bool, DatabaseError> {
        let (status, result, error) = match outcome {
            Outcome::Completed(result) => (TaskStatus::Completed, Some(result), None),
            Outcome::Failed(error) => (TaskStatus::Failed, None, Some(error)),
            Outcome::Cancelled => (TaskStatus::Cancelled, None, None),
        };
        let finished = sqlx::query(concat!(
            "UPDATE tasks SET status = $1, status_message = $2, result = $3, error = $4, updated_at = $5,
                lease_until = NULL, revision = revision + 1
             WHERE id = $6 AND owner = $7 AND ",
            is_open!()
        ))
        .bind(status.as_str())
        .bind(message.map(|it| it.replace('\0', "\u{fffd}")))
        .bind(result)
        .bind(error)
        .bind(now)
        .bind(id.to_owned())
        .bind(owner.to_owned())
        .execute(&self.pool)
        .await?;
        Ok(finished.rows_affected() > 0)
    }

    /// Keeps what an owner runs from being adopted. Returns all of it, by id: what isn't named any more has ended or
    /// was adopted, and is to be left.
    pub async fn renew_leases(
        &self,
        owner: &str,
        until: i64,
    ) -> Result<Vec<Renewed>, DatabaseError> {
        let rows = sqlx::query(concat!(
            "UPDATE tasks SET lease_until = $1 WHERE owner = $2 AND ",
            is_open!(),
            " RETURNING id, cancel_requested"
        ))
        .bind(until)
        .bind(owner.to_owned())
        .fetch_all(&self.pool)
        .await?;
        let mut renewed: Vec<Renewed> = rows.iter().map(renewed).collect::<Result<_, _>>()?;
        renewed.sort();
        Ok(renewed)
    }

    /// Lets go of everything that an owner runs, so that it is adopted at once. Returns how much it is.
    pub async fn release_tasks(&self, owner: &str) -> Result<u64, DatabaseError> {
        let released = sqlx::query(concat!(
            "UPDATE tasks SET owner = NULL, lease_until = NULL, revision = revision + 1 WHERE owner = $1 AND ",
            is_open!()
        ))
        .bind(owner.to_owned())
        .execute(&self.pool)
        .await?;
        Ok(released.rows_affected())
    }

    /// Takes over the tasks whose lease has run out, the oldest first. Of several bridges that do so at once, each
    /// task goes to one. Its new owner starts over and has had no answer yet.
    pub async fn adopt_tasks(
        &self,
        owner: &str,
        now: i64,
        until: i64,
    ) -> Result<Vec<StoredTask>, DatabaseError> {
        let rows = sqlx::query(concat!(
            "UPDATE tasks SET owner = $1, lease_until = $2, input_taken = '[]', revision = revision + 1
             WHERE (lease_until IS NULL OR lease_until < $3) AND (owner IS NULL OR owner <> $1)
                AND (ttl_ms IS NULL OR ttl_ms > $3 - created_at) AND ",
            is_open!(),
            " RETURNING ",
            columns!()
        ))
        .bind(owner.to_owned())
        .bind(until)
        .bind(now)
        .fetch_all(&self.pool)
        .await?;
        let mut tasks: Vec<StoredTask> = rows.iter().map(task).collect::<Result<_, _>>()?;
        tasks.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(tasks)
    }

    /// Deletes the tasks that were to be kept until now; says how many.
    pub async fn expire_tasks(&self, now: i64) -> Result<u64, DatabaseError> {
        let deleted = sqlx::query("DELETE FROM tasks WHERE ttl_ms <= $1 - created_at")
            .bind(now)
            .execute(&self.pool)
            .await?;
        Ok(deleted.rows_affected())
    }

    async fn owned_task(&self, id: &str, owner: &str) -> Result<Option<StoredTask>, DatabaseError> {
        let row = sqlx::query(concat!(
            "SELECT ",
            columns!(),
            " FROM tasks WHERE id = $1 AND owner = $2 AND ",
            is_open!()
        ))
        .bind(id.to_owned())
        .bind(owner.to_owned())
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.as_ref().map(task).transpose()?)
    }

    /// Writes what was asked, answered and taken, unless somebody has written in between; then it returns `None`.
    async fn update_input(
        &self,
        mut task: StoredTask,
        now: i64,
    ) -> Result<Option<StoredTask>, DatabaseError> {
        task.status = if task.waits() {
            TaskStatus::InputRequired
        } else {
            TaskStatus::Working
        };
        let row = sqlx::query(concat!(
            "UPDATE tasks SET status = $1, input_requests = $2, input_responses = $3, input_taken = $4,
                updated_at = $5, revision = revision + 1
             WHERE id = $6 AND revision = $7 AND ",
            is_open!(),
            " RETURNING ",
            columns!()
        ))
        .bind(task.status.as_str())
        .bind(to_json(&task.input_requests))
        .bind(to_json(&task.input_responses))
        .bind(to_json(&task.input_taken))
        .bind(now)
        .bind(task.id)
        .bind(task.revision)
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.as_ref().map(self::task).transpose()?)
    }
}

fn task(row: &AnyRow) -> Result<StoredTask, sqlx::Error> {
    Ok(StoredTask {
        id: row.try_get("id")?,
        principal: row.try_get("principal")?,
        tool: row.try_get("tool")?,
        arguments: row.try_get("arguments")?,
        caller: row.try_get("caller")?,
        idempotent: row.try_get::<i64, _>("idempotent")? != 0,
        status: status(row)?,
        status_message: row.try_get("status_message")?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
        ttl_ms: row.try_get("ttl_ms")?,
        poll_interval_ms: row.try_get("poll_interval_ms")?,
        input_requests: from_json(row, "input_requests")?,
        input_responses: from_json(row, "input_responses")?,
        input_taken: from_json(row, "input_taken")?,
        cancel_requested: row.try_get::<i64, _>("cancel_requested")? != 0,
        result: row.try_get("result")?,
        error: row.try_get("error")?,
        owner: row.try_get("owner")?,
        lease_until: row.try_get("lease_until")?,
        revision: row.try_get("revision")?,
    })
}

fn status(row: &AnyRow) -> Result<TaskStatus, sqlx::Error> {
    let name: String = row.try_get("status")?;
    TaskStatus::ALL
        .into_iter()
        .find(|it| it.as_str() == name)
        .ok_or_else(|| sqlx::Error::ColumnDecode {
            index: "status".to_owned(),
            source: format!("`{}` is no status of a task", name.escape_debug()).into(),
        })
}

fn renewed(row: &AnyRow) -> Result<Renewed, sqlx::Error> {
    Ok(Renewed {
        id: row.try_get("id")?,
        cancel_requested: row.try_get::<i64, _>("cancel_requested")? != 0,
    })
}
