"""A service in a process of its own, on a loopback port that is free."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx


class Running:
    """``kons serve``, started; it is killed if a test leaves it behind."""

    def __init__(self, folder, *arguments, ready=True, **options):
        self.log = open(f"{folder}.err", "ab")  # noqa: SIM115 - closed at the end
        command = [
            sys.executable,
            "-m",
            "kons.cli",
            "serve",
            "--dir",
            str(folder),
            "--port",
            "0",
            *map(str, arguments),
        ]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KONS_")}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment, **options
        )
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found, Path(f"{folder}.err").read_text()
        self.url = found[0]
        self.client = httpx.Client(base_url=self.url, timeout=60)
        if ready:
            assert "ready" in self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self):
        """Its exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self):
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        self.client.close()
        self.log.close()
        return code

    def post(self, kind, body):
        return self.client.post(f"/v1/{kind}", json=body)
