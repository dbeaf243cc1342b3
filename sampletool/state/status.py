"""What shared state adds to `status`."""

from ..kit.context import Context
from .connect import file_of_store
from .store_url import shown_url


def places(context: Context) -> dict[str, str]:
    """Return what `status` shows as the place of the store: a path or a URL, by the name "store".

    This does not connect to the store.
    """
    url = context.settings.value("store")
    if url is None:
        # No store was chosen, so it is a file of the workspace, or else of the user.
        path = file_of_store(url=None, workspace=context.workspace_or_none)
        return {"store": str(path)}
    return {"store": shown_url(url)}
