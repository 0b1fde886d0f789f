// Paper is light, also where the screen is dark.
let onScreen;
addEventListener('beforeprint', () => {
  onScreen ??= document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = 'light';
});
addEventListener('afterprint', () => {
  if (onScreen) document.documentElement.dataset.theme = onScreen;
  onScreen = undefined;
});

// Closed hints and answers stay off the paper; this opens them first. `make pdf` calls it too.
function openAnswers() {
  const shut = [...document.querySelectorAll('details:is(.answer, .hint):not([open])')];
  for (const fold of shut) fold.open = true;
  return shut;
}
function printWithAnswers() {
  const opened = openAnswers();
  addEventListener('afterprint', () => { for (const fold of opened) fold.open = false; }, {once: true});
  print();
}
