"""Examples: real architectures with random weights, made without a download, as exporters write them."""
