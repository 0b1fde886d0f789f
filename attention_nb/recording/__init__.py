"What a model attended to, as numbers: weights, head scores, and what happens without a head"
