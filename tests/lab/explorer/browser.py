"""A headless Chromium, driven over a pipe by its DevTools protocol: no driver and no package is needed for that."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_SECONDS = 90
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--no-default-browser-check",
    "--remote-debugging-pipe",
)


class NoBrowser(Exception):
    """It is not installed."""


class Browser:
    """One page, and what it complained of and asked for."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._heard = bytearray()
        self._asked = 0
        self._session = ""
        self.home = ""
        """The address of the page that it is for."""
        self.requests: list[str] = []
        """The addresses that were asked for, but for data."""
        self.complaints: list[str] = []
        """What the console and the page's exceptions say."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._asked += 1
        request: dict[str, Any] = {"id": self._asked, "method": method, "params": params}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._write, json.dumps(request).encode() + b"\0")
        while (answer := self._hear()).get("id") != self._asked:
            pass
        assert "error" not in answer, f"{method}: {answer['error']}"
        return dict(answer["result"])

    def open(self, address: str) -> None:
        """And wait until it is loaded. To another place in the same page it would go some time later."""
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=address)
        while self.run("document.readyState") != "complete":
            pass

    def run(self, script: str) -> Any:
        """The value of an expression; a promise is waited for."""
        ran = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in ran, ran["exceptionDetails"]
        return ran["result"].get("value")

    def press(self, key: str) -> None:
        """As on a keyboard."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowRight": 39, "ArrowDown": 40}.get(key, 0)
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        known = {"key": key, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **known)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **known)

    def show_as(
        self, *, width: int = 1440, height: int = 900, theme: str = "light", motion: str = "no-preference"
    ) -> None:
        features = [("prefers-color-scheme", theme), ("prefers-reduced-motion", motion)]
        self.ask("Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in features])
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def _hear(self) -> dict[str, Any]:
        while (end := self._heard.find(b"\0")) < 0:
            more = os.read(self._read, 1 << 20) if select([self._read], [], [], _SECONDS)[0] else b""
            assert more, "the browser has ended, or hangs"
            self._heard += more
        message: dict[str, Any] = json.loads(self._heard[:end])
        del self._heard[: end + 1]
        params = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests += [params["request"]["url"]] * (not params["request"]["url"].startswith("data:"))
        elif message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(params))
        return message


@contextmanager
def browsing(directory: Path) -> Iterator[Browser]:
    """A browser whose profile lies in this directory; it ends with the block."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        raise NoBrowser("none of " + ", ".join(_NAMES))
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # It reads from descriptor 3 and writes to descriptor 4; sh knows only descriptors of one digit.
    script = f'exec 3<&{theirs_in} 4>&{theirs_out} "$0" "$@"'
    command = ["/bin/bash", "-c", script, program, *_FLAGS, f"--user-data-dir={directory}"]
    environ = {**os.environ, "HOME": str(directory), "TMPDIR": str(directory)}
    process = subprocess.Popen(
        command, env=environ, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        os.close(ours_out)
        os.close(ours_in)
        process.terminate()
        process.wait(_SECONDS)
