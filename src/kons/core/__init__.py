"""The engine: one preconditioner, one update, blocked replay. Sees float64 arrays only."""
