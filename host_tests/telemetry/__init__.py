"""The data pipeline, with Spark and without."""
