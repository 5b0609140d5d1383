// Module OortPlanner.
