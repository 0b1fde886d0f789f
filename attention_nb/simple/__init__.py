"The book's short forms: what the lessons derive, to be read in one sitting"
