"""The page of `oort web`: in a real browser, and against requests that no browser of the user's sends."""

import io
import os
import pathlib
import stat
import wave
import urllib.parse

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from browser import Asker, check, complaints, enter, film, press, text
from machine import eventually, held_port, read

# What brings a file's content, at each cloud.
CONTENT = {"dropbox": "files/download", "drive": "files.get"}


def picture(width, height, colour):
    """A BMP of one colour."""
    row = bytes(colour) * width + bytes(-3 * width % 4)
    head = b"BM" + (54 + len(row) * height).to_bytes(4, "little") + bytes(4)
    head += (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
    head += width.to_bytes(4, "little") + height.to_bytes(4, "little")
    head += (1).to_bytes(2, "little") + (24).to_bytes(2, "little") + bytes(24)
    return head + row * height


def document():
    """A PDF of one page that says something."""
    drawing = b"BT /F1 24 Tf 40 100 Td (Tides of the harbour) Tj ET"
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawing), drawing),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    result, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(result))
        result += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    start = len(result)
    result += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % p for p in places)
    return result + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start


def sound(seconds):
    """Silence as a WAV, 88,200 bytes a second."""
    target = io.BytesIO()
    with wave.open(target, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(44_100)
        file.writeframes(bytes(88_200 * seconds))
    return target.getvalue()


def test_the_page_in_a_browser(machine, clouds, folder, page, browser):
    """All that a person does on it, with no call for content that the person did not ask to see."""
    cloud = "drive"
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    (drive / "photos").mkdir()
    for number in range(3):
        (drive / f"photos/view {number}.bmp").write_bytes(picture(60, 40, (0, 40 * number, 200)))
    (drive / "tides.pdf").write_bytes(document())
    (drive / "sea.wav").write_bytes(sound(400))
    driver = browser()
    (drive / "waves.webm").write_bytes(film(driver))
    (drive / "notes.md").write_text("# Tides <script>alert(1)</script>\r\n\tlow at six\n")
    for words in ("first", "the second"):
        (drive / "report.txt").write_text(words)
        machine.sync()
    (drive / "old.txt").write_text("gone")
    machine.sync()
    (drive / "old.txt").unlink()
    conflicting(machine, clouds, cloud, drive)
    machine.oort("free", "--all")

    # The browser is opened without the token on a command line, and by a file that goes.
    opener = folder / "bin"
    opener.mkdir()
    (opener / "xdg-open").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >"{folder}/opened"\n')
    (opener / "xdg-open").chmod(0o755)
    path = f"{opener}:{machine.environment['PATH']}"
    site = page("--open", environment={"PATH": path})
    opened = eventually(lambda: read(folder / "opened"), "the browser is asked for").strip()
    assert opened.startswith("file:///") and site.token not in opened
    leads = pathlib.Path(urllib.parse.unquote(opened[len("file://"):]))
    assert stat.S_IMODE(leads.stat().st_mode) == 0o600 and site.token in leads.read_text()
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        assert site.token.encode() not in (process.read_bytes() if process.exists() else b"")
    enter(driver, opened)
    assert not leads.exists()
    complaints(driver)

    def show(address):
        driver.get(site.origin + address)
        check(driver)
        return text(driver)

    said = show("/")
    for words in (cloud, "Google Drive", "ada@example.com", "1 conflict", "in use"):
        assert words in said, said

    # Folders: the names alone, not a byte of content.
    clouds.forget_calls(cloud)
    said = show(f"/files/{cloud}/photos")
    assert "view 0.bmp" in said and "in the cloud" in said
    said = show(f"/files/{cloud}")
    # Folders first, then by name.
    assert said.index("photos/") < said.index("both.txt") < said.index("tides.pdf")
    assert clouds.counts(cloud).get(CONTENT[cloud], 0) == 0, clouds.counts(cloud)

    # Previews.
    show(f"/files/{cloud}/photos/view%202.bmp")
    size = driver.execute_script(
        "const i = document.querySelector('figure img'); return [i.naturalWidth, i.naturalHeight]")
    assert size == [60, 40]
    said = show(f"/files/{cloud}/notes.md")
    assert "# Tides <script>alert(1)</script>" in said and "low at six" in said
    show(f"/files/{cloud}/tides.pdf")
    assert driver.find_element(By.CSS_SELECTOR, "iframe[title='tides.pdf']")
    # What is small and here by now stands for itself in the folder.
    show(f"/files/{cloud}/photos")
    eventually(lambda: driver.execute_script(
        "const i = document.querySelector('img[src^=\"/thumbnail\"]');"
        "return i && i.complete && i.naturalWidth"), "the small picture is there")

    # A film or sound comes by ranges, and not before a person plays it.
    before = clouds.traffic(cloud)[CONTENT[cloud]]["bytes_out"]
    show(f"/files/{cloud}/sea.wav")
    assert clouds.traffic(cloud)[CONTENT[cloud]]["bytes_out"] == before
    driver.execute_script("const a = document.querySelector('audio'); a.preload = 'auto'; a.load();")
    eventually(lambda: driver.execute_script(
        "const a = document.querySelector('audio'); return a.readyState > 0 && a.duration > 399"),
        "the sound's length is known")
    driver.execute_script("document.querySelector('audio').currentTime = 390")
    eventually(lambda: driver.execute_script(
        "const a = document.querySelector('audio');"
        "return !a.seeking && a.currentTime >= 390 && a.readyState >= 2"), "its end can be heard")

    show(f"/files/{cloud}/waves.webm")
    driver.execute_script("document.querySelector('video').play()")
    eventually(lambda: driver.execute_script(
        "const v = document.querySelector('video');"
        "return v.videoWidth === 64 && v.videoHeight === 48 && v.currentTime > 0"), "the film plays")

    # Kept here, and no longer.
    driver.get(f"{site.origin}/files/{cloud}/photos")
    Select(driver.find_element(By.NAME, "hours")).select_by_visible_text("two days")
    press(driver, "Keep here")
    assert "is kept here until" in text(driver)
    eventually(lambda: os.getxattr(drive / "photos/view 0.bmp", "user.oort.availability")
               == b"pinned", "it is here")
    assert "photos" in show("/pins")
    press(driver, "No longer keep photos")
    assert "is no longer kept" in text(driver) and "Nothing is pinned" in text(driver)
    press(driver, "Free all other copies")
    assert "Freed" in text(driver)

    # Back from the trash.
    assert "old.txt" in show("/trash")
    press(driver, "Restore old.txt")
    assert "is back" in text(driver)
    assert read(drive / "old.txt") == "gone"

    # An earlier version.
    said = show(f"/versions/{cloud}/report.txt")
    assert "what the file has now" in said
    name = driver.find_element(By.CSS_SELECTOR, "button[aria-label^='Restore']").get_attribute(
        "aria-label")
    press(driver, name)
    assert "has the content of that version again" in text(driver)
    eventually(lambda: read(drive / "report.txt") == "first", "it is the first again")

    # Both sides of a conflict, and its end.
    said = show("/conflicts")
    assert "theirs" in said and "mine" in said
    assert [e.text for e in driver.find_elements(By.CSS_SELECTOR, "del, ins")] == ["theirs", "mine"]
    press(driver, "Keep mine: both.txt")
    assert "is your version now" in text(driver)
    assert read(drive / "both.txt") == "one\nmine\nthree\n"

    # Search, by the keyboard alone.
    driver.get(site.origin)
    driver.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert driver.switch_to.active_element.text == "Skip to the content"
    driver.find_element(By.ID, "find").send_keys("tides", Keys.ENTER)
    eventually(lambda: "tides.pdf" in text(driver), "it is found")
    check(driver)

    # What is on its way shows by itself.
    driver.get(site.origin)
    clouds.gates[cloud].shut()
    (drive / "waits.txt").write_text("waits")
    eventually(lambda: "waits.txt" in text(driver), "the page shows it without being loaded anew")
    clouds.gates[cloud].open()
    eventually(lambda: "waits.txt" not in text(driver), "and that it is gone")
    press(driver, f"Pause sending: {cloud}")
    eventually(lambda: machine.account(cloud)["state"] == "paused", "nothing is sent")
    press(driver, f"Go on sending: {cloud}")

    assert str(folder / "one/config/oort/config.toml") in show("/settings")
    assert "GET " in show("/log")
    assert "is not there" in text_of(driver, site, f"/files/{cloud}/nothing")
    complaints(driver)

    # The same in the dark, on a phone; a cookie of this process is all that this takes.
    cookie, = driver.get_cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    phone = browser(width=500, height=850, dark=True)
    phone.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True})
    phone.execute_cdp_cmd("Network.setCookie", {
        "name": cookie["name"], "value": cookie["value"], "url": site.origin})
    for address in ("/", f"/files/{cloud}/", f"/files/{cloud}/notes.md", "/trash", "/settings",
                    f"/versions/{cloud}/report.txt", "/search?words=tides", "/log", "/pins"):
        phone.get(site.origin + address)
        check(phone)
    assert phone.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches")
    machine.unmount()
    assert "No mount is running" in text_of(driver, site, "/")
    assert site.stop() == 0


def text_of(driver, site, address):
    driver.get(site.origin + address)
    return text(driver)


def conflicting(machine, clouds, cloud, drive):
    """A file with a text of ours and another one of somebody else's."""
    path = drive / "both.txt"
    clouds.edit(cloud, "write", "/both.txt", text="one\nbase\nthree\n")
    eventually(lambda: read(path) == "one\nbase\nthree\n", "the file shows")
    clouds.gates[cloud].shut()
    path.write_text("one\nmine\nthree\n")
    clouds.edit(cloud, "write", "/both.txt", text="one\ntheirs\nthree\n")
    clouds.gates[cloud].open()
    machine.sync()
    eventually(lambda: read(path) == "one\ntheirs\nthree\n", "the other side's edit shows")


def test_only_whom_it_is_for(machine, clouds, folder, page):
    """Who has no cookie, comes under another name, or from another page, sees and changes nothing."""
    cloud = "dropbox"
    machine.login(cloud)
    machine.mount()
    drive = machine.ready(cloud)
    (drive / "secret.txt").write_text("the secret")
    (drive / "page.html").write_text("<script>alert(1)</script>")
    (drive / "sign.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>")
    os.symlink("/etc/passwd", drive / "out")
    os.symlink(folder, drive / "outside")
    os.symlink("secret.txt", drive / "within")
    evil = "a\"><script>alert('x')<!--\x1b[31m\u202e & %2e%2e"
    (drive / evil).mkdir()
    machine.sync()
    site = page()
    asker = Asker(site)

    # Nothing without the cookie, and the token is worth one.
    secret = f"/content/{cloud}/secret.txt"
    for path in ("/", "/live", "/files/", secret, "/log", "/settings", "/thumbnail/x"):
        answer = asker.ask("GET", path)
        assert answer.status == 401 and b"secret" not in answer.content, path
    assert asker.ask("GET", "/enter?token=" + "0" * 64).status == 401
    entered = asker.enter()
    assert "HttpOnly" in entered.headers["Set-Cookie"]
    assert "SameSite=Strict" in entered.headers["Set-Cookie"]
    assert Asker(site).ask("GET", f"/enter?token={site.token}").status == 401
    answer = asker.ask("GET", secret)
    assert answer.status == 200 and answer.content == b"the secret"

    # Under another name (DNS rebinding), from another page, by another method.
    for host in ("evil.example", f"localhost:{site.port}", f"evil.example:{site.port}", None):
        assert asker.ask("GET", secret, Host=host).status == 421, host
    for asking in ("cross-site", "same-site"):
        assert asker.ask("GET", secret, Sec_Fetch_Site=asking).status == 403
    assert asker.ask("PUT", secret).status == 405
    wish = {"account": cloud, "token": asker.form_token()}
    for origin in (None, "null", "http://evil.example", f"http://localhost:{site.port}",
                   "http://127.0.0.1:1"):
        assert asker.ask("POST", "/pause", wish, Origin=origin).status == 403, origin
    for token in ({}, {"token": ""}, {"token": "0" * 64}):
        assert asker.ask("POST", "/pause", {"account": cloud, **token},
                         Origin=site.origin).status == 403
    assert asker.ask("GET", "/pause?account=" + cloud).status == 404
    assert machine.account(cloud)["state"] != "paused"
    answer = asker.ask("POST", "/pause", {**wish, "back": "//evil.example/"}, Origin=site.origin)
    assert answer.status == 303 and answer.headers["Location"] == "/"
    assert machine.account(cloud)["state"] == "paused"

    # No way out of the mount.
    for path in ("../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "..%2f..%2fetc%2fpasswd", "/etc/passwd",
                 f"{cloud}/%00", f"{cloud}//secret.txt", f"{cloud}/out", f"{cloud}/outside/secret",
                 f"{cloud}/within", f"{cloud}"):
        for kind in ("content", "thumbnail"):
            answer = asker.ask("GET", f"/{kind}/{path}")
            assert answer.status in (400, 404) and b"root:" not in answer.content, (path, answer.status)
    assert b"which is not in the clouds" in asker.ask("GET", f"/files/{cloud}/out").content
    assert f'href="/files/{cloud}/secret.txt"'.encode() in asker.ask(
        "GET", f"/files/{cloud}/within").content

    # A file's own script never runs here.
    answer = asker.ask("GET", f"/content/{cloud}/page.html")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    for name in ("page.html", "sign.svg", "secret.txt"):
        answer = asker.ask("GET", f"/content/{cloud}/{name}")
        assert answer.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"

    # Names are text, and their addresses lead back to them.
    listing = asker.ask("GET", f"/files/{cloud}").content.decode()
    assert "<script>alert" not in listing and "\x1b" not in listing and "\u202e" not in listing
    assert "a&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;!--\\u{1b}[31m\\u{202e} &amp; %2e%2e/" in listing
    address = f"/files/{cloud}/" + urllib.parse.quote(evil, safe="")
    assert f'href="{address}"' in listing
    answer = asker.ask("GET", address)
    assert answer.status == 200 and b"There is nothing in this folder" in answer.content
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert answer.headers["Cache-Control"] == "no-store"

    # Ranges.
    def part(field, **more):
        return asker.ask("GET", secret, Range=field, **more)

    answer = part("bytes=4-")
    assert (answer.status, answer.content) == (206, b"secret")
    assert answer.headers["Content-Range"] == "bytes 4-9/10"
    assert part("bytes=-3").content == b"ret" and part("bytes=2-3").content == b"e "
    answer = part("bytes=10-")
    assert answer.status == 416 and answer.headers["Content-Range"] == "bytes */10"
    assert part("bytes=4-", If_Range='"other"').status == 200
    assert part("bytes=4-", If_Range=answer_tag(asker, secret)).status == 206
    answer = asker.ask("HEAD", secret)
    assert answer.headers["Content-Length"] == "10" and answer.content == b""

    # What is no request of a browser's.
    assert asker.ask("GET", "/" + "a" * 70_000).status == 431
    answer = asker.ask("POST", "/pause", {"account": "a" * 70_000}, Origin=site.origin)
    assert answer.status == 413
    for told in (site.token, asker.cookie.split("=")[1], wish["token"]):
        assert told not in machine.log()


def answer_tag(asker, path):
    return asker.ask("GET", path).headers["ETag"]


def test_a_large_folder_and_pictures_of_the_service(machine, clouds, page):
    """A folder of more names than a page has is paged, and shows the service's small pictures; no content comes."""
    cloud = "dropbox"
    clouds.edits(cloud, [
        *({"op": "write", "path": f"/many/{number:05}.txt", "text": "x"} for number in range(450)),
        {"op": "write", "path": "/views/sea.jpg", "seed": 1, "size": 3_000}])
    machine.login(cloud)
    machine.mount()
    machine.ready(cloud)
    site = page()
    asker = Asker(site)
    asker.enter()
    clouds.forget_calls(cloud)
    first = asker.ask("GET", f"/files/{cloud}/many").content.decode()
    assert first.count("<tr>") == 201 and "Page 1 of 3, 450 in all" in first
    assert "00000.txt" in first and "00200.txt" not in first
    last = asker.ask("GET", f"/files/{cloud}/many?page=3").content.decode()
    assert "00449.txt" in last and "00399.txt" not in last
    for wrong in ("0", "-5", "x", "99999999999999999999", "4"):
        assert asker.ask("GET", f"/files/{cloud}/many?page={wrong}").status == 200
    assert f'src="/thumbnail/{cloud}/views/sea.jpg' in asker.ask(
        "GET", f"/files/{cloud}/views").content.decode()
    answer = asker.ask("GET", f"/thumbnail/{cloud}/views/sea.jpg")
    assert answer.status == 200 and answer.headers["Content-Type"] in ("image/jpeg", "image/png")
    assert clouds.counts(cloud).get("files/get_thumbnail_v2") == 1
    assert clouds.counts(cloud).get("files/download", 0) == 0


def test_bad_input(machine, clouds, page):
    assert "No mount is running.\nStart one: oort mount" in machine.oort("web", status=1)
    for port in ("0", "70000", "x", "-1"):
        machine.oort("web", "--port", port, status=2)
    machine.login("dropbox")
    machine.mount()
    port, place = held_port()
    site = page("--port", str(port))
    assert site.port == port
    said = machine.oort("web", "--port", port, status=1)
    assert f"Port {port} is taken by another program." in said and "--port" in said
    assert site.stop() == 0
    place.close()


def test_every_setting_and_how_to_sign_in_again(machine, clouds, page):
    machine.write_settings(machine.settings() + '\n[accounts.drive]\nleave_out = ["/Archive"]\n'
                           '\n[onlookers]\nlargest_download = "96K"\n')
    machine.login("drive")
    machine.mount()
    machine.ready("drive")
    site = page()
    asker = Asker(site)
    asker.enter()
    said = asker.ask("GET", "/settings").content.decode()
    for words in ("leave_out", "drive: /Archive", "onlookers.largest_download", "96",
                  "onlookers.programs", "tumblerd", "thumbnails.programs", "nautilus",
                  "weather.temperature", "celsius", "weather.wind", "weather.rain"):
        assert words in said, words
    command = "oort login drive --name drive"
    assert f">{command}</pre>" not in asker.ask("GET", "/").content.decode()
    clouds.control("drive", "POST", "tokens/revoke")
    (machine.mount_point / "drive" / "file.txt").write_text("kept")
    eventually(lambda: machine.account("drive")["state"] == "trouble", "the trouble is told")
    assert f">{command}</pre>" in asker.ask("GET", "/").content.decode()
