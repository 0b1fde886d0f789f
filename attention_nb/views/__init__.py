"The same as pictures: views of heads, plots, things to move, and the model in the page"
