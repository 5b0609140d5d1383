"""Measures Oort beside rclone on simulated services behind one network; see scripts/bench."""
