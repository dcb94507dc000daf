const remembered = new WeakMap<object, WeakMap<object, Map<string, unknown>>>();

/**
 * What `make` answered for these very rows and this very context before: a lens computes thirty figures over one set of rows, and most begin with
 * the same sorting and grouping. Rows and contexts are read-only, which is what makes this sound; nothing outlives them.
 */
export function remember<T>(rows: object, context: object, name: string, make: () => T): T {
  const byContext = remembered.get(rows) ?? new WeakMap<object, Map<string, unknown>>();
  remembered.set(rows, byContext);
  const byName = byContext.get(context) ?? new Map<string, unknown>();
  byContext.set(context, byName);
  if (!byName.has(name)) byName.set(name, make());
  return byName.get(name) as T;
}
