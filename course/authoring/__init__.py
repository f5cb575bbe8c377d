"""From an author's text to released notebooks, and to what learners get."""
