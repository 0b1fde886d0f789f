"Whole transformers from one table of settings, and the texts they write"
