"Attention as functions of one contract, and the rules that say who sees whom"
