"""Is AutoKONS ever blind to drift? Streams that move, beside learners with the best memory in hindsight."""
