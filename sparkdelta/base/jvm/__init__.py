"""Access to the JVM of classic Spark; the only room that uses py4j."""
