CREATE TABLE sightings (
    engine TEXT NOT NULL,
    project TEXT NOT NULL,
    client TEXT NOT NULL,
    client_version TEXT NOT NULL,
    protocol TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (engine, project)
);
CREATE INDEX sightings_seen_at ON sightings (seen_at);
