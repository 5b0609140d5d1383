// Module OortDropbox.
