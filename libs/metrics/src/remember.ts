const remembered = new WeakMap<object, WeakMap<object, Map<string, unknown>>>();

/**
 * Returns what `compute` returned before for the same columns and context: a lens computes thirty figures of one set of rollouts, and most
 * begin with the same sorting and grouping. Columns and contexts must not change; nothing outlives them.
 */
export function remember<T>(columns: object, context: object, name: string, compute: () => T): T {
  const byContext = remembered.get(columns) ?? new WeakMap<object, Map<string, unknown>>();
  remembered.set(columns, byContext);
  const byName = byContext.get(context) ?? new Map<string, unknown>();
  byContext.set(context, byName);
  if (!byName.has(name)) byName.set(name, compute());
  return byName.get(name) as T;
}
