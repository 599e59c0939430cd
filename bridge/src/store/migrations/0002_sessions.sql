CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL,
    version TEXT NOT NULL,
    client_info TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    level TEXT,
    subscriptions TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL
);
CREATE INDEX sessions_last_seen_at ON sessions (last_seen_at);
