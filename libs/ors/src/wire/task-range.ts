/** Positions of a `task_range`, with the semantics of Python slices. */
export function indexesOfRange(count: number, start: number | null, stop: number | null): number[] {
  const clamp = (bound: number) => Math.min(Math.max(bound < 0 ? count + bound : bound, 0), count);
  const [first, end] = [clamp(start ?? 0), clamp(stop ?? count)];
  return Array.from({ length: Math.max(0, end - first) }, (_, offset) => first + offset);
}
