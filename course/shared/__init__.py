"""What every other folder uses: paths, settings, files, the exceptions of the course."""
