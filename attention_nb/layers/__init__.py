"Modules with parameters, places and caches: what stands between a kernel and a model"
