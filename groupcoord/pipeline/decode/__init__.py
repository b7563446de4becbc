"""From keys and values to fields: the many commits with numpy, everything else in plain Python."""
