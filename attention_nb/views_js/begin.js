// The last script of a page: everything is there, the view begins

const root = document.getElementById("view");
if (data.title) root.append(make("h1", {}, data.title));
followTheme();
followHeight();
views[data.kind](root, data);
