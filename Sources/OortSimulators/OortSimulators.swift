// Module OortSimulators.
