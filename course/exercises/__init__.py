"""The exercises of `solutions/NN_topic.py`: a folder `chNN_topic`, with a module an exercise."""
