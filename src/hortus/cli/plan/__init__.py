"""`hortus plan`: the real controllers on a fork of the fleet, in virtual time, and what they did."""
