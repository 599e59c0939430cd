CREATE TABLE servers (
    name TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    description TEXT NOT NULL,
    version TEXT NOT NULL,
    tools TEXT NOT NULL,
    present BIGINT NOT NULL,
    mirrored_at BIGINT NOT NULL
);
-- The tool '' is the server itself.
CREATE TABLE switches (
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    PRIMARY KEY (server, tool)
);
