"""The book as one PDF: Chromium prints each page of the built site, pypdf joins them, with an
outline and links that stay inside.

pdf.py FOLDER OUT [--answers] [PAGE ...]   the site in FOLDER, all of it or these pages;
                                           --answers opens hints and answers
"""
import functools, http.server, io, re, sys, threading
from pathlib import Path
from urllib.parse import unquote
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, FloatObject, NameObject, NullObject

class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass

def contents(page, address):
    "(title, file) of each page of the book, in the order of llms.txt, which begins with the first"
    text = page.request.get(f'{address}/llms.txt').text()
    found = re.findall(r'^- \[(.+?)\]\((\S+\.html)\.md\):', text, re.M)
    base = found[0][1].removesuffix('index.html')
    return [(' '.join(title.split()), file.removeprefix(base)) for title,file in found]

def printed(page, url, first, answers=False):
    "The page at `url` as a PDF whose pages count from `first`"
    page.goto(url)
    page.evaluate('window.MathJax?.startup?.promise.then(() => null)')
    if answers: page.evaluate('void openAnswers()')
    page.add_style_tag(content=f'@page {{ @bottom-center {{ content: counter(page) }} }} '
                               f'@page :first {{ counter-set: page {first} }}')
    return page.pdf(format='A4', prefer_css_page_size=True, outline=True, tagged=True)

def linked_inside(writer, places, address):
    "Turn links to pages of the site, and to names in them, into links to places in the PDF"
    starts = sorted((at, file) for file,(at,_) in places.items() if '#' not in file)
    for number,page in enumerate(writer.pages):
        own = max((s for s in starts if s[0] <= number), default=(0, ''))[1]
        for link in (a.get_object() for a in page.get('/Annots', ())):
            uri,name = str(link.get('/A', {}).get('/URI', '')),link.get('/Dest')
            if isinstance(name, str): target = f'{own}#{name.lstrip("/")}'
            elif uri.startswith(address): target = unquote(uri.removeprefix(address)).lstrip('/')
            else: continue
            at,top = places.get(target) or places.get(target.split('#')[0]) or (None, None)
            for key in ('/A', '/Dest'): link.pop(key, None)
            if at is None: continue                     # a page that is not in this PDF
            height = NullObject() if top is None else FloatObject(top)
            link[NameObject('/Dest')] = ArrayObject([
                writer.pages[at].indirect_reference, NameObject('/XYZ'), NullObject(), height,
                NullObject()])

def book(browser, address, out, answers=False, only=()):
    "Write the pages of the site at `address` to the file `out`; how many sheets it has"
    writer,places,page = PdfWriter(),{},browser.new_page()
    pages = contents(page, address)
    names = [file.removesuffix('.html') for _,file in pages]
    if unknown := [name for name in only if name not in names]:
        sys.exit(f'no page {", ".join(unknown)}; the pages are {", ".join(names)}')
    for title,file in pages:
        if only and file.removesuffix('.html') not in only: continue
        first = len(writer.pages)
        data = printed(page, f'{address}/{file}', first+1, answers)
        reader = PdfReader(io.BytesIO(data))
        writer.append(reader, outline_item=title)
        places[file] = first,None
        for name,place in reader.named_destinations.items():
            at = first+reader.get_destination_page_number(place)
            places[f'{file}#{name.lstrip("/")}'] = at,place.top
    page.close()
    linked_inside(writer, places, address)
    writer.compress_identical_objects()
    new = Path(f'{out}.tmp')
    writer.write(new)
    new.replace(out)
    return len(writer.pages)

if __name__ == '__main__':
    sys.path.insert(0, str(Path(__file__).parents[2]/'tests'))
    from find_browser import find
    from playwright.sync_api import sync_playwright
    folder,out,*only = (a for a in sys.argv[1:] if a != '--answers')
    handler = functools.partial(Quiet, directory=folder)
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
    with server, sync_playwright() as p:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = p.chromium.launch(executable_path=find(), args=['--no-sandbox'])
        address = f'http://127.0.0.1:{server.server_port}'
        n = book(browser, address, out, '--answers' in sys.argv, only)
        print(f'{out}: {n} pages')
        browser.close()
        server.shutdown()
