"Sphinx's configuration: the project's from pyproject.toml and settings.ini, the book's from here"
import configparser, sys
from pathlib import Path
from nbdev.config import get_config

here = Path(__file__).parent
sys.path.insert(0, str(here))
# nbformat's checks would build grammars for addresses that no notebook has, which takes 4 s
sys.modules.setdefault('rfc3987_syntax', None)
import cells, fresh
cfg = get_config()
ini = configparser.ConfigParser(delimiters=['='])
ini.read(cfg.config_path/'settings.ini', encoding='utf-8')

project,release = cfg.title,cfg.version
author,copyright = ini['DEFAULT']['author'],ini['DEFAULT']['copyright']
# numbers of their lessons
book_parts = {'Foundations': range(10), 'Seeing': range(10,11), 'Whole models': range(11,17),
              'Scaling': range(17,100)}

extensions = ['place', 'api', 'pages', 'folds', 'plain', 'previews', 'fresh', 'search', 'live',
              'paint', 'stale', 'student', 'myst_nb', 'sphinxcontrib.bibtex', 'sphinx_copybutton',
              'sphinx_design', 'sphinx_togglebutton', 'sphinx-mathjax-offline',
              'sphinxext.opengraph', 'sphinx_reredirects', 'notfound.extension']
exclude_patterns = ['_*', '.*', '**/.ipynb_checkpoints', '*.py', '*.txt']
nb_custom_formats = {'.ipynb': 'pages.read'}
nb_execution_mode = 'off'            # outputs are the committed ones; the tests keep them true
nb_merge_streams = True
nb_render_markdown_format = 'myst'
myst_enable_extensions = ['amsmath', 'attrs_block', 'attrs_inline', 'colon_fence', 'deflist',
                          'dollarmath', 'alert']
myst_heading_anchors = 4
myst_dmath_double_inline = True
bibtex_bibfiles = [str(here.parent/'references.bib')]
numfig = True
numfig_format = dict(figure='Figure %s')
autodoc_typehints = 'none'           # types stand in the tables of api.py
autodoc_default_options = {'members': True, 'member-order': 'bysource',
                           'inherited-members': 'Module, AttentionLayer, Protocol, Generic, '
                                                'Mapping, dict, tuple'}
autodoc_preserve_defaults = True
add_module_names = False
default_role = 'public'
python_maximum_signature_line_length = 60
python_trailing_comma_in_multi_line_signatures = False
toc_object_entries_show_parents = 'hide'
copybutton_exclude = '.linenos, .gp, .go'
machinery = fresh.of_files(here, here.parent/'references.bib', cfg.lib_path/'views_js',
                           cfg.lib_path/'figures_js', cfg.lib_path/'live_js',
                           cfg.config_path/'settings.ini', cfg.config_path/'constraints.txt')

html_theme = 'pydata_sphinx_theme'
html_title = cfg.title
html_favicon = str(here/'_static'/'favicon.svg')
html_static_path = [str(here/'_static'), str(cfg.lib_path/'views_js'/'look.css')]
html_css_files = ['look.css', 'custom.css', ('print.css', dict(media='print'))]
html_js_files = ['search.js', 'reading.js', 'symbols.js']
templates_path = [str(here/'_templates')]
html_show_sourcelink,html_sourcelink_suffix = False,''
html_sidebars = {'**': ['sidebar-nav-bs'], **{page: [] for page in ('index', 'play', 'speed')}}
html_context = dict(default_mode='auto', repository=cfg.git_url, branch=cfg.branch)
html_theme_options = dict(
    logo=dict(text=cfg.title), navbar_align='left', github_url=cfg.git_url,
    search_bar_text='Search', pygments_light_style='a11y-high-contrast-light',
    pygments_dark_style='github-dark', show_toc_level=2, show_nav_level=1, navigation_depth=3,
    article_header_end=['page-menu'], footer_start=['colophon'], footer_end=[],
    secondary_sidebar_items={'**': ['page-toc'], 'index': [], 'play': [], 'learn': []})

# finding the book: canonical addresses, what a link shows, and addresses that are no page's:
# attention.html leads to 03_attention.html
html_baseurl = f'{cfg.doc_host}{cfg.doc_baseurl}/'
ogp_site_url,ogp_type,ogp_social_cards = html_baseurl,'article',dict(enable=False)
redirects = {cells.alias(p.stem): f'{p.stem}.html' for p in cfg.nbs_path.glob('*_*.ipynb')}
notfound_urls_prefix = f'{cfg.doc_baseurl}/'
notfound_context = dict(title='Page not found', body=(
    '<h1>Page not found</h1>\n<p>There is no page at this address. The search and the list '
    f'of chapters lead to every section; <a href="{notfound_urls_prefix}index.html">the front '
    'page</a> shows them as cards.</p>'))
