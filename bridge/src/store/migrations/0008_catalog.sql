CREATE TABLE catalog_servers (
    registry TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    status TEXT NOT NULL,
    status_message TEXT NOT NULL,
    kinds TEXT NOT NULL,
    needs_key BIGINT NOT NULL,
    updated_at TEXT NOT NULL,
    record TEXT NOT NULL,
    seen_by BIGINT NOT NULL,
    PRIMARY KEY (registry, name)
);
CREATE TABLE catalog_syncs (
    registry TEXT NOT NULL PRIMARY KEY,
    url TEXT NOT NULL,
    number BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    since TEXT,
    next_page TEXT,
    newest TEXT,
    synced_to TEXT,
    synced_at BIGINT
);
