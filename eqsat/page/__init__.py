"""The page: the report of a run as one HTML file, with the graphs of both models drawn."""
