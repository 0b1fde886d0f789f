"The figures of the lessons that a reader can move, and the model that reads a sentence in the page"
