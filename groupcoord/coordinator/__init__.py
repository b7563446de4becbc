"""The group coordinator and the transaction coordinator, without I/O and clock."""
