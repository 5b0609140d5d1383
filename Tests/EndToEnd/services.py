"""What an account holds beside names and bytes: links that were given away, older contents.

Asked for by each service's own protocol, as somebody else's program would.
"""

import json
import urllib.parse
import urllib.request

class Service:
    """One account, spoken to in its service's own words."""

    def __init__(self, clouds, cloud):
        self.base = f"http://127.0.0.1:{clouds.services[cloud]['port']}"
        self.token = clouds.tokens(cloud)["access_token"]

    def ask(self, method, host, path, body=None, headers=None):
        request = urllib.request.Request(
            f"{self.base}/{host}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers=headers or {})
        # Not at a redirection's target, whose address is the permission.
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    @staticmethod
    def on(clouds, cloud):
        return {"dropbox": Dropbox, "drive": Drive, "onedrive": OneDrive, "box": Box}[cloud](
            clouds, cloud)


class Dropbox(Service):
    def call(self, route, argument):
        return json.loads(self.ask("POST", "api.dropboxapi.com", f"/2/{route}", argument))

    def share(self, item):
        return self.call("sharing/create_shared_link_with_settings", {"path": item["path"]})["url"]

    def share_with_members(self, item):
        settings = {"requested_visibility": {".tag": "team_only"}}
        self.call("sharing/create_shared_link_with_settings",
                  {"path": item["path"], "settings": settings})

    def links(self, item):
        found = self.call(
            "sharing/list_shared_links", {"path": item["path"], "direct_only": True})
        return [link["url"] for link in found["links"]]

    def older(self, item):
        """All contents but the current one, oldest first."""
        revisions = self.call(
            "files/list_revisions", {"path": item["id"], "mode": "id", "limit": 100})["entries"]
        argument = [json.dumps({"path": f"rev:{revision['rev']}"}) for revision in revisions[1:]]
        return [
            self.ask("POST", "content.dropboxapi.com", "/2/files/download",
                     headers={"Dropbox-API-Arg": text}) for text in reversed(argument)]


class Drive(Service):
    def call(self, method, path, body=None):
        return self.ask(method, "www.googleapis.com", f"/drive/v3/files/{path}", body)

    def share(self, item):
        self.call("POST", f"{item['id']}/permissions", {"type": "anyone", "role": "reader"})
        return "anyoneWithLink"

    def links(self, item):
        found = json.loads(self.call("GET", f"{item['id']}/permissions"))["permissions"]
        return [one["id"] for one in found if one["type"] == "anyone"]

    def older(self, item):
        revisions, page = [], ""
        while page is not None:
            answer = json.loads(self.call("GET", f"{item['id']}/revisions{page}"))
            revisions += answer["revisions"]
            token = answer.get("nextPageToken")
            page = f"?pageToken={token}" if token else None
        contents = []
        for revision in revisions[:-1]:
            path = f"{item['id']}/revisions/{revision['id']}"
            self.call("PATCH", path, {"keepForever": True})
            contents.append(self.call("GET", f"{path}?alt=media"))
        return contents


class OneDrive(Service):
    def call(self, method, path, body=None):
        return self.ask(method, "graph.microsoft.com", f"/v1.0/me/drive/items/{path}", body)

    @staticmethod
    def name(item):
        return urllib.parse.quote(item["id"], safe="!")

    def share(self, item):
        answer = self.call(
            "POST", f"{self.name(item)}/createLink", {"type": "view", "scope": "anonymous"})
        return json.loads(answer)["link"]["webUrl"]

    def share_with_members(self, item):
        for scope in ("users", "organization"):
            self.call("POST", f"{self.name(item)}/createLink", {"type": "edit", "scope": scope})

    def links(self, item):
        found = json.loads(self.call("GET", f"{self.name(item)}/permissions"))["value"]
        return [one["link"]["webUrl"] for one in found if "link" in one]

    def older(self, item):
        versions = json.loads(self.call("GET", f"{self.name(item)}/versions"))["value"]
        return [
            self.call("GET", f"{self.name(item)}/versions/{version['id']}/content")
            for version in reversed(versions[1:])]


class Box(Service):
    def call(self, method, item, path="", body=None):
        kind = "folders" if item["kind"] == "folder" else "files"
        return self.ask(method, "api.box.com", f"/2.0/{kind}/{item['id'][1:]}{path}", body)

    def share(self, item):
        answer = self.call("PUT", item, "?fields=shared_link", {"shared_link": {"access": "open"}})
        return json.loads(answer)["shared_link"]["url"]

    def links(self, item):
        link = json.loads(self.call("GET", item, "?fields=shared_link"))["shared_link"]
        return [link["url"]] if link else []

    def older(self, item):
        """All contents but the current one, oldest first."""
        versions, total = [], None
        while total is None or len(versions) < total:
            page = json.loads(self.call("GET", item, f"/versions?offset={len(versions)}"))
            versions += page["entries"]
            total = page["total_count"]
        return [
            self.call("GET", item, f"/content?version={version['id']}")
            for version in reversed(versions)]
