// Module OortFUSE.
