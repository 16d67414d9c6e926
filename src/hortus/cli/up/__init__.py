"""`hortus up`: a whole fleet control plane on one machine.

A supervisor starts three processes - the embedded API server, the controllers, the simulated garden - and keeps them
running until it receives a signal to stop. One state directory keeps the persistent state. The process that has the
directory's lock is its only supervisor.
"""
