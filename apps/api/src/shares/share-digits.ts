/** Signs of numbers as strokes in a field of 10 by 16, with their advance: the renderer has no fonts, whose files it would need. */
const STROKES: Record<string, [path: string, advance: number]> = {
  0: ['M1 5a4 5 0 0 1 8 0v6a4 5 0 0 1-8 0z', 13],
  1: ['M2 3.5 6 0v16', 13],
  2: ['M1 4.2a4 4.2 0 1 1 7.3 2.4L1 16h8.4', 13],
  3: ['M1.2 2.6A4 3.8 0 1 1 4.6 7.6A4.3 4.2 0 1 1 .8 13.2', 13],
  4: ['M7 16V0L.6 11.4h9', 13],
  5: ['M8.6 0H2.2L1.6 7A4.2 4.7 0 1 1 .8 13.4', 13],
  6: ['M7.6.4C3 2 1 6 1 11.2a4 4.8 0 1 0 8 0a4 4.6 0 0 0-8 0', 13],
  7: ['M.8 0h8.4L4 16', 13],
  8: ['M5 7.4a3.6 3.7 0 1 1 .01 0a4.1 4.3 0 1 1-.01 0', 13],
  9: ['M2.4 15.6C7 14 9 10 9 4.8a4 4.8 0 1 0-8 0a4 4.6 0 0 0 8 0', 13],
  '.': ['M1.2 15.2h.6v.6h-.6z', 6],
  '−': ['M1 8.5h8', 13],
  '–': ['M1 8.5h8', 13],
  '+': ['M1 8.5h8M5 4.5v8', 13],
  '<': ['M9 4 1 8.5 9 13', 13],
  '>': ['M1 4 9 8.5 1 13', 13],
  k: ['M1.5 0v16M8 5.5 1.5 11M4 9l5 7', 13],
  M: ['M1 16V0l4.5 8L10 0v16', 14],
  G: ['M9 3.6A4.2 5 0 0 0 1 5v6a4 5 0 0 0 8 0V9H5.5', 13],
  T: ['M0 0h10M5 0v16', 13],
};

interface Drawn {
  svg: string;
  width: number;
}

/** A number as SVG, `height` pixels high, from its upper left corner at 0, 0. Other characters are left out. */
export function drawNumber(text: string, height: number, colour: string): Drawn {
  const scale = height / 16;
  let at = 0;
  const paths = [...text].map((sign) => {
    const [path, advance] = STROKES[sign] ?? ['', 0];
    const drawn = path === '' ? '' : `<path transform="translate(${at} 0)" d="${path}"/>`;
    at += advance;
    return drawn;
  });
  const stroke = `fill="none" stroke="${colour}" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round"`;
  return { svg: `<g transform="scale(${scale})" ${stroke}>${paths.join('')}</g>`, width: Math.max(0, at - 3) * scale };
}
