// Module OortTesting.
