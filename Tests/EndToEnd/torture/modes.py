"""The modes of random histories, by name."""

from torture.cold import Cold
from torture.history import Alone, Crowd
from torture.kinds import KINDS
from torture.pairs import Pairs

MODES = {
    "faults": (Alone, {"faults": True, "kills": False}),
    "kills": (Alone, {"faults": False, "kills": True}),
    "cold": (Cold, {"faults": True, "kills": True}),
    "pairs": (Pairs, {"faults": False, "kills": False}),
    "machines": (Crowd, {"faults": True, "kills": False}),
    "everything": (Crowd, {"faults": True, "kills": True}),
}


def history(mode, folder, name, seed, operations, **more):
    """A history of a mode; its `figures` hold after `run`, too, when that failed."""
    history, settings = MODES[mode]
    return history(folder, KINDS[name], seed, operations, **{**settings, **more})
