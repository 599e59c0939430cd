-- The revision goes up with every change of the status or of what was asked and answered, so that a change is made
-- only to what it was made for.
CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    caller TEXT NOT NULL,
    idempotent BIGINT NOT NULL,
    status TEXT NOT NULL,
    status_message TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    ttl_ms BIGINT,
    poll_interval_ms BIGINT,
    input_requests TEXT NOT NULL,
    input_responses TEXT NOT NULL,
    input_taken TEXT NOT NULL,
    cancel_requested BIGINT NOT NULL,
    result TEXT,
    error TEXT,
    owner TEXT,
    lease_until BIGINT,
    revision BIGINT NOT NULL
);
CREATE INDEX tasks_owner ON tasks (owner);
CREATE INDEX tasks_lease_until ON tasks (lease_until);
