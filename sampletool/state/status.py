"""What shared state adds to `status`."""

from ..kit.context import Context
from .connect import file_of_store
from .store_url import shown_url


def places(context: Context) -> dict[str, str]:
    """Return where the store is. This does not connect to it."""
    url = context.settings.value("store")
    if url is None:
        return {"store": str(file_of_store(None, context.workspace_or_none))}
    return {"store": shown_url(url)}
