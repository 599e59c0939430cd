//! What bridges on one PostgreSQL tell each other, so that none has to look all the time.
//!
//! Who isn't connected at the moment misses it: nothing may depend on news alone.

use super::{DatabaseError, Kind, Store};
use sqlx::postgres::PgListener;

/// The channel, which is of one schema, since notifications are of the whole database.
macro_rules! channel {
    () => {
        "'clopen_mcp_' || md5(current_schema())"
    };
}

/// The most bytes that PostgreSQL takes.
const LONGEST: usize = 7_999;

/// Hears what is told.
#[derive(Debug)]
pub struct Others(PgListener);

impl Others {
    /// Returns what is told next; `None` where something may have been missed.
    pub async fn next(&mut self) -> Result<Option<String>, DatabaseError> {
        let told = self.0.try_recv().await?;
        Ok(told.map(|it| it.payload().to_owned()))
    }
}

impl Store {
    /// Says whether other bridges can be told something. On SQLite they look for themselves.
    pub fn has_others(&self) -> bool {
        self.kind == Kind::Postgres
    }

    /// Tells all bridges on this database, and this one too. What is too long is told to nobody.
    pub async fn tell(&self, news: &str) -> Result<(), DatabaseError> {
        if self.has_others() && news.len() <= LONGEST && super::can_be_text(news) {
            sqlx::query(concat!("SELECT pg_notify(", channel!(), ", $1)::text"))
                .bind(news.to_owned())
                .execute(&self.pool)
                .await?;
        }
        Ok(())
    }

    /// Begins to hear what bridges on this database tell; `None` where they can't.
    pub async fn hear(&self) -> Result<Option<Others>, DatabaseError> {
        let Some(url) = &self.url else {
            return Ok(None);
        };
        let channel: String = sqlx::query_scalar(concat!("SELECT ", channel!()))
            .fetch_one(&self.pool)
            .await?;
        let mut listener = PgListener::connect(url.expose()).await?;
        listener.listen(&channel).await?;
        Ok(Some(Others(listener)))
    }
}
