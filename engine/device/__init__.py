"""Work for the device that knows no request: its queue, uploads, captured graphs, threads, the profiler.

In: arrays and callables. Out: work in order on the device.
"""
