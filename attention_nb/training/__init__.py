"A model of one's own from text files, open at every step, and on again after whatever stopped it"
