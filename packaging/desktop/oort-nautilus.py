"""Emblems and menu entries of Oort in Nautilus; the package's Python modules do the work."""

import sys

sys.path.insert(0, "/usr/share/oort/desktop")

from gi.repository import Nautilus  # noqa: E402

import oort_provider  # noqa: E402

OortProvider = oort_provider.provider(Nautilus, "Nautilus")
