/** Light or dark: as the system says, until the person says otherwise. */
import { useEffect, useState } from "preact/hooks";

type Theme = "light" | "dark";
const KEY = "groupcoord-theme";
const system = () => matchMedia("(prefers-color-scheme: dark)");

/** What the person chose before; null where nothing was, or where the browser keeps nothing for a file. */
function chosen(): Theme | null {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : null;
  } catch {
    return null;
  }
}

function keep(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It is for this visit then.
  }
}

export function ThemeToggle() {
  const [theme, setTheme] = useState<Theme>(() => chosen() ?? (system().matches ? "dark" : "light"));
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  useEffect(() => {
    const query = system();
    const follow = () => chosen() ?? setTheme(query.matches ? "dark" : "light");
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, []);
  const other: Theme = theme === "dark" ? "light" : "dark";
  const toggle = () => {
    keep(other);
    setTheme(other);
  };
  return (
    <button type="button" onClick={toggle} aria-label={`Use ${other} colours`} title={`Use ${other} colours`}>
      {theme === "dark" ? "☀" : "☾"}
    </button>
  );
}
