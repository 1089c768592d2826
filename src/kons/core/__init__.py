"""The engine: one preconditioner, one update, blocked replay; float64 arrays only. In the order to read it.

===================================  =========================================================================
``preconditioner``, ``factor``       A in the feature space, read off a factor that grows by rows
``replay``, ``ledger``               the one update, row by row inside a block; what its loops read and write
``function``                         the learned function as a kernel expansion, moved by blocks
``entry``, ``leverage``, ``coins``   who enters: all, a coin by leverage, the atoms of a span
``sampler``                          KORS's own preconditioner, over the points that it kept
``thinning``                         a sample whose probabilities fall, and that merges with others
``embedding``                        coordinates in the span of a dictionary
``quadratic``, ``quadratic_loops``   A and K functions in R^B, in periods: blocks, and one row in machine code
``one_row``                          a row of a dictionary and K functions, in one compiled call by addresses
``ridge``, ``sequential``            the same in closed form; the same for loops over rows in machine code
``feature_maps``                     explicit features: columns, random waves, coordinates in a span
``descent``, ``newton``              steps over explicit features: of first order; Newton's, or its sketch
``frequent_directions``              a sum of squares in few rows, and its inverse
``budget``, ``window``               expansions whose points come and go: first order; ridge over the last N
``cholesky``, ``storage``            factors of sums of squares; arrays that grow
``threads``                          BLAS threads
===================================  =========================================================================
"""
