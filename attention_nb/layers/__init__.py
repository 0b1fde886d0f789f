"Attention layers: projections, position encodings, caches and quantized weights"
