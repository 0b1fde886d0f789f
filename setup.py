"Packaging: every value is read from settings.ini; edit there, not here"
import re
from configparser import ConfigParser
from pathlib import Path
from setuptools import setup, find_packages

here = Path(__file__).parent
parser = ConfigParser(delimiters=['='])
parser.read(here/'settings.ini', encoding='utf-8')
cfg = parser['DEFAULT']
licenses = dict(apache2='Apache-2.0')
statuses = {'1':'1 - Planning', '2':'2 - Pre-Alpha', '3':'3 - Alpha', '4':'4 - Beta',
            '5':'5 - Production/Stable'}
# links that work anywhere
readme = re.sub(r'\]\((?!https?:|#)', f"]({cfg['git_url']}/raw/{cfg['branch']}/",
                (here/'README.md').read_text(encoding='utf-8'))
extras = {k.removesuffix('_requirements'): v.split() for k,v in cfg.items()
          if k.endswith('_requirements')}

setup(
    name=cfg['lib_name'], version=cfg['version'], description=cfg['description'],
    keywords=cfg['keywords'],
    author=cfg['author'], author_email=cfg['author_email'],
    license_expression=licenses[cfg['license']], license_files=['LICENSE'],
    url=cfg['git_url'],
    classifiers=[f"Development Status :: {statuses[cfg['status']]}",
                 f"Intended Audience :: {cfg['audience']}",
                 f"Natural Language :: {cfg['language']}", 'Programming Language :: Python :: 3',
                 'Typing :: Typed'],
    # so an editable install puts this folder on the path, where tools find it
    package_dir={'': '.'},
    packages=find_packages(include=[cfg['lib_name'], cfg['lib_name']+'.*']),
    package_data={cfg['lib_name']: ['py.typed', '*.pyi', 'views_js/*', 'figures_js/*', 'live_js/*',
                                    'figures/*.svg', '*.mplstyle']},
    python_requires='>='+cfg['min_python'], install_requires=cfg['requirements'].split(),
    extras_require=extras,
    long_description=readme, long_description_content_type='text/markdown',
    entry_points={'console_scripts': cfg['console_scripts'].split(),
                  'nbdev': [f"{cfg['lib_path']}={cfg['lib_path']}._modidx:d"]},
    zip_safe=False)
