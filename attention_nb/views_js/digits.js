// ---- how numbers are written

const exact = x => String(+x.toPrecision(10)).replace("-", "−");
// How many digits show the largest of some numbers well
function digitsFor(most) {
  if (!most || most >= 0.5 && most < 100) return 2;
  return most >= 1000 ? 0 : most >= 100 ? 1 : Math.min(8, 3 + Math.floor(-Math.log10(most)));
}
function written(x, digits = 2) {
  if (x === -Infinity) return "−∞";
  const text = Math.abs(x) >= 1e6 ? x.toExponential(1) : x.toFixed(digits);
  return +text === 0 ? text.replace("-", "") : text.replace("-", "−");
}
const most = list => list.reduce((m, x) => Number.isFinite(x) ? Math.max(m, Math.abs(x)) : m, 0);
