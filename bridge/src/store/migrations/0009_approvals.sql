CREATE TABLE approvals (
    server TEXT NOT NULL PRIMARY KEY,
    added_at BIGINT NOT NULL,
    tools TEXT NOT NULL,
    approved_at BIGINT NOT NULL
);
