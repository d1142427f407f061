"""Pictures: a graph as a static drawing, and a table of operators, for notebooks; without scripts or network."""
