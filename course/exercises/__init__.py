"""The exercises, a module a chapter: `chNN_topic.py` holds those of `solutions/NN_topic.py`."""
