"""What the tests of script jobs share: running jobs, and hashing what scripts received."""
