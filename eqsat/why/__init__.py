"""Why: the reasons for which a rule fires on a model, or does not."""
