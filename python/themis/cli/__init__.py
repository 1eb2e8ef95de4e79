"""The command line: the only part of Themis that writes to standard output."""
