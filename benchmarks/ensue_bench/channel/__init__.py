"""How the event channel is measured: latency, load, pace and spacing, beside the paper."""
