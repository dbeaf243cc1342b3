"""What a store that speaks SQL remembers about a write that must not happen twice: in the transaction of its effect."""

from sampletool.state.promises import KEY_LIFE_MS
from sampletool.state.sql_database import Database, Session


def recall(db: Session, database: Database, key: str) -> tuple[str, str] | None:
    """The digest of the arguments, and the answer. The caller is alone with the key."""
    living = f"key = :key AND (expires_at IS NULL OR expires_at > {database.now})"
    for digest, answer in db.rows(f"SELECT digest, answer FROM tool_once WHERE {living}", key=key):
        return digest, answer
    return None


def remember(db: Session, database: Database, key: str, digest: str, answer: str, *, is_for_ever: bool) -> None:
    """And forget, in passing, some of what nobody can ask for any more."""
    put = f"""INSERT INTO tool_once VALUES (:key, :digest, :answer, {database.now} + CAST(:life AS bigint))
              ON CONFLICT (key) DO UPDATE
              SET digest = excluded.digest, answer = excluded.answer, expires_at = excluded.expires_at"""
    db.run(put, key=key, digest=digest, answer=answer, life=None if is_for_ever else KEY_LIFE_MS)
    expired = f"SELECT key FROM tool_once WHERE expires_at <= {database.now} LIMIT 20 {database.unclaimed}"
    db.each("DELETE FROM tool_once WHERE key = :key", [{"key": old} for (old,) in db.rows(expired)])
