CREATE TABLE external_servers (
    name TEXT NOT NULL PRIMARY KEY,
    source TEXT NOT NULL,
    sealed TEXT NOT NULL,
    listed TEXT,
    listed_at BIGINT,
    added_at BIGINT NOT NULL
);
