"""Results of runs: tables, summaries, directories."""
