"""The exercises of `solutions/NN_topic.py`: a module `chNN_topic.py`, or a folder `chNN_topic`."""
