"""The coordinator of transactions (KIP-98, KIP-890): producers by their transactional ids, and what they have open."""
