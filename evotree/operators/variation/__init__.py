"""What breeds offspring: mutation, crossover, and the selection of parents and survivors."""
