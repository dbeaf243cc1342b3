PRAGMA user_version = 1;
PRAGMA application_id = 1953460076;
BEGIN TRANSACTION;
CREATE TABLE tool_counters (name text PRIMARY KEY, value bigint NOT NULL);
INSERT INTO "tool_counters" VALUES('hits',5);
INSERT INTO "tool_counters" VALUES('größe',-7);
INSERT INTO "tool_counters" VALUES('sent',1);
CREATE TABLE tool_floor (version bigint NOT NULL);
INSERT INTO "tool_floor" VALUES(4);
CREATE TABLE tool_once (key text PRIMARY KEY, digest text NOT NULL, answer text NOT NULL, expires_at bigint);
INSERT INTO "tool_once" VALUES('key:added','8ae26f21737a27afedf4838bbfac9a902bf5cfd07e2f334bf86853a8481ca3a8','[2, "created"]',4948644457079);
INSERT INTO "tool_once" VALUES('task:["done", "counter_add", "sent", null]','bd8ab60e7224b0c65ab7f218aec1a50c36b614441bf9b77b78e751e5ee313098','[1, "created"]',NULL);
INSERT INTO "tool_once" VALUES('task:["claimed", "state_set", "drafted", null]','0cfdd6d6f31502efbdc1ac21d5fbdfd3db6e916d0e4358b94b440615d0f0f33b','[5, "created"]',NULL);
INSERT INTO "tool_once" VALUES('key:put','18593323f3c2492153f7866e066887a590f3f88cfa9400721b921fc1641dcd03','[["free", "created"]]',4948644457654);
CREATE TABLE tool_state (
            key text PRIMARY KEY, value text NOT NULL, version bigint NOT NULL, expires_at bigint);
INSERT INTO "tool_state" VALUES('plan','{"step":[2,"\u8a9e\ud83d\ude42"]}',2,NULL);
INSERT INTO "tool_state" VALUES('leader','"ann"',1,4948644457195);
INSERT INTO "tool_state" VALUES('drafted','"text"',5,NULL);
CREATE TABLE tool_tasks (
            position integer PRIMARY KEY AUTOINCREMENT, id text NOT NULL UNIQUE, queue text NOT NULL, body text NOT NULL,
            due_at bigint, status text NOT NULL DEFAULT 'free', generation bigint NOT NULL DEFAULT 0,
            attempts bigint NOT NULL DEFAULT 0, max_attempts bigint NOT NULL DEFAULT 0, claimed_by text,
            claimed_at bigint);
INSERT INTO "tool_tasks" VALUES(1,'done','work','{"n":0}',NULL,'done',1,1,0,'ann',1795044457332);
INSERT INTO "tool_tasks" VALUES(2,'failed','work','{"n":1}',NULL,'failed',1,1,1,NULL,NULL);
INSERT INTO "tool_tasks" VALUES(3,'used up','work','{"n":2}',1795044457471,'claimed',1,1,1,'ann',1795044457471);
INSERT INTO "tool_tasks" VALUES(4,'expired','work','{"n":3}',1795044457651,'claimed',1,1,0,'ann',1795044457507);
INSERT INTO "tool_tasks" VALUES(5,'claimed','work','{"n":4}',4948644457548,'claimed',1,1,0,'ann',1795044457548);
INSERT INTO "tool_tasks" VALUES(6,'delayed','work','{"n":5}',4948644457608,'free',1,1,0,NULL,NULL);
INSERT INTO "tool_tasks" VALUES(7,'again','work','{"n":6}',1795044457639,'free',1,1,0,NULL,NULL);
INSERT INTO "tool_tasks" VALUES(8,'free','work','"new"',1795044457654,'free',0,0,0,NULL,NULL);
INSERT INTO "tool_tasks" VALUES(9,'letter','mail','"x"',1795044457667,'free',0,0,0,NULL,NULL);
CREATE INDEX tool_state_expiring ON tool_state (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX tool_tasks_open ON tool_tasks (queue, position) WHERE due_at IS NOT NULL;
CREATE INDEX tool_once_expiring ON tool_once (expires_at) WHERE expires_at IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('tool_tasks',9);
COMMIT;
