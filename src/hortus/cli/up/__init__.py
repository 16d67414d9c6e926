"""`hortus up`: a whole fleet control plane on one machine.

A supervisor starts three processes - the embedded API server, the controllers, the simulated garden - and keeps them
running until it is told to stop. What must outlive it lies in one state directory; whoever holds its lock is the one
supervisor of that directory.
"""
