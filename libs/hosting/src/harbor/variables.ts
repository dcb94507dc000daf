/** Of `resolve_env_vars` in Harbor's `utils/env.py`: the whole value is `${NAME}` or `${NAME:-default}`. */
const TEMPLATE = /^\$\{([^}:]+)(?::-(.*))?\}$/s;

/** Fills in the values of `known`. `missing`: names without a value and without a default. */
export function resolveVariables(
  variables: Readonly<Record<string, string>>,
  known: Readonly<Record<string, string>>,
): { values: Record<string, string>; missing: string[] } {
  const values: Record<string, string> = {};
  const missing: string[] = [];
  for (const [name, text] of Object.entries(variables)) {
    const [, from, fallback] = TEMPLATE.exec(text) ?? [];
    if (from === undefined) values[name] = text;
    else {
      const value = (Object.hasOwn(known, from) ? known[from] : undefined) ?? fallback;
      if (value === undefined) missing.push(from);
      else values[name] = value;
    }
  }
  return { values, missing };
}
