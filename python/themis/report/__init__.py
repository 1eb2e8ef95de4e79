"""The HTML report and its figures."""
