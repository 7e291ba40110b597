// The theme: as the system has it, or as the reader chooses.
const tools = document.getElementById("tools");
const themes = ["auto", "light", "dark"], button = put(tools, "button", { type: "button" });
function theme(name) {
  if (name === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", name);
  button.textContent = `Theme: ${name}`;
  button.dataset.theme = name;
  choice.tell();
}
button.addEventListener("click", () => theme(themes[(themes.indexOf(button.dataset.theme) + 1) % themes.length]));
theme("auto");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => choice.tell());
