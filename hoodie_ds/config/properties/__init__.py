"""The properties of a table: ``.hoodie/hoodie.properties``, read, written and compared."""
