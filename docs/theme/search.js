// Lists the public names that contain what is typed. NAMES comes from names.js.
const field = document.getElementById("search");
const found = document.getElementById("found");
field.addEventListener("input", () => {
  const word = field.value.trim().toLowerCase();
  const hits = word ? NAMES.filter(([name]) => name.toLowerCase().includes(word)).slice(0, 12) : [];
  found.replaceChildren(...hits.map(([name, href]) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = href;
    link.textContent = name;
    item.append(link);
    return item;
  }));
  found.hidden = hits.length === 0;
});
