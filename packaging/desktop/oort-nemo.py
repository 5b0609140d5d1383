"""Emblems and menu entries of Oort in Nemo; the package's Python modules do the work."""

import sys

sys.path.insert(0, "/usr/share/oort/desktop")

from gi.repository import Nemo  # noqa: E402

import oort_provider  # noqa: E402

OortProvider = oort_provider.provider(Nemo, "Nemo")
