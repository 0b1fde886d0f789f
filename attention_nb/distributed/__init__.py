"One model on several processes, through torch.distributed"
