"""Figures for both themes of the site: without their white background, and once more in colours for a dark page.

A colour keeps its hue; its lightness is turned round, so that black ink becomes nearly white and white paper becomes the dark page.
"""
import base64, io, re
import numpy as np

INK,PAGE = .95,.183                                     # lightness (OKLab) of black and of white on the dark page; the latter of #121212, its background
_lms = np.array([[.4122214708, .5363325363, .0514459929], [.2119034982, .6806995451, .1073969566], [.0883024619, .2817188376, .6299787005]])
_lab = np.array([[.2104542553, .793617785, -.0040720468], [1.9779984951, -2.428592205, .4505937099], [.0259040371, .7827717662, -.808675766]])

def turned(rgb):
    "Colours (..., 3) from 0 to 1, with the lightness of a dark page (OKLab, Ottosson 2020)"
    linear = np.where(rgb <= .04045, rgb/12.92, ((rgb+.055)/1.055)**2.4)
    lab = np.cbrt(linear @ _lms.T) @ _lab.T
    lab[...,0] = INK - (INK-PAGE) * lab[...,0].clip(0, 1)**2.2
    linear = ((lab @ np.linalg.inv(_lab).T)**3 @ np.linalg.inv(_lms).T).clip(0, 1)
    return np.where(linear <= .0031308, linear*12.92, 1.055*linear**(1/2.4) - .055)

def dark_color(color):
    "`#rrggbb` or `#rgb` for the dark page"
    digits = color[1:] if len(color) == 7 else ''.join(2*c for c in color[1:])
    rgb = np.array([int(digits[i:i+2], 16) for i in (0, 2, 4)])/255
    return '#' + ''.join(f'{n:02x}' for n in (turned(rgb)*255).round().astype(int))

def dark_png(data):
    "The bytes of a PNG for the dark page; what is transparent stays so"
    from PIL import Image
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert('RGBA'))/255
    out = io.BytesIO()
    Image.fromarray((np.dstack([turned(pixels[...,:3]), pixels[...,3:]])*255).round().astype(np.uint8)).save(out, 'png')
    return out.getvalue()

_color = re.compile(r'((?:fill|stroke|color|stop-color)(?:=["\']|:\s*))(#[0-9a-fA-F]{6}|#[0-9a-fA-F]{3})\b')
_raster = re.compile(r'(data:image/png;base64,)([A-Za-z0-9+/=\s]+)')

def light_svg(svg):
    "`svg` without the white behind it: matplotlib's figure and axes, or a rectangle as large as a drawn scheme"
    svg = svg.replace('style="fill: #ffffff"', 'style="fill: none"')
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    return re.sub(rf'<rect width="{size[1]}" height="{size[2]}" fill="#fff(fff)?"/>\n?', '', svg, count=1) if size else svg

def dark_svg(svg):
    "`svg` for the dark page"
    svg = _color.sub(lambda m: m[1]+dark_color(m[2]), light_svg(svg))
    svg = _raster.sub(lambda m: m[1]+base64.b64encode(dark_png(base64.b64decode(m[2]))).decode(), svg)
    return re.sub(r'<svg\b', f'<svg fill="{dark_color("#000000")}"', svg, count=1)              # ink without a colour of its own is black

def width(path):
    "The width of an SVG of matplotlib's, in points; 0 for any other file"
    found = re.search(r'<svg[^>]* width="([\d.]+)pt"', path.read_text(encoding='utf-8')[:3000]) if path.suffix == '.svg' else None
    return float(found[1]) if found else 0

def for_both(path):
    "Write the light and the dark figure of the file at `path` beside it; their paths"
    light,dark = (path.with_name(f'{path.stem}.{theme}{path.suffix}') for theme in ('light', 'dark'))
    if path.suffix == '.svg':
        svg = path.read_text(encoding='utf-8')
        light.write_text(light_svg(svg), encoding='utf-8')
        dark.write_text(dark_svg(svg), encoding='utf-8')
    else:
        light.write_bytes(path.read_bytes())
        dark.write_bytes(dark_png(path.read_bytes()))
    return light, dark
