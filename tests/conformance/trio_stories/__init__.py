"""The stories told to three brokers, one module each: what producers, consumers, groups, … see of brokers that fail."""
