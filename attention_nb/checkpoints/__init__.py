"Published models in and out: settings, tensors, tokenizers, and folders that others load"
