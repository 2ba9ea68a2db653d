"""The version of this package, which is that of hetero-runtime: base/version.h."""

__version__ = "0.3.0"
