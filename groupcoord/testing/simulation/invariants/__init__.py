"""What must hold in every simulated world, one class for each promise."""
