"""The command `course`: its verbs, and the modules that only they use."""
