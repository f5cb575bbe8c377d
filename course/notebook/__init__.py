"""What runs in a learner's notebook: checks, hints, the record of points, transplants."""
