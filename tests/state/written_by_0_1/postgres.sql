CREATE TABLE tool_counters (
    name text NOT NULL COLLATE pg_catalog."C",
    value bigint NOT NULL
);
CREATE TABLE tool_floor (
    version bigint NOT NULL
);
CREATE TABLE tool_once (
    key text NOT NULL,
    digest text NOT NULL,
    answer text NOT NULL,
    expires_at bigint
);
CREATE TABLE tool_state (
    key text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL,
    version bigint NOT NULL,
    expires_at bigint
);
CREATE TABLE tool_store (
    version integer NOT NULL
);
CREATE TABLE tool_tasks (
    "position" bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    due_at bigint,
    status text DEFAULT 'free'::text NOT NULL,
    generation bigint DEFAULT 0 NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    max_attempts bigint DEFAULT 0 NOT NULL,
    claimed_by text,
    claimed_at bigint
);
ALTER TABLE tool_tasks ALTER COLUMN "position" ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tool_tasks_position_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
INSERT INTO tool_counters VALUES ('hits', 5);
INSERT INTO tool_counters VALUES ('größe', -7);
INSERT INTO tool_counters VALUES ('sent', 1);
INSERT INTO tool_floor VALUES (4);
INSERT INTO tool_once VALUES ('key:added', '8ae26f21737a27afedf4838bbfac9a902bf5cfd07e2f334bf86853a8481ca3a8', '[2, "created"]', 4948644459474);
INSERT INTO tool_once VALUES ('task:["done", "counter_add", "sent", null]', 'bd8ab60e7224b0c65ab7f218aec1a50c36b614441bf9b77b78e751e5ee313098', '[1, "created"]', NULL);
INSERT INTO tool_once VALUES ('task:["claimed", "state_set", "drafted", null]', '0cfdd6d6f31502efbdc1ac21d5fbdfd3db6e916d0e4358b94b440615d0f0f33b', '[5, "created"]', NULL);
INSERT INTO tool_once VALUES ('key:put', '18593323f3c2492153f7866e066887a590f3f88cfa9400721b921fc1641dcd03', '[["free", "created"]]', 4948644459641);
INSERT INTO tool_state VALUES ('plan', '{"step":[2,"\u8a9e\ud83d\ude42"]}', 2, NULL);
INSERT INTO tool_state VALUES ('leader', '"ann"', 1, 4948644459505);
INSERT INTO tool_state VALUES ('drafted', '"text"', 5, NULL);
INSERT INTO tool_store VALUES (1);
INSERT INTO tool_tasks OVERRIDING SYSTEM VALUE VALUES (1, 'done', 'work', '{"n":0}', NULL, 'done', 1, 1, 0, 'ann', 1795044459542);
INSERT INTO tool_tasks OVERRIDING SYSTEM VALUE VALUES (2, 'failed', 'work', '{"n":1}', NULL, 'failed', 1, 1, 1, NULL, NULL);
INSERT INTO tool_tasks OVERRIDING SYSTEM VALUE VALUES (3, 'used up', 'work', '{"n":2}', 1795044459575, 'claimed', 1, 1, 1, 'ann', 1795044459575);
INSERT INTO tool_tasks OVERRIDING SYSTEM VALUE VALUES (5, 'claimed', 'work', '{"n":4}', 4948644459591, 'claimed', 1, 1, 0, 'ann', 1795044459591);
INSERT INTO tool_tasks OVERRIDING SYSTEM VALUE VALUES (6, 'delayed', 'work', '{"n":5}', 4948644459616, 'free', 1, 1, 0, NULL, NULL);
INSERT INTO tool_tasks OVERRIDING SYSTEM VALUE VALUES (7, 'again', 'work', '{"n":6}', 1795044459628, 'free', 1, 1, 0, NULL, NULL);
INSERT INTO tool_tasks OVERRIDING SYSTEM VALUE VALUES (4, 'expired', 'work', '{"n":3}', 1795044459640, 'claimed', 1, 1, 0, 'ann', 1795044459588);
INSERT INTO tool_tasks OVERRIDING SYSTEM VALUE VALUES (8, 'free', 'work', '"new"', 1795044459641, 'free', 0, 0, 0, NULL, NULL);
INSERT INTO tool_tasks OVERRIDING SYSTEM VALUE VALUES (9, 'letter', 'mail', '"x"', 1795044459648, 'free', 0, 0, 0, NULL, NULL);
SELECT pg_catalog.setval('tool_tasks_position_seq', 9, true);
ALTER TABLE ONLY tool_counters
    ADD CONSTRAINT tool_counters_pkey PRIMARY KEY (name);
ALTER TABLE ONLY tool_once
    ADD CONSTRAINT tool_once_pkey PRIMARY KEY (key);
ALTER TABLE ONLY tool_state
    ADD CONSTRAINT tool_state_pkey PRIMARY KEY (key);
ALTER TABLE ONLY tool_tasks
    ADD CONSTRAINT tool_tasks_id_key UNIQUE (id);
ALTER TABLE ONLY tool_tasks
    ADD CONSTRAINT tool_tasks_pkey PRIMARY KEY ("position");
CREATE INDEX tool_once_expiring ON tool_once USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX tool_state_expiring ON tool_state USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX tool_tasks_open ON tool_tasks USING btree (queue, "position") WHERE (due_at IS NOT NULL);
