"""A headless Chromium that a test controls over a pipe, by the DevTools protocol.

This needs no driver and no package. The protocol is described at
https://chromedevtools.github.io/devtools-protocol.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from typing import Any

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_TIMEOUT_S = 90
_READ_BYTES = 1 << 20
_WIDEST_PHONE = 600
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
_COMPLAINTS = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
_KEY_CODES = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowRight": 39, "ArrowDown": 40}


class NoBrowser(Exception):
    """No browser is installed."""


class ProtocolError(Exception):
    """The browser refused a request, for example because another page was loaded meanwhile."""


class Browser:
    """One page in the browser. It records what the page requests and reports."""

    def __init__(self, write_descriptor: int, read_descriptor: int) -> None:
        self._write_descriptor = write_descriptor
        self._read_descriptor = read_descriptor
        self._received = bytearray()
        self._last_id = 0
        self._session_id = ""
        self._context_of_frame: dict[str, int] = {}
        self.requests: list[str] = []
        """The addresses that the page requested, without those that contain their data."""
        self.complaints: list[str] = []
        """Messages on the console, and exceptions that no script has caught."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session_id = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        self._last_id += 1
        request: dict[str, Any] = {"id": self._last_id, "method": method, "params": params}
        if self._session_id:
            request["sessionId"] = self._session_id
        os.write(self._write_descriptor, json.dumps(request).encode() + b"\0")
        response = self._receive()
        while response.get("id") != self._last_id:
            response = self._receive()
        if "error" in response:
            raise ProtocolError(f"{method}: {response['error']}")
        return dict(response["result"])

    def open(self, address: str) -> None:
        """Open a page, and wait until it is loaded."""
        # Without the empty page, a different place in the same page would not be loaded again.
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=address)
        self.wait_until_loaded()

    def wait_until_loaded(self) -> None:
        """Wait until the page and everything that it needs are loaded."""
        self.wait_for("document.readyState", "complete")

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression. If it is a promise, wait for its value."""
        return self._evaluate(script)

    def wait_for(self, script: str, value: object) -> None:
        """Wait until an expression has this value, perhaps on another page that is being loaded."""
        deadline = time.monotonic() + _TIMEOUT_S
        found: object = None
        while found != value:
            assert time.monotonic() < deadline, f"{script} is {found!r}, not {value!r}"
            with suppress(ProtocolError):
                found = self.run(script)

    def run_in_frame(self, script: str) -> Any:
        """Return the value of an expression in the first frame of the page.

        Raise ProtocolError if there is no frame yet, or if it is being loaded.
        """
        tree = self.ask("Page.getFrameTree")["frameTree"]
        frames = tree.get("childFrames", [])
        if not frames or frames[0]["frame"]["id"] not in self._context_of_frame:
            raise ProtocolError("the page has no frame")
        context_id = self._context_of_frame[frames[0]["frame"]["id"]]
        return self._evaluate(script, contextId=context_id)

    def _evaluate(self, script: str, **params: Any) -> Any:
        params |= {"expression": script, "returnByValue": True, "awaitPromise": True}
        result = self.ask("Runtime.evaluate", **params)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key."""
        text = key if len(key) == 1 else ""
        if key == "Enter":
            text = "\r"
        key_params = {"key": key, "windowsVirtualKeyCode": _KEY_CODES.get(key, 0)}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **key_params)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **key_params)

    def show_as(
        self,
        *,
        width: int = 1440,
        height: int = 900,
        theme: str = "light",
        motion: str = "no-preference",
    ) -> None:
        """Use a screen of this size, and the reader's preferences for the theme and for motion."""
        features = [
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        self.ask("Emulation.setEmulatedMedia", features=features)
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < _WIDEST_PHONE,
        )

    def _receive(self) -> dict[str, Any]:
        """Wait for the next message. Record it if it is an event that a test asks about."""
        message: dict[str, Any] = json.loads(self._receive_bytes())
        params = message.get("params", {})
        method = message.get("method")
        if method == "Network.requestWillBeSent":
            address = params["request"]["url"]
            if not address.startswith("data:"):
                self.requests.append(address)
        elif method == "Runtime.executionContextCreated":
            context = params["context"]
            if context["auxData"]["isDefault"]:
                self._context_of_frame[context["auxData"]["frameId"]] = context["id"]
        elif method in _COMPLAINTS:
            self.complaints.append(json.dumps(params))
        return message

    def _receive_bytes(self) -> bytes:
        """Return the bytes until the next null byte, which ends each message."""
        while b"\0" not in self._received:
            readable, _, _ = select([self._read_descriptor], [], [], _TIMEOUT_S)
            assert readable, f"the browser did not respond within {_TIMEOUT_S} s"
            received = os.read(self._read_descriptor, _READ_BYTES)
            assert received, "the browser has exited"
            self._received += received
        message, _, self._received = self._received.partition(b"\0")
        return bytes(message)


@contextmanager
def browsing(directory: Path) -> Iterator[Browser]:
    """Run a browser with its profile in this directory. Raise NoBrowser if there is none."""
    program = _find_program()
    browser_in, our_out = os.pipe()
    our_in, browser_out = os.pipe()
    # The browser reads from descriptor 3 and writes to descriptor 4. Bash is there because sh only
    # knows descriptors with one digit.
    script = f'exec 3<&{browser_in} 4>&{browser_out} "$0" "$@"'
    process = subprocess.Popen(
        ["/bin/bash", "-c", script, program, *_FLAGS, f"--user-data-dir={directory}"],
        env={**os.environ, "HOME": str(directory), "TMPDIR": str(directory)},
        pass_fds=(browser_in, browser_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(browser_in)
    os.close(browser_out)
    try:
        yield Browser(our_out, our_in)
    finally:
        os.close(our_out)
        os.close(our_in)
        process.terminate()
        process.wait(_TIMEOUT_S)


def _find_program() -> str:
    for name in _PROGRAMS:
        program = shutil.which(name)
        if program is not None:
            return program
    raise NoBrowser(f"none of {', '.join(_PROGRAMS)}")
