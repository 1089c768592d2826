"""Chromium without a window, steered through a pipe: what a page shows, at any width, dark or light."""

import base64
import json
import os
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)

OPTIONS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
]


class Browser:
    """One tab."""

    def __init__(self, folder):
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        def pipes():
            # The browser reads from 3 and writes to 4.
            os.dup2(os.dup2(theirs_in, 30), 3)
            os.dup2(os.dup2(theirs_out, 31), 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *OPTIONS, f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._left, self._number, self._session, self.complaints = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log"):
            self.call(f"{part}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method, **parameters):
        """What the browser answers; what it says in between is noted if it complains."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        asked |= {} if self._session is None else {"sessionId": self._session}
        os.write(self._out, json.dumps(asked).encode() + b"\0")
        while True:
            while b"\0" not in self._left:
                more = os.read(self._in, 1 << 16)
                assert more, "Chromium has ended"
                self._left += more
            message, _, self._left = self._left.partition(b"\0")
            told = json.loads(message)
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]
            if told.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.complaints.append(told["params"])

    def show(self, url, width, *, dark=False, height=1000):
        """Open a page in a window of this width."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)
        while not self.ask("document.readyState == 'complete' && location.href != 'about:blank'"):
            pass

    def ask(self, expression):
        """The value of an expression, awaited, in the page."""
        told = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def wait_for(self, condition):
        """Until an expression is true in the page, which looks whenever it has drawn, for half a minute."""
        ended = f"({condition}) ? done(true) : left-- ? requestAnimationFrame(look) : fail('never')"
        look = f"let left = 1800; const look = () => {ended}; look();"
        return self.ask(f"new Promise((done, fail) => {{ {look} }})")

    def picture(self, path):
        """What all of the page looks like."""
        told = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(told["data"]))
