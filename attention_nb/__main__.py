"`python -m attention_nb TEXT` is the command `attention-view`, made in chapter 06d"
import sys
from attention_nb.command import main

__all__ = []

if __name__ == '__main__': sys.exit(main())
