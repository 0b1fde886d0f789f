"The attention of a model as pictures: views of heads, tokens and images, plots, and a command"
