"""One auction: bids, clearing, outcomes, files."""
