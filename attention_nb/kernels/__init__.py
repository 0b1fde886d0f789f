"Attention functions with one signature (reference, fused, block-sparse, FlexAttention), and the masks they take"
