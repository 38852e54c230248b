"""The methods that studies compare: those of this package, of scikit-learn and of others."""
