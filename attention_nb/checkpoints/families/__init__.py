"Part of checkpoints"
