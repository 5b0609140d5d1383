"""Adds Oort's actions to Thunar's menu, or takes them away: python3 thunar_actions.py add|remove

Thunar reads custom actions of one file of the person's, which no package may write to.
"""

import os
import pathlib
import shutil
import sys
import xml.etree.ElementTree as tree

OURS = pathlib.Path(__file__).resolve().with_name("thunar-actions.xml")
DEFAULTS = pathlib.Path("/etc/xdg/Thunar/uca.xml")


def main(arguments, actions=OURS, defaults=DEFAULTS):
    if arguments not in (["add"], ["remove"]):
        print("usage: thunar_actions.py add|remove", file=sys.stderr)
        return 2
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    # Where it is a link, as of a person who keeps settings elsewhere, the file that it leads to.
    file = (pathlib.Path(home) / "Thunar/uca.xml").resolve()
    source = file if file.exists() else defaults
    if arguments == ["remove"] and not file.exists():
        return 0
    try:
        root = tree.parse(source).getroot() if source.exists() else tree.Element("actions")
    except tree.ParseError as error:
        print(f"{source} is no XML: {error}", file=sys.stderr)
        return 1
    for action in root.findall("action"):
        if (action.findtext("unique-id") or "").startswith("oort-"):
            root.remove(action)
    if arguments == ["add"]:
        root.extend(tree.parse(actions).getroot().findall("action"))
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.{os.getpid()}")
    with open(new, "wb") as output:
        tree.ElementTree(root).write(output, encoding="UTF-8", xml_declaration=True)
        output.flush()
        os.fsync(output.fileno())
    if file.exists():
        shutil.copymode(file, new)
    new.replace(file)
    print("Thunar shows it when it is started next: thunar -q")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
