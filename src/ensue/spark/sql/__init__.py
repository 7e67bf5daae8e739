"""What runs as Spark SQL: the columns of a DataFrame as events, conformance, predicates, scans."""
