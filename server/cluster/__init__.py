"""Several engines behind one address: which of them is asked, what happens when one goes, and what they tell together.

All of it is plain Python: `server/ray/` runs it on Ray Serve, and a simulation (`benchmarks/scheduling.py --cluster`) runs the
same policies.
"""
