"""``format("delta")`` of ``spark.read``, ``df.write`` and ``df.writeTo``, in sessions that asked
for it.
"""
