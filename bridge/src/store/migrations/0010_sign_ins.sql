-- A client that was registered with an authorization server, for the address that it comes back to.
CREATE TABLE oauth_clients (
    issuer TEXT NOT NULL,
    redirect TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, redirect)
);
-- A sign-in under way, by the hash of its `state`, which is used once. What came of it is empty, `ok`, or why not.
CREATE TABLE oauth_flows (
    state_hash TEXT NOT NULL PRIMARY KEY,
    sealed TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    taken_at BIGINT,
    outcome TEXT NOT NULL
);
-- The version goes up with every change of what is sealed. Who has the lease may change it.
CREATE TABLE oauth_credentials (
    server TEXT NOT NULL,
    subject TEXT NOT NULL,
    account TEXT NOT NULL,
    sealed TEXT NOT NULL,
    expires_at BIGINT,
    is_default BIGINT NOT NULL,
    version BIGINT NOT NULL,
    wanted TEXT NOT NULL,
    failures BIGINT NOT NULL,
    retry_at BIGINT,
    leased_by TEXT,
    leased_until BIGINT,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (server, subject, account)
);
