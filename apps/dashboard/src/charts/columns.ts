/** Left and right edge of each column in the unit of x: half way to its neighbours. Outer columns are symmetric. */
export function columnEdges(xs: readonly number[]): [left: number, right: number][] {
  return xs.map((x, i) => {
    const before = xs[i - 1];
    const after = xs[i + 1];
    const toLeft = before === undefined ? (after === undefined ? 0.5 : (after - x) / 2) : (x - before) / 2;
    const toRight = after === undefined ? (before === undefined ? 0.5 : (x - before) / 2) : (after - x) / 2;
    return [x - toLeft, x + toRight];
  });
}
