"""A process that has kons imported and forks one child per command line: real processes, to be killed.

Reads lines of JSON on standard input, answers with lines of JSON on standard output::

    {"arguments": [...], "every_block": true,   checkpoints after every block
     "kill_at_call": n,                         SIGKILL at the n-th call of any function, from inside,
                                                counted from when the first block was learned
     "kill_in_write": [part, m, n],             SIGKILL n calls into the m-th write of a file so named
     "kill_at_bytes": [path, n],                SIGKILL once the file is that long, from outside
     "signal_at_first_block": number,           another signal, when the first block was learned
     "ignored": [number],                       signals ignored from the start; all others are heard
     "longest_file": n}                         no file may grow beyond (RLIMIT_FSIZE)
    ->  {"code": exit code or -signal, "out": ..., "err": ..., "calls": functions called}
"""

import gc
import json
import math
import os
import resource
import signal
import sys
import tempfile
import time


def serve():
    # No report: its libraries take longer than all the rest.
    sys.modules["jinja2"] = None
    import pyarrow.csv  # noqa: F401

    import kons.cli.app
    import kons.cli.run
    import kons.report.page
    import kons.runs.circumstances
    from kons.compilation import compile_all

    compile_all()
    kons.runs.circumstances.versions()
    kons.cli.app.app.parse_args(["run", "x", "--target", "y"], print_error=False, exit_on_error=False)
    gc.freeze()  # what is shared stays shared
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def answer(asked):
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("out", "err", "calls")]
        pid = os.fork()
        if pid == 0:
            child(asked, *files)
        status = watch(asked, pid)
        texts = []
        for file in files:  # a child may be killed before it makes them
            texts.append("")
            if os.path.exists(file):
                with open(file, encoding="utf-8") as stream:
                    texts[-1] = stream.read()
    return {
        "code": os.waitstatus_to_exitcode(status),
        "out": texts[0],
        "err": texts[1],
        "calls": int(texts[2] or 0),
    }


def watch(asked, pid):
    """Look at a file until it is long enough, then kill the child; returns its status."""
    if "kill_at_bytes" not in asked:
        return os.waitpid(pid, 0)[1]
    path, length = asked["kill_at_bytes"]
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if os.path.exists(path) and os.path.getsize(path) >= length:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1]
        time.sleep(0.0005)


def at_first_block(action):
    """Do something when the first block has been learned, and is to be written."""
    from kons.evaluation import Prequential

    honest = Prequential.advance

    def advance(engine, block):
        Prequential.advance = honest
        scored = honest(engine, block)
        action()
        return scored

    Prequential.advance = advance


def hear_all_but(ignored):
    """Signals as in a shell, whatever this process was started with: runners and nohup ignore some."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        heard = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in ignored else heard)


def child(asked, out, err, calls):
    from kons.cli import main
    from kons.runs import pacing

    code = 70
    try:
        for number, file in ((1, out), (2, err)):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        counts = os.open(calls, os.O_WRONLY | os.O_CREAT)
        hear_all_but(asked.get("ignored", ()))
        os.fsync = lambda _: None  # what a process has written outlives it; the power stays on
        if asked.get("every_block"):
            pacing.EVERY, pacing.SHARE = 0.0, math.inf
        if "longest_file" in asked:
            resource.setrlimit(resource.RLIMIT_FSIZE, (asked["longest_file"],) * 2)
        count, kill_at = 0, asked.get("kill_at_call")

        def step(_frame, event, _argument):
            nonlocal count
            if event in ("call", "c_call"):
                count += 1
                if count == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)

        if "kill_in_write" in asked:
            part, nth, kill_at = asked["kill_in_write"]
            honest = os.open

            def begin(path, flags, *arguments, **options):
                nonlocal nth, count
                nth -= bool(flags & os.O_CREAT) and part in os.path.basename(path)
                if nth == 0:
                    nth, count = -1, 0
                    sys.setprofile(step)
                return honest(path, flags, *arguments, **options)

            os.open = begin
        elif asked.get("counted") or kill_at:
            at_first_block(lambda: sys.setprofile(step))
        elif "signal_at_first_block" in asked:
            at_first_block(lambda: os.kill(os.getpid(), asked["signal_at_first_block"]))
        code = main(asked["arguments"])
        sys.setprofile(None)
        os.write(counts, str(count).encode())
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
