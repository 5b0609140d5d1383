"""Debian's Chromium, driven by Selenium, and the page of `oort web` in it."""

import base64
import http.client
import os
import re
import signal
import subprocess
import urllib.parse

from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.common.by import By

from machine import OORT, eventually


class Page:
    """`oort web` of a machine, while it runs."""

    def __init__(self, machine, *arguments, environment=None):
        self.machine = machine
        self.process = subprocess.Popen(
            [str(OORT), "web", *arguments], env={**machine.environment, **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if "Ctrl-C" in line:
                break
        found = re.search(r"http://127\.0\.0\.1:(\d+)/enter\?token=([0-9a-f]{64})", self.said)
        assert found, self.said
        self.address, self.port, self.token = found[0], int(found[1]), found[2]
        self.origin = f"http://127.0.0.1:{self.port}"

    def stop(self):
        """Ctrl-C; how it ended."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=120)
        if not self.process.stdout.closed:
            self.said += self.process.stdout.read()
            self.process.stdout.close()
        return code


def chromium(folder, width=1280, height=900, dark=False):
    """A browser with a profile of its own and nothing of the network but loopback."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in (
            "--headless=new", f"--window-size={width},{height}", f"--user-data-dir={folder}",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
            "--autoplay-policy=no-user-gesture-required", "--no-proxy-server"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        # Chromium's own sandbox refuses root, which the tests in a container are.
        options.add_argument("--no-sandbox")
    if dark:
        options.add_argument("--force-dark-mode")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
    driver.set_page_load_timeout(240)
    return driver


def enter(driver, address):
    """Brings the token; shows the first page."""
    driver.get(address)
    eventually(lambda: driver.title.startswith("Overview"), "the first page is there")


def press(driver, words):
    """Presses the button of these words, or of this spoken name; the page that follows is there."""
    old = driver.find_element(By.TAG_NAME, "html")
    for button in driver.find_elements(By.TAG_NAME, "button"):
        if words in (button.text, button.get_attribute("aria-label")):
            button.click()
            break
    else:
        raise AssertionError(f"no button {words!r}")

    def is_new():
        return driver.find_element(By.TAG_NAME, "html") != old and driver.execute_script(
            "return document.readyState") == "complete"

    eventually(is_new, "the next page is there")


def film(driver):
    """A second of a film (WebM, 64 by 48), drawn and recorded by the browser itself."""
    driver.set_script_timeout(240)
    return base64.b64decode(driver.execute_async_script("""
        const done = arguments[0];
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [64, 48];
        const brush = canvas.getContext("2d");
        const recorder = new MediaRecorder(canvas.captureStream(20), {mimeType: "video/webm"});
        const parts = [];
        let drawn = 0;
        recorder.ondataavailable = event => parts.push(event.data);
        recorder.onstop = () => {
            const reader = new FileReader();
            reader.onload = () => done(reader.result.split(",")[1]);
            reader.readAsDataURL(new Blob(parts));
        };
        recorder.start();
        const timer = setInterval(() => {
            brush.fillStyle = `rgb(${drawn * 8}, 90, 160)`;
            brush.fillRect(0, 0, 64, 48);
            drawn += 1;
            if (drawn === 20) {
                clearInterval(timer);
                recorder.stop();
            }
        }, 50);
        """))


def text(driver):
    return driver.find_element(By.TAG_NAME, "main").text


def complaints(driver):
    """What Chromium logged of scripts, resources and policies that failed."""
    return [entry["message"] for entry in driver.get_log("browser")
            if not entry["message"].startswith("chrome://")]


def check(driver):
    """No fault that axe finds, nothing wider than the window, nothing that Chromium complained of."""
    faults = [(fault["id"], [node["html"] for node in fault["nodes"]])
              for fault in Axe().run(driver)["violations"]]
    assert faults == [], driver.current_url
    widths = driver.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert widths[0] <= widths[1], (driver.current_url, widths)
    assert complaints(driver) == []


class Asker:
    """Somebody who sends requests without a browser."""

    def __init__(self, site):
        self.site = site
        self.cookie = None

    def ask(self, method, path, body=None, **fields):
        headers = {"Host": f"127.0.0.1:{self.site.port}"}
        if self.cookie:
            headers["Cookie"] = self.cookie
        headers.update({name.replace("_", "-"): value for name, value in fields.items()})
        connection = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=240)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        data = urllib.parse.urlencode(body).encode() if body is not None else b""
        for name, value in headers.items():
            if value is not None:
                connection.putheader(name, value)
        if method == "POST":
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        answer.content = answer.read()
        connection.close()
        return answer

    def enter(self):
        answer = self.ask("GET", f"/enter?token={self.site.token}")
        assert answer.status == 200
        self.cookie = answer.headers["Set-Cookie"].split(";")[0]
        return answer

    def form_token(self):
        page = self.ask("GET", "/pins").content.decode()
        return page.split('name="token" value="')[1].split('"')[0]
