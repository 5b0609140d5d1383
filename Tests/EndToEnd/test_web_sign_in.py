"""Accounts on the page of `oort web`: added, signed in to again, and signed out, in a real browser."""

import json
import os
import re
import subprocess
import sys

import pytest
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from browser import Asker, check, complaints, enter, press, text
from cloud_servers import CloudServer
from machine import alive, eventually, read
from servers import KEYS, Server
from test_registration import IDS
from test_sftp_passwords import PASSWORD as SFTP_PASSWORD, PasswordServer

PASSWORD = "Wrong-Horse.Battery=7531"


@pytest.fixture
def servers(folder):
    started = []

    def start(kind):
        started.append(Server(kind, folder))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def nextcloud(folder):
    server = CloudServer("nextcloud", folder)
    yield server
    server.stop()


class Person:
    """Somebody in front of a browser that shows the page."""

    def __init__(self, site, driver):
        self.site = site
        self.driver = driver
        # All that the page ever showed, with what is in its fields.
        self.seen = ""
        enter(driver, site.address)
        complaints(driver)

    def look(self):
        """What the page says; it is right for everybody."""
        check(self.driver)
        self.seen += self.driver.page_source
        return text(self.driver)

    def show(self, address):
        self.driver.get(self.site.origin + address)
        return self.look()

    def choose(self, title):
        """The form of a kind of service."""
        self.show("/accounts")
        self.go(title)
        eventually(lambda: self.driver.title.startswith("Add an account"), "the form is there")
        return self.look()

    def go(self, words):
        """Follows the link of these words; the page may be replaced by a newer one just then."""
        def is_followed():
            try:
                self.driver.find_element(By.LINK_TEXT, words).click()
                return True
            except StaleElementReferenceException:
                return False

        eventually(is_followed, f"the link is followed: {words}")

    def open_more(self):
        details = self.driver.find_element(By.CSS_SELECTOR, "form.fill details")
        if not details.get_attribute("open"):
            details.find_element(By.TAG_NAME, "summary").click()
            check(self.driver)

    def fill(self, **values):
        for name, value in values.items():
            field = self.driver.find_element(By.NAME, name)
            if not field.is_displayed():
                self.open_more()
            if field.get_attribute("type") == "checkbox":
                field.click()
            elif field.tag_name == "select":
                Select(field).select_by_value(value)
            else:
                field.clear()
                field.send_keys(value)

    def value(self, name):
        return self.driver.find_element(By.NAME, name).get_attribute("value")

    def send(self, words="Sign in"):
        press(self.driver, words)

    def until(self, title):
        return self.await_page(lambda: self.driver.title.startswith(title), f"it comes to: {title}")

    def until_said(self, words):
        return self.await_page(lambda: words in text(self.driver), f"it says: {words}")

    def await_page(self, condition, words):
        def is_there():
            try:
                return condition()
            except (NoSuchElementException, StaleElementReferenceException):
                return False  # the page goes on just now

        try:
            eventually(is_there, words)
        except AssertionError as error:
            raise AssertionError(f"{error}, but it shows: {text(self.driver)}") from None
        return self.look()

    def follow(self, label):
        self.driver.find_element(By.CSS_SELECTOR, f"a[aria-label='{label}']").click()

    def consent(self):
        """Follows the link to the service's page, in a new tab; what that says in the end."""
        page = self.driver.current_window_handle
        link = self.driver.find_element(By.CSS_SELECTOR, "a.main.button")
        assert link.get_attribute("rel") == "noopener noreferrer"
        link.click()
        eventually(lambda: len(self.driver.window_handles) == 2, "a new tab is there")
        other, = set(self.driver.window_handles) - {page}
        self.driver.switch_to.window(other)
        said = eventually(lambda: self.driver.find_element(By.TAG_NAME, "body").text, "it says something")
        if "Grant access" in said:
            press(self.driver, "Grant access")
            said = self.driver.find_element(By.TAG_NAME, "body").text
        self.driver.close()
        self.driver.switch_to.window(page)
        complaints(self.driver)  # of pages that are not Oort's, such as of an icon that they do not have
        return said


@pytest.fixture
def person(page, browser):
    def begin(**more):
        return Person(page(), browser(**more))

    return begin


def accounts(machine):
    return {account["name"]: account for account in json.loads(machine.oort("accounts", "--json"))}


def works(machine, name):
    """The account is in the mount that runs, and takes a file."""
    drive = machine.ready(name)
    (drive / "from here.txt").write_text("from here")
    machine.sync()
    return drive


def told_nowhere(machine, seen, *secrets):
    for secret in secrets:
        assert secret not in seen and secret not in machine.log()


@pytest.mark.parametrize("cloud", ["dropbox", "drive", "onedrive"])
def test_clouds_are_added_and_signed_in_to_again(machine, clouds, cloud, person):
    title = {"dropbox": "Dropbox", "drive": "Google Drive", "onedrive": "OneDrive"}[cloud]
    machine.mount()
    ada = person()
    assert "No account is signed in" in ada.look()
    ada.go("Add one")
    ada.until("Accounts")
    ada.choose(title)
    ada.send(f"Go on to {title}")
    said = ada.until(f"{title} asks you")
    assert "Oort never sees your password" in said
    assert "close this window" in ada.consent()
    said = ada.until("Signed in")
    assert f'Signed in to {title} as' in said and "ada@example.com" in said and "It is mounted now" in said
    works(machine, cloud)
    assert clouds.content(cloud, "/from here.txt") == b"from here"

    # The sign-in ends, and the page leads to a new one.
    clouds.control(cloud, "POST", "tokens/revoke")
    (machine.mount_point / cloud / "kept.txt").write_text("kept")
    eventually(lambda: machine.account(cloud)["state"] == "trouble", "the trouble is told")
    ada.show("/")
    ada.go("Sign in again")
    said = ada.until("Sign in again")
    assert cloud in said
    # It has its name already.
    assert ada.driver.find_element(By.NAME, "name").get_attribute("type") == "hidden"
    ada.send(f"Go on to {title}")
    ada.until(f"{title} asks you")
    ada.consent()
    ada.until("Signed in")
    eventually(lambda: machine.account(cloud)["state"] != "trouble", "it goes on")
    machine.sync()
    assert clouds.content(cloud, "/kept.txt") == b"kept"
    assert list(accounts(machine)) == [cloud]
    told_nowhere(machine, ada.seen, *clouds.secrets(cloud))
    # A pair of eyes for a phone.
    ada.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
    for address in ("/accounts", f"/sign-in?account={cloud}", f"/sign-in?kind={cloud}",
                    f"/sign-out?account={cloud}", "/sign-in?kind=sftp", "/sign-in?kind=s3"):
        ada.show(address)
    assert ada.site.stop() == 0


@pytest.mark.parametrize("cloud", ["drive"])
def test_a_registration_is_led(machine, clouds, cloud, person):
    machine.write_settings(re.sub(r"client_\w+ = .*\n", "", machine.settings()))
    machine.mount()
    ada = person()
    said = ada.choose("Google Drive")
    assert "only lets in programs that are registered there" in said
    assert "Enable the Google Drive API" in said
    links = [link.get_attribute("href") for link in ada.driver.find_elements(
        By.CSS_SELECTOR, ".steps a")]
    assert "https://console.cloud.google.com/projectcreate" in links and len(links) == 4
    clouds.conditions(cloud, client_refusal="invalid_client")

    def paste(client_id):
        ada.fill(client_id=client_id, client_secret="the-secret")
        ada.send("Go on to Google Drive")

    paste("something else")
    said = ada.until_said("That is no Client id")
    assert ada.value("client_id") == "something else" and ada.value("client_secret") == ""
    paste(IDS[cloud])
    ada.until_said("does not know it: invalid_client")
    assert accounts(machine) == {}
    clouds.conditions(cloud)
    paste(IDS[cloud])
    ada.until("Google Drive asks you")
    # Whoever leaves the sign-in there need not paste it once more.
    ada.send("Cancel the sign-in")
    said = ada.until_said("The sign-in was cancelled: nothing was changed.")
    assert "only lets in programs" not in said and accounts(machine) == {}
    ada.send("Go on to Google Drive")
    ada.until("Google Drive asks you")
    ada.consent()
    ada.until("Signed in")
    works(machine, cloud)
    assert "the-secret" not in ada.seen and "the-secret" not in machine.log()


def test_who_says_no_and_who_never_answers(machine, clouds, person):
    """A sign-in that is denied, cancelled or left alone changes nothing; three at once are the most."""
    machine.mount()
    ada = person()

    def begin():
        ada.choose("Dropbox")
        ada.send("Go on to Dropbox")
        ada.until("Dropbox asks you")
        return ada.driver.find_element(By.CSS_SELECTOR, "a.main.button").get_attribute("href")

    # The service brings the person back with a refusal.
    page = begin()
    port, state = (re.search(pattern, page)[1] for pattern in (
        r"redirect_uri=http%3A%2F%2Flocalhost%3A(\d+)", r"state=([^&]+)"))
    ada.driver.switch_to.new_window("tab")
    ada.driver.get(f"http://localhost:{port}/?error=access_denied&state={state}")
    assert "Access was denied" in ada.driver.find_element(By.TAG_NAME, "body").text
    ada.driver.close()
    ada.driver.switch_to.window(ada.driver.window_handles[0])
    complaints(ada.driver)
    said = ada.until_said("access was denied in the browser")
    assert "Try again." in said
    # As many as there may be, and one more.
    for _ in range(3):
        begin()
    ada.choose("Dropbox")
    ada.send("Go on to Dropbox")
    assert ada.driver.title.startswith("Accounts")
    assert "3 sign-ins are under way already" in text(ada.driver)
    said = ada.show("/accounts")
    assert said.count("The sign-in to Dropbox") == 3
    for _ in range(3):
        ada.show("/accounts")
        ada.go("The sign-in to Dropbox")
        ada.until("Dropbox asks you")
        ada.send("Cancel the sign-in")
        ada.until_said("The sign-in was cancelled: nothing was changed.")
    assert "Under way" not in ada.show("/accounts")
    # Its port is free again: nobody listens where the service would send the browser.
    begin()
    assert accounts(machine) == {} and machine.status()["accounts"] == []


@pytest.mark.parametrize("cloud, title, token, identity, revocation", [
    ("dropbox", "Dropbox", "oauth2/token", "users/get_current_account", "auth/token/revoke"),
    ("drive", "Google Drive", "oauth.token", "about.get", None),
])
def test_what_a_cancelled_sign_in_was_given_is_taken_back(
        machine, clouds, person, cloud, title, token, identity, revocation):
    """But at Google, where all other sign-ins of the same registration would end with it."""
    machine.login(cloud, name="first")
    machine.mount()
    machine.ready("first")
    clouds.forget_calls(cloud)
    # The service has given tokens, and does not say yet whose they are.
    clouds.fault(cloud, route=identity, fault="stall", seconds=3600, times=None)
    ada = person()
    ada.choose(title)
    ada.send(f"Go on to {title}")
    said = ada.until(f"{title} asks you")
    assert "You have 15 minutes." in said
    ada.consent()
    eventually(lambda: clouds.counts(cloud).get(token) and clouds.fault_counts(cloud).get("stall"),
               "it is asked whose tokens they are", timeout=40)
    ada.send("Cancel the sign-in")
    ada.until_said("The sign-in was cancelled: nothing was changed.")
    clouds.no_faults(cloud)
    if revocation:
        eventually(lambda: clouds.counts(cloud).get(revocation), "they are taken back")
    else:
        assert not any("revoke" in route for route in clouds.counts(cloud))
    assert list(accounts(machine)) == ["first"]
    # Who is signed in stays so.
    works(machine, "first")


def test_a_nextcloud_by_its_own_page_and_by_a_password(machine, clouds, nextcloud, person):
    machine.mount()
    address = f"{nextcloud.base}/cloud.example.org"
    ada = person()
    ada.choose("Nextcloud")
    ada.fill(address=address)
    ada.send()
    said = ada.until("Nextcloud asks you")
    assert "Oort (" in said and "You have 20 minutes." in said
    ada.consent()
    said = ada.until("Signed in")
    assert "ada@example.com" in said
    works(machine, "nextcloud")
    assert "/from here.txt" in nextcloud.tree()

    # Again, by a password that is wrong at first: one try, and all but the password stays.
    ada.show("/accounts")
    ada.follow("Sign in again: nextcloud")
    ada.until("Sign in again")
    assert ada.value("address").rstrip("/") == address
    ada.fill(user="ada@example.com", password=PASSWORD)
    nextcloud.control("DELETE", "calls")
    ada.send()
    ada.until_said("does not take the password of ada@example.com. It was tried once.")
    refused = [call for call in json.loads(nextcloud.control("GET", "calls")) if call["status"] == 401]
    assert len(refused) <= 2, refused
    assert ada.value("address").rstrip("/") == address and ada.value("user") == "ada@example.com"
    assert ada.value("password") == "" and list(accounts(machine)) == ["nextcloud"]
    # A person's own password is exchanged for one of Oort's, and kept nowhere.
    ada.fill(password="correct horse")
    ada.send()
    ada.until("Signed in")
    assert list(accounts(machine)) == ["nextcloud"]
    works(machine, "nextcloud")
    kept = [path for path in machine.folder.rglob("*")
            if path.is_file() and not path.is_relative_to(machine.mount_point)
            and b"correct horse" in path.read_bytes()]
    assert kept == []
    # What answers there is something else.
    ada.choose("Nextcloud")
    ada.fill(address=ada.site.origin)
    ada.send()
    ada.until_said(ada.site.origin)
    assert list(accounts(machine)) == ["nextcloud"]
    told_nowhere(machine, ada.seen, PASSWORD, "correct horse", nextcloud.password())


def test_servers_of_a_person_s_own(machine, clouds, servers, person):
    dav, store, ftp = servers("webdav"), servers("s3"), servers("ftp")
    machine.write_settings(f'ca_file = "{ftp.folder}/cert.pem"\n' + machine.settings())
    machine.mount()
    ada = person()

    ada.choose("WebDAV")
    ada.fill(address=f"http://127.0.0.1:{dav.port}/", user="ada", password=PASSWORD)
    ada.send()
    ada.until_said("does not take the password of ada. It was tried once.")
    assert ada.value("user") == "ada" and ada.value("password") == ""
    ada.fill(password="secret", name="shelf")
    ada.send()
    ada.until("Signed in")
    works(machine, "shelf")
    assert read(dav.root / "from here.txt") == "from here"

    ada.choose("S3")
    ada.fill(bucket="bucket", endpoint=f"http://127.0.0.1:{store.port}", key_id=KEYS["access_key_id"],
             key=PASSWORD, path_style=True)
    ada.send()
    ada.until_said("refuses the keys")
    assert ada.value("bucket") == "bucket" and ada.value("key") == ""
    assert ada.driver.find_element(By.NAME, "path_style").is_selected()
    ada.fill(key=KEYS["secret_access_key"])
    ada.send()
    ada.until("Signed in")
    works(machine, "s3")
    # The store writes to its disk a little later.
    eventually(lambda: read(store.files / "from here.txt") == "from here", "it is in the bucket")

    ada.choose("FTP")
    ada.fill(address=f"ada@127.0.0.1:{ftp.port}", password=PASSWORD)
    ada.send()
    ada.until_said("Check the user and the password; it was tried once only.")
    commands = (ftp.folder / "commands").read_text().split()
    assert commands.count("PASS") == 1
    ada.fill(password="secret")
    ada.send()
    ada.until("Signed in")
    works(machine, "ftp")

    ada.choose("Weather")
    ada.fill(contact="no address")
    ada.send()
    ada.until_said('"no address" is no address.')
    ada.fill(source="met-norway", contact="ada@example.com")
    ada.send()
    ada.until("Signed in")
    assert set(accounts(machine)) == {"shelf", "s3", "ftp", "weather"}

    # What is known is filled in, and no secret.
    known = {
        "shelf": {"address": f"http://127.0.0.1:{dav.port}/", "user": "ada", "password": ""},
        "s3": {"bucket": "bucket", "endpoint": f"http://127.0.0.1:{store.port}", "key_id": "", "key": ""},
        "ftp": {"address": f"ada@127.0.0.1:{ftp.port}", "password": ""},
        "weather": {"source": "met-norway", "contact": "ada@example.com"}}
    for name, values in known.items():
        ada.show(f"/sign-in?account={name}")
        assert {field: ada.value(field) for field in values} == values
    told_nowhere(machine, ada.seen, PASSWORD, KEYS["secret_access_key"], ">secret<", '"secret"')


def test_ssh_asks_on_the_page_whether_it_is_the_right_server(machine, clouds, servers, person):
    machine.mount()
    server = servers("sftp")
    known = server.folder / "known"
    fingerprint = subprocess.run(["ssh-keygen", "-lf", server.folder / "host.pub"], check=True,
                                 capture_output=True, text=True).stdout.split()[1]
    ada = person(dark=True)
    ada.choose("SFTP")
    options = f"UserKnownHostsFile={known}\nGlobalKnownHostsFile=/dev/null\nIdentityAgent=none"
    ada.fill(address=f"127.0.0.1:{server.port}{server.root}", identity=str(server.folder / "user"),
             options=options)
    ada.send()
    said = ada.until("Is this your server?")
    assert fingerprint in said and f"[127.0.0.1]:{server.port}" in said
    ada.send("It is not")
    ada.until_said("It is not known whether the server is the one that you mean")
    assert not known.exists() and accounts(machine) == {}
    assert ada.value("options").splitlines() == options.splitlines()
    # No option leaves it out.
    ada.fill(options=options + "\nStrictHostKeyChecking=no")
    ada.send()
    ada.until_said("would have anybody's server taken for yours")
    ada.fill(options=options)
    ada.send()
    ada.until("Is this your server?")
    ada.send("Cancel the sign-in")
    ada.until_said("The sign-in was cancelled: nothing was changed.")
    assert not known.exists()
    ada.send()
    ada.until("Is this your server?")
    ada.send("It is my server: go on")
    ada.until("Signed in")
    # The name may be hashed there.
    assert (server.folder / "host.pub").read_text().split()[1] in known.read_text()
    works(machine, "sftp")
    assert read(server.root / "from here.txt") == "from here"
    ada.show("/sign-in?account=sftp")
    assert ada.value("address") == f"127.0.0.1:{server.port}"
    assert ada.value("root") == str(server.root) and ada.value("options").splitlines() == options.splitlines()
    # Another key than the known one is no question.
    other = server.folder / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    known.write_text(f"[127.0.0.1]:{server.port} {other.with_suffix('.pub').read_text()}")
    ada.send()
    ada.until_said("The server is not taken for the one that you mean")


@pytest.mark.skipif(
    os.getuid() != 0, reason="only root gives a server a person with a password of its own")
def test_a_password_at_sftp_is_tried_once(machine, clouds, folder, person):
    machine.mount()
    server = PasswordServer(folder)
    try:
        ada = person()
        ada.choose("SFTP")
        options = "\n".join(server.options()[2::2])
        place = f"ada@127.0.0.1:{server.port}{server.root}"
        ada.fill(address=place, options=options)
        ada.send()
        said = ada.until_said("No key and no agent let you in")
        assert "the field “Password”" in said and "--" not in said
        ada.fill(password=PASSWORD)
        ada.send()
        ada.until_said("Check the user and the password, and sign in again.")
        server.has_logged(failed=1, accepted=0)
        assert ada.value("address") == place and ada.value("password") == ""
        ada.fill(password=SFTP_PASSWORD)
        ada.send()
        ada.until("Signed in")
        works(machine, "sftp")
        assert read(server.root / "from here.txt") == "from here"
        assert server.count("Failed") == 1
        told_nowhere(machine, ada.seen, PASSWORD, SFTP_PASSWORD)
        machine.unmount()
    finally:
        server.stop()


@pytest.mark.skipif(
    os.getuid() != 0, reason="only root gives a server a person with a password of its own")
def test_a_cancelled_sign_in_at_sftp_sends_no_password(machine, folder, person):
    """The way to the server is long enough for a person to think again."""
    machine.mount()
    server = PasswordServer(folder)
    begun, goes_on = folder / "begun", folder / "goes on"
    way = folder / "way"
    way.write_text(f"""#!{sys.executable}
import os, pathlib, socket, threading, time
new = pathlib.Path("{begun}.new")
new.write_text(str(os.getpid()))
new.rename("{begun}")
while not os.path.exists("{goes_on}"):
    time.sleep(0.05)
server = socket.create_connection(("127.0.0.1", {server.port}))

def send():
    while data := os.read(0, 65536):
        server.sendall(data)
    server.shutdown(socket.SHUT_WR)

threading.Thread(target=send, daemon=True).start()
while data := server.recv(65536):
    os.write(1, data)
""")
    way.chmod(0o755)
    try:
        ada = person()
        ada.choose("SFTP")
        options = "\n".join([*server.options()[2::2], f"ProxyCommand={way}"])
        ada.fill(address=f"ada@127.0.0.1:{server.port}{server.root}", options=options,
                 password=SFTP_PASSWORD)
        ada.send()
        process = int(eventually(lambda: read(begun), "it is on its way"))
        ada.send("Cancel the sign-in")
        ada.until_said("The sign-in was cancelled: nothing was changed.")
        eventually(lambda: not alive(process), "it has turned back")
        goes_on.touch()
        assert server.count("Accepted") == 0 and accounts(machine) == {}
        # Who does not cancel comes in by it.
        ada.fill(password=SFTP_PASSWORD)
        ada.send()
        ada.until("Signed in")
        assert server.count("Accepted") > 0
        machine.unmount()
    finally:
        server.stop()


def test_signing_out(machine, clouds, person):
    cloud = "dropbox"
    machine.login(cloud)
    machine.login("drive")
    machine.mount()
    drive = machine.ready(cloud)
    machine.ready("drive")
    ada = person(dark=True)
    ada.show("/accounts")
    ada.follow("Sign out: drive")
    said = ada.until("Sign out of drive")
    assert "nothing is lost" in said
    ada.send("Sign out")
    said = ada.look()
    assert 'Signed out of "drive".' in said and list(accounts(machine)) == [cloud]
    assert not (machine.mount_point / "drive").exists()

    # What its cloud does not have is named, and given up by its name only.
    ada.show(f"/sign-out?account={cloud}")
    clouds.gates[cloud].shut()
    (drive / "unsent.txt").write_text("unsent")
    ada.send("Sign out")
    said = ada.look()
    assert "unsent.txt" in said and list(accounts(machine)) == [cloud]
    for typed in ("drive", "dropbox2"):
        ada.fill(confirmed=typed)
        ada.send("Sign out and lose that")
        assert "That is not the account's name: nothing was changed." in text(ada.driver)
        assert read(drive / "unsent.txt") == "unsent"
    (drive / "later.txt").write_text("later")
    eventually(lambda: machine.account(cloud)["pending_count"] == 2, "it waits")
    ada.fill(confirmed=cloud)
    ada.send("Sign out and lose that")
    said = ada.look()
    assert "later.txt" in said and list(accounts(machine)) == [cloud]
    ada.fill(confirmed=cloud)
    ada.send("Sign out and lose that")
    assert f'Signed out of "{cloud}".' in text(ada.driver)
    assert accounts(machine) == {} and not drive.exists()


def test_only_the_page_itself_signs_in(machine, clouds, page, folder):
    """No other page, no old form and no odd request begins, follows or ends a sign-in."""
    machine.login("dropbox")
    machine.mount()
    machine.ready("dropbox")
    site = page()
    asker = Asker(site)
    for path in ("/accounts", "/sign-in?kind=drive", "/sign-out?account=dropbox", "/sign-in-step/1"):
        assert asker.ask("GET", path).status == 401
    asker.enter()
    token = asker.form_token()
    wish = {"kind": "webdav", "address": "http://127.0.0.1:9/", "user": "ada", "password": PASSWORD}
    for path in ("/sign-in", "/sign-in-cancel", "/sign-in-host", "/sign-out"):
        body = {**wish, "account": "dropbox", "id": "x"}
        assert asker.ask("POST", path, body, Origin=site.origin).status == 403
        for origin in (None, "http://evil.example", f"http://localhost:{site.port}"):
            assert asker.ask("POST", path, {**body, "token": token}, Origin=origin).status == 403
    assert list(accounts(machine)) == ["dropbox"]
    assert b"Under way" not in asker.ask("GET", "/accounts").content

    def post(path, **fields):
        return asker.ask("POST", path, {"token": token, **fields}, Origin=site.origin)

    # Nothing that is sent ends the page, or is believed.
    evil = "\"><script>alert(1)</script>\x00\u202e" + "ä" * 100
    for kind in ("", "nothing", evil):
        assert post("/sign-in", kind=kind).status == 303
    for kind in ("webdav", "nextcloud", "sftp", "ftp", "s3", "weather", "dropbox", "box"):
        fields = {name: evil for name in (
            "address", "user", "password", "root", "space", "name", "dialect", "options", "identity",
            "bucket", "endpoint", "key_id", "key", "region", "session_token", "source", "contact",
            "client_id", "client_secret", "tokens", "plain", "path_style", "again")}
        # With nothing that is wrong Dropbox's own page would be waited for.
        for given in (fields, {**fields, "name": ""}, *([] if kind == "dropbox" else [{}])):
            answer = post("/sign-in", kind=kind, **given)
            place = answer.headers["Location"]
            assert answer.status == 303 and place.startswith("/sign-in/")

            def ended():
                shown = asker.ask("GET", place).content.decode()
                return None if "data-step" in shown else shown

            shown = eventually(ended, f"{kind} comes to an end")
            assert "<script>alert" not in shown and "\u202e" not in shown
            if kind == "weather" and given == {}:
                assert "Signed in" in shown
    for path in ("/sign-in/x", "/sign-in/../x", "/sign-in-step/", "/sign-in?account=nobody",
                 "/sign-out?account=nobody", "/sign-out", "/sign-in", "/sign-in?kind=" + "a" * 5000):
        assert asker.ask("GET", path).status in (400, 404), path
    for path in ("/sign-in-cancel", "/sign-in-host", "/sign-out"):
        assert post(path, id="x", account="nobody", seen="-9", confirmed="x").status == 303
        assert post(path, id="x", account="nobody", seen="9" * 40).status == 303
    assert post("/sign-in", kind="webdav", password="a" * 70_000).status == 413
    assert set(accounts(machine)) == {"dropbox", "weather"}

    # Without the script the browser loads a sign-in's page anew, until it is over.
    place = post("/sign-in", kind="dropbox").headers["Location"]
    shown = eventually(lambda: (lambda one: one if "asks you" in one else None)(
        asker.ask("GET", place).content.decode()), "the service's page is waited for")
    refresh = '<noscript><meta http-equiv="refresh" content="4"></noscript>'
    assert refresh in shown
    step = asker.ask("GET", place.replace("/sign-in/", "/sign-in-step/")).content.decode().strip()
    assert f'data-step="{step}"' in shown
    assert post("/sign-in-cancel", id=place.split("/")[-1]).headers["Location"] == place
    assert refresh not in asker.ask("GET", place).content.decode()

    # A password that is refused is in no answer, in no address and in no log.
    place = post("/sign-in", **wish).headers["Location"]
    assert PASSWORD not in place
    shown = eventually(lambda: (lambda one: None if "data-step" in one else one)(
        asker.ask("GET", place).content.decode()), "it ends")
    assert PASSWORD not in shown
    assert 'role="alert"' in shown and 'value="http://127.0.0.1:9/"' in shown
    assert PASSWORD not in machine.log()
    for process in os.listdir("/proc"):
        if process.isdigit():
            try:
                with open(f"/proc/{process}/cmdline", "rb") as file:
                    assert PASSWORD.encode() not in file.read()
            except OSError:
                continue
