"""What tests share: makers of models, of graphs and of expressions, and comparisons."""
