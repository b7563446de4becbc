"""What other assignors would have done: the history of each group, played again with each of them."""
