"""The streaming job of ``pipeline watch``: follows the log and updates tables, metrics and alerts after each batch."""
