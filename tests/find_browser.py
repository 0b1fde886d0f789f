"""Find a Chromium for the browser tests: prints its path, exits 1 if there is none.

--install gets one when none is found: Playwright's own, else Debian's as root. Failing that it says
so and exits 0; the tests then skip the browser, loudly, or fail where BROWSER=required.
"""
import os, shutil, subprocess, sys
from pathlib import Path

names = 'chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'
apps = ('/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
        '/Applications/Chromium.app/Contents/MacOS/Chromium')

def find():
    "$CHROME, one on the PATH, Playwright's, one of the usual places; else None"
    if path := os.environ.get('CHROME'): return path
    if path := next(filter(None, map(shutil.which, names)), None): return path
    from playwright.sync_api import sync_playwright
    with sync_playwright() as p:
        if Path(p.chromium.executable_path).exists(): return p.chromium.executable_path
    return next((p for p in apps if Path(p).exists()), None)

def install():
    commands = [[sys.executable, '-m', 'playwright', 'install', 'chromium']]
    if hasattr(os, 'geteuid') and os.geteuid() == 0 and shutil.which('apt-get'):
        commands += [['apt-get', 'update', '-qq'], ['apt-get', 'install', '-y', '-qq', 'chromium']]
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                 env=os.environ | dict(DEBIAN_FRONTEND='noninteractive'))
    for command in commands:
        print('No browser found, trying:', ' '.join(command), flush=True)
        try: subprocess.run(command, timeout=600, **quiet)
        except (OSError, subprocess.TimeoutExpired) as e: print(f'  {e}')
        if path := find(): return path

if __name__ == '__main__':
    path = find() or ('--install' in sys.argv and install()) or None
    print(f'Browser: {path}' if path else 'NO BROWSER: the browser tests will be skipped; '
          'set CHROME to the path of a Chromium')
    sys.exit(0 if path or '--install' in sys.argv else 1)
