"""A cluster: coordinator and data plane behind one ``handle`` and one ``expire``, and the layers in front of it. Pure."""
