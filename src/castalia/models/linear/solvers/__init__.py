"""How linear models are fitted: the arithmetic behind their estimators."""
