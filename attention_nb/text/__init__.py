"Text to ids and vectors: tokenizers, byte pairs, embedding, word vectors"
