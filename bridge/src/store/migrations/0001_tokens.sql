-- Times are milliseconds since 1970 in UTC, flags are 0 or 1, lists are JSON: the same on every database.
CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL UNIQUE,
    servers TEXT,
    read_only BIGINT NOT NULL,
    project TEXT,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at BIGINT
);
