"""Long work done with care: commands in directories of their own, results that appear whole, large inputs in parts."""
