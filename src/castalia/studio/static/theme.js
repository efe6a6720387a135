// Light or dark: as the system says, until somebody chooses. Runs before the first paint.
(() => {
  const root = document.documentElement;
  const kept = localStorage.getItem("theme");
  if (kept) root.dataset.theme = kept;
  addEventListener("DOMContentLoaded", () => {
    document.querySelector(`nav a[href="${location.pathname}"]`)?.setAttribute("aria-current", "page");
    document.getElementById("theme").addEventListener("click", () => {
      const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      const next = (root.dataset.theme || system) === "dark" ? "light" : "dark";
      root.dataset.theme = next;
      localStorage.setItem("theme", next);
      dispatchEvent(new Event("theme"));
    });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("theme")));
})();
