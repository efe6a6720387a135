"""The catalogue's estimators, one package a family."""
