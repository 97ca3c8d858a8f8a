// Sets the theme that was chosen, before the page is drawn.

try {
  document.documentElement.dataset.theme = localStorage.getItem('parley.theme') ?? '';
} catch { /* the system's */ }
