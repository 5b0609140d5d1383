// Module OortGoogleDrive.
