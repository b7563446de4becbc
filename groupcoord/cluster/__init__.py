"""One broker: coordinator and data plane behind one ``handle`` and one ``expire``. Pure."""
