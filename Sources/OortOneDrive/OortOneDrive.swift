// Module OortOneDrive.
