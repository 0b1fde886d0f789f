"""What nbdev-export does besides (`export_procs` in pyproject.toml): docments become docstrings,
and signatures are written without them. It looks at the whole module, so all exported cells are
joined, rewritten, and cut again. In the notebooks nothing changes.
"""
from nbdev.process import Processor
from .docstrings import explain

MARK = '# %% exported cell\n'

class ForTools(Processor):
    "Write into exported cells what help and editors read"
    def end(self):
        cells = [c for c in self.nb.cells if c.cell_type == 'code' and c.source
                 and {'export', 'exports', 'exporti'} & c.directives_.keys()]
        joined = explain(''.join(f'{MARK}{c.source}\n' for c in cells))
        for cell,source in zip(cells, joined.split(MARK)[1:], strict=True):
            cell.set_source(source.rstrip('\n'))
