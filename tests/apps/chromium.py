# SPDX-License-Identifier: MIT
"""A headless Chromium, driven by the DevTools protocol through a pipe: pages that the program serves, used as a person would."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time


class Browser:
    """One page in a browser of its own. What its console says is in `complaints`."""

    def __init__(self):
        path = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
        if path is None:
            print("skipped: there is no Chromium")
            sys.exit(77)
        self.complaints = []
        self._number = 0
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True) if sys.version_info >= (3, 10) else tempfile.TemporaryDirectory()
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        self._process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "sh", path, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--no-first-run", "--hide-scrollbars", "--window-size=1000,900", f"--user-data-dir={self._profile.name}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        self._session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def _message(self):
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        text, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(text)
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.complaints.append(json.dumps(message["params"]))
        return message

    def ask(self, method, **parameters):
        """The result of a method of the protocol."""
        self._number += 1
        question = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            question["sessionId"] = self._session
        os.write(self._out, json.dumps(question).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]

    def open(self, address):
        """The page at this address, loaded."""
        found = self.ask("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")
        return found

    def value(self, expression):
        """What the page's script makes of it; a promise is waited for."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, f"{expression}: {found['exceptionDetails']}"
        return found["result"].get("value")

    def wait(self, expression, seconds=60):
        """Until the page says so."""
        end = time.monotonic() + seconds
        while True:
            found = self.value(expression)
            if found:
                return found
            assert time.monotonic() < end, f"not in {seconds} s: {expression}; the page: {self.value('document.body.innerText')}"
            time.sleep(0.02)

    def place(self, selector):
        """The middle of an element."""
        box = self.value(f"(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector('{selector}').getBoundingClientRect())")
        return box[0], box[1]

    def mouse(self, kind, x, y):
        """kind: Pressed, Moved, Released."""
        self.ask("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, button="left", buttons=0 if kind == "Released" else 1, clickCount=1)

    def click(self, selector):
        x, y = self.place(selector)
        self.mouse("Pressed", x, y)
        self.mouse("Released", x, y)

    def drop(self, selector, path):
        """A file from the desktop."""
        x, y = self.place(selector)
        data = {"items": [], "files": [os.path.abspath(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.ask("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def choose(self, selector, path):
        """A file in an <input>."""
        document = self.ask("DOM.getDocument")["root"]["nodeId"]
        node = self.ask("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
        self.ask("DOM.setFileInputFiles", files=[os.path.abspath(path)], nodeId=node)

    def screenshot(self, path):
        picture = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))


class Program:
    """The program while it runs, and the address that it prints."""

    def __init__(self, *words):
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address, said = None, ""
        for line in self._process.stdout:
            said += line
            match = re.search(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", line)
            if match:
                self.address = match[0]
                return
        wrong = self._process.communicate()[1]
        if "libmicrohttpd" in wrong:
            print("skipped: this build serves no pages")
            sys.exit(77)
        raise AssertionError(f"{words} printed no address: {said}{wrong}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)

    def end(self):
        """Its exit code."""
        self._process.communicate(timeout=60)
        return self._process.returncode
