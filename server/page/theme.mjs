/** Light, dark, or what the system says: remembered in this browser. */

const NAMES = ["auto", "light", "dark"];
const STORED = "maskwright-theme";

export function startTheme(button) {
  const show = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
  };
  const stored = localStorage.getItem(STORED);
  let current = NAMES.includes(stored) ? stored : "auto";
  show(current);
  button.addEventListener("click", () => {
    current = NAMES[(NAMES.indexOf(current) + 1) % NAMES.length];
    localStorage.setItem(STORED, current);
    show(current);
  });
}
