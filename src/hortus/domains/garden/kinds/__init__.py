"""The kinds of Gardener that extension controllers read and write. Gardener installs their CRDs, not Hortus."""
