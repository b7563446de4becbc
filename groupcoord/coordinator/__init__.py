"""The pure group coordinator: classic groups and their offsets."""
